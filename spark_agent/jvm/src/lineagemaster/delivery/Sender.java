package lineagemaster.delivery;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Sends messages from one JVM to Kafka, whichever task they are of, within bounded time and memory: as
 * spark_agent/delivery/producer.py does it for Python workers. No call throws.
 */
public final class Sender {
  /** How long one attempt to queue a message lasts, and how often a wait looks up. */
  public static final long STEP_MS = 50;

  private static final Map<Object, Sender> SENDERS = new HashMap<>();
  private static final Set<Object> PREPARED = ConcurrentHashMap.newKeySet();

  private final WaitBudget waitBudget;
  private final String servers;
  private BrokerClient client;
  private String unavailable = "";
  private volatile long acknowledgedAt = System.nanoTime();
  private volatile String refusal = ""; // why the last message was not queued; empty once the broker answers

  private Sender(AgentConfig config) {
    waitBudget = new WaitBudget(config.waitBudgetSeconds);
    servers = config.clientOptions.get("bootstrap.servers");
    try {
      client = KafkaLoader.client(config, this::acknowledged);
    } catch (Throwable error) { // a bad address, or a class that is not there: the job goes on without lineage
      unavailable = "no Kafka producer for " + servers + ": " + rootMessage(error);
    }
  }

  public static synchronized Sender of(AgentConfig config) {
    return SENDERS.computeIfAbsent(key(config), missing -> new Sender(config));
  }

  private static Object key(AgentConfig config) {
    return List.of(config.clientOptions, config.waitBudgetSeconds, config.compression);
  }

  /** Begins to connect, beside the task: when its first block is full, nobody has to wait for that. */
  public static void prepare(AgentConfig config) {
    if (PREPARED.add(key(config))) {
      Thread thread = new Thread(() -> of(config).connect(config.flowTopic), "lineage-connects");
      thread.setDaemon(true);
      thread.start();
    }
  }

  private void connect(String topic) {
    if (client != null) {
      client.prepare(topic);
    }
  }

  private void acknowledged() {
    acknowledgedAt = System.nanoTime();
    refusal = "";
    waitBudget.answered();
  }

  /** Queues a message, within the wait budget; the tally says what becomes of it. */
  public void send(String topic, int partition, byte[] key, byte[] message, DeliveryTally tally) {
    if (client == null) {
      tally.failed(unavailable);
      return;
    }
    if (!refusal.isEmpty() && waitBudget.isPaused()) {
      tally.failed(explanation(System.nanoTime(), refusal));
      return;
    }
    long begin = System.nanoTime();
    long allowedNanos = -1;
    while (true) {
      String newRefusal;
      try {
        newRefusal = client.send(topic, partition, key, message, tally);
      } catch (Throwable error) { // the task is being killed, or memory is short
        tally.failed(rootMessage(error));
        return;
      }
      if (newRefusal == null) {
        if (allowedNanos >= 0) {
          endWait(begin, tally, true);
        }
        return;
      }
      refusal = newRefusal;
      if (allowedNanos < 0) {
        allowedNanos = waitBudget.allowedNanos();
      }
      if (System.nanoTime() - begin >= allowedNanos || waitBudget.isPaused()) {
        endWait(begin, tally, false);
        tally.failed(explanation(begin, newRefusal));
        return;
      }
    }
  }

  /** Waits, within the wait budget, for what is on its way; returns how many messages still are. */
  public int flush(DeliveryTally tally) {
    long begin = System.nanoTime();
    long allowedNanos = tally.pendingCount() == 0 ? 0 : waitBudget.allowedNanos();
    try {
      while (tally.pendingCount() > 0 && !waitBudget.isPaused() && System.nanoTime() - begin < allowedNanos) {
        tally.await(Math.min(STEP_MS, 1 + (allowedNanos - (System.nanoTime() - begin)) / 1_000_000));
      }
    } catch (InterruptedException killed) {
      Thread.currentThread().interrupt();
    }
    int pending = tally.pendingCount();
    if (allowedNanos > 0) {
      endWait(begin, tally, pending == 0);
    }
    if (pending > 0) {
      tally.late(explanation(begin, refusal));
    }
    return pending;
  }

  private void endWait(long begin, DeliveryTally tally, boolean isAnswered) {
    tally.waited(System.nanoTime() - begin);
    waitBudget.charge(begin, isAnswered);
  }

  /** Why messages are still here: since that time the broker has acknowledged none, or too few. */
  private String explanation(long since, String lastRefusal) {
    if (acknowledgedAt - since > 0) {
      return "Kafka at " + servers + " takes them more slowly than the job makes them: give the job longer with "
          + "spark.lineage.delivery.timeout, or Kafka more room";
    }
    return "Kafka at " + servers + " does not take them ("
        + (lastRefusal.isEmpty() ? "it does not answer" : lastRefusal)
        + "): see that it runs and that spark.lineage.kafka.bootstrap.servers names it";
  }

  private static String rootMessage(Throwable error) {
    Throwable cause = error;
    while (cause.getCause() != null) {
      cause = cause.getCause();
    }
    return cause.getMessage() == null ? cause.toString() : cause.getMessage();
  }
}
