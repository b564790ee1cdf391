package lineagemaster.delivery;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Messages to Kafka from one JVM, whichever task sends them, within bounded time and memory: as spark_agent/delivery/producer.py
 * does it for Python workers. No call throws.
 */
public final class Sender {
  /** How long one attempt to queue a message lasts, and how often a wait looks up. */
  public static final long STEP_MS = 50;

  private static final Map<Object, Sender> SENDERS = new HashMap<>();
  private static final Set<Object> PREPARED = ConcurrentHashMap.newKeySet();

  private final WaitBudget patience;
  private final String servers;
  private BrokerClient client;
  private String unavailable = "";
  private volatile long heardAt = System.nanoTime();
  private volatile String refusal = ""; // why the last message was not queued; empty once the broker answers

  private Sender(AgentConfig common) {
    patience = new WaitBudget(common.patience);
    servers = common.options.get("bootstrap.servers");
    try {
      client = KafkaLoader.client(common, this::heard);
    } catch (Throwable error) { // a bad address, or a class that is not there: the job goes on without lineage
      unavailable = "no Kafka producer for " + servers + ": " + reason(error);
    }
  }

  public static synchronized Sender of(AgentConfig common) {
    return SENDERS.computeIfAbsent(key(common), none -> new Sender(common));
  }

  private static Object key(AgentConfig common) {
    return List.of(common.options, common.patience, common.compression);
  }

  /** Begins to connect, beside the task: when its first block is full, nobody has to wait for that. */
  public static void prepare(AgentConfig common) {
    if (PREPARED.add(key(common))) {
      Thread thread = new Thread(() -> of(common).connect(common.topic), "lineage-connects");
      thread.setDaemon(true);
      thread.start();
    }
  }

  private void connect(String topic) {
    if (client != null) {
      client.prepare(topic);
    }
  }

  private void heard() {
    heardAt = System.nanoTime();
    refusal = "";
    patience.answered();
  }

  public void send(String topic, int partition, byte[] key, byte[] message, DeliveryTally delivery) {
    if (client == null) {
      delivery.fail(unavailable);
      return;
    }
    if (!refusal.isEmpty() && patience.isPaused()) {
      delivery.fail(why(System.nanoTime(), refusal));
      return;
    }
    long begin = System.nanoTime();
    long allowed = -1;
    while (true) {
      String refused;
      try {
        refused = client.send(topic, partition, key, message, delivery);
      } catch (Throwable error) { // the task is being killed, or memory is short
        delivery.fail(reason(error));
        return;
      }
      if (refused == null) {
        if (allowed >= 0) {
          endWait(begin, delivery, true);
        }
        return;
      }
      refusal = refused;
      if (allowed < 0) {
        allowed = patience.allowed();
      }
      if (System.nanoTime() - begin >= allowed || patience.isPaused()) {
        endWait(begin, delivery, false);
        delivery.fail(why(begin, refused));
        return;
      }
    }
  }

  /** Wait, within the patience, for what is on its way; how many messages are still. */
  public int settle(DeliveryTally delivery) {
    long begin = System.nanoTime();
    long allowed = delivery.pending() == 0 ? 0 : patience.allowed();
    try {
      while (delivery.pending() > 0 && !patience.isPaused() && System.nanoTime() - begin < allowed) {
        delivery.await(Math.min(STEP_MS, 1 + (allowed - (System.nanoTime() - begin)) / 1_000_000));
      }
    } catch (InterruptedException killed) {
      Thread.currentThread().interrupt();
    }
    int pending = delivery.pending();
    if (allowed > 0) {
      endWait(begin, delivery, pending == 0);
    }
    if (pending > 0) {
      delivery.isLate(why(begin, refusal));
    }
    return pending;
  }

  private void endWait(long begin, DeliveryTally delivery, boolean isAnswered) {
    delivery.waited(System.nanoTime() - begin);
    patience.charge(begin, isAnswered);
  }

  /** Why messages are still here: nothing was taken since then, or too little. */
  private String why(long since, String noticed) {
    if (heardAt - since > 0) {
      return "Kafka at " + servers + " takes them more slowly than the job makes them: give the job longer with "
          + "spark.lineage.delivery.timeout, or Kafka more room";
    }
    return "Kafka at " + servers + " does not take them (" + (noticed.isEmpty() ? "it does not answer" : noticed)
        + "): see that it runs and that spark.lineage.kafka.bootstrap.servers names it";
  }

  private static String reason(Throwable error) {
    Throwable cause = error;
    while (cause.getCause() != null) {
      cause = cause.getCause();
    }
    return cause.getMessage() == null ? cause.toString() : cause.getMessage();
  }
}
