package lineagemaster.delivery.kafka;

import java.util.HashMap;
import java.util.Map;
import lineagemaster.delivery.BrokerClient;
import lineagemaster.delivery.Message;
import lineagemaster.delivery.Sender;
import org.apache.kafka.clients.producer.Callback;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.errors.AuthorizationException;
import org.apache.kafka.common.errors.RecordBatchTooLargeException;
import org.apache.kafka.common.errors.RecordTooLargeException;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** The producer: the one class that knows Kafka's classes. Only `KafkaLoader` loads it. */
public final class KafkaClient implements BrokerClient {
  private final KafkaProducer<byte[], byte[]> producer;
  private final Runnable acknowledged;
  private final String servers;

  /** `isPatient`: nobody waits for it, so it may wait for the broker. */
  public KafkaClient(
      Map<String, String> options, String compression, Runnable acknowledged, boolean isPatient) {
    this.acknowledged = acknowledged;
    servers = options.get("bootstrap.servers");
    Map<String, Object> config = new HashMap<>(options);
    config.put("client.id", (isPatient ? "lineage-spool-" : "lineage-agent-") + ProcessHandle.current().pid());
    config.put("acks", "all");
    config.put("enable.idempotence", "false"); // consumers drop duplicates; this saves a round trip at the start
    config.put("compression.type", compression);
    config.put("compression.zstd.level", "1");
    config.put("linger.ms", "2"); // a task's last blocks go together, and it waits for them
    config.put("batch.size", "262144");
    config.put("buffer.memory", "16777216");
    config.put("max.request.size", "1048576");
    config.put("max.block.ms", isPatient ? "60000" : Long.toString(Sender.STEP_MS));
    config.put("request.timeout.ms", isPatient ? "120000" : "30000");
    config.put("delivery.timeout.ms", "300000"); // a broker that is away for shorter gets all that the buffer holds
    config.put("socket.connection.setup.timeout.ms", "2000");
    config.put("reconnect.backoff.max.ms", "2000");
    config.put("metric.reporters", "");
    config.put("enable.metrics.push", "false");
    producer = new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer());
  }

  @Override
  public int partitions(String topic) {
    try {
      return producer.partitionsFor(topic).size();
    } catch (RuntimeException notYet) {
      return 0; // it goes on asking in a thread of its own
    }
  }

  @Override
  public String send(Message message, int partition) {
    Report report = new Report(message);
    message.sent();
    Integer place = partition < 0 ? null : partition;
    try {
      producer.send(new ProducerRecord<>(message.topic, place, message.key, message.value), report);
    } catch (RuntimeException error) {
      message.unsent();
      throw error;
    }
    return report.refusal;
  }

  /** What an error means, and what to do: as spark_agent/delivery/kafka_errors.py says it. */
  private String explanation(Exception error, String topic) {
    String reason = error.getMessage() == null ? error.toString() : error.getMessage();
    if (error instanceof AuthorizationException) {
      return "Kafka at " + servers + " does not let this application write to topic " + topic + " (" + reason
          + "): grant its user Write and Describe on the topic";
    }
    if (isOfMessage(error)) {
      return "topic " + topic + " of Kafka at " + servers + " refuses messages as too large: set the topic's "
          + "max.message.bytes to 1048588, which is Kafka's default, or more";
    }
    return "Kafka at " + servers + " does not take them (" + reason
        + "): see that it runs and that spark.lineage.kafka.bootstrap.servers names it";
  }

  /** Why a message could not be queued: the client's own message is the same with a broker and without. */
  private String refusalReason(Exception error, String topic) {
    if (!error.getMessage().contains("not present in metadata")) {
      return "more waits than it takes";
    }
    for (Map.Entry<MetricName, ? extends Metric> metric : producer.metrics().entrySet()) {
      if (metric.getKey().name().equals("connection-count") && ((Double) metric.getValue().metricValue()) > 0) {
        return "it does not know topic " + topic + ": it may have to be created";
      }
    }
    return "no connection";
  }

  /** What became of one message. */
  private final class Report implements Callback {
    private final Message message;
    private final Thread caller = Thread.currentThread();
    private String refusal;

    Report(Message message) {
      this.message = message;
    }

    @Override
    public void onCompletion(RecordMetadata metadata, Exception error) {
      if (error == null) {
        message.arrived();
        acknowledged.run();
      } else if (error instanceof TimeoutException && Thread.currentThread() == caller) {
        message.unsent(); // `send` is still running: there is no room, or nothing is known of the topic yet
        refusal = refusalReason(error, message.topic);
      } else {
        message.failed(explanation(error, message.topic), isOfMessage(error));
      }
    }
  }

  private static boolean isOfMessage(Exception error) {
    return error instanceof RecordTooLargeException || error instanceof RecordBatchTooLargeException;
  }
}
