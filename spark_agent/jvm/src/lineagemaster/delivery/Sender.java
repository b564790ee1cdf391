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

  /** So many bytes of a task run may be on their way: the spool needs them as they are. */
  private static final long MAX_BYTES = 1 << 23;

  private final WaitBudget waitBudget;
  private final String servers;
  private final Spool spool;
  private final SpoolDelivery spoolDelivery;
  private BrokerClient client;
  private String unavailable = "";
  private volatile long acknowledgedAt = System.nanoTime();
  private volatile String refusal = ""; // why the last message was not queued; empty once the broker answers

  private Sender(AgentConfig config) {
    waitBudget = new WaitBudget(config.waitBudgetSeconds);
    servers = config.clientOptions.get("bootstrap.servers");
    spool = new Spool(config);
    spoolDelivery = new SpoolDelivery(spool, config, this::acknowledged);
    try {
      client = KafkaLoader.client(config, this::acknowledged, false);
    } catch (Throwable error) { // a bad address, or a class that is not there: the job goes on without lineage
      unavailable = "no Kafka producer for " + servers + ": " + rootMessage(error);
    }
  }

  /** The name of this machine. */
  public static String host() {
    return Spool.hostName();
  }

  public static synchronized Sender of(AgentConfig config) {
    return SENDERS.computeIfAbsent(key(config), missing -> new Sender(config));
  }

  private static Object key(AgentConfig config) {
    return List.of(config.clientOptions, config.waitBudgetSeconds, config.compression, config.spoolFolder,
        config.spoolMaxBytes);
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
      client.partitions(topic);
      spoolDelivery.start(); // what processes that have ended left there
    }
  }

  private void acknowledged() {
    acknowledgedAt = System.nanoTime();
    refusal = "";
    waitBudget.answered();
  }

  /** Queues a message, within the wait budget; the tally says what becomes of it. */
  public void send(String topic, int partition, byte[] key, byte[] value, DeliveryTally tally) {
    Message message = new Message(topic, partition, key, value, tally, this::failed);
    if (client == null) {
      tally.failed(unavailable);
      return;
    }
    if (!refusal.isEmpty() && waitBudget.isPaused()) {
      setAside(message, explanation(System.nanoTime(), refusal));
      return;
    }
    long begin = System.nanoTime();
    long allowedNanos = -1;
    while (true) {
      String newRefusal;
      try {
        newRefusal = queued(message);
      } catch (Throwable error) { // the task is being killed, or memory is short
        setAside(message, rootMessage(error));
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
        setAside(message, explanation(begin, newRefusal));
        return;
      }
    }
  }

  private String queued(Message message) throws InterruptedException {
    if (message.tally().pendingBytes() + message.value.length > MAX_BYTES) {
      message.tally().await(STEP_MS);
      return "more waits than it takes";
    }
    return client.send(message, message.partition);
  }

  /** The broker did not take a message that was on its way. Called in the client's thread, too. */
  private void failed(Message message, String reason, boolean isOfMessage) {
    DeliveryTally tally = message.tally();
    synchronized (tally) { // whoever waits for the tally must not see it between the two
      if (tally.isPending(message)) { // else it is in the spool
        if (isOfMessage) {
          tally.failed(reason);
        } else {
          setAside(message, reason);
        }
        tally.arrived(message);
      }
    }
  }

  private void setAside(Message message, String reason) {
    setAside(List.of(message), message.tally(), reason);
  }

  /** Puts messages into the spool; those that it does not take are lost. */
  private void setAside(List<Message> messages, DeliveryTally tally, String reason) {
    String problem = spool.write(messages);
    if (problem.isEmpty()) {
      tally.spooled(messages.size(), reason);
      spoolDelivery.start();
    } else {
      messages.forEach(message -> tally.failed(reason + "; " + problem));
    }
  }

  /**
   * Waits, within the wait budget, for what is on its way, and puts the rest into the spool. Returns how many messages
   * are still on their way, since the spool does not take them.
   */
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
      String reason = explanation(begin, refusal);
      tally.late(reason);
      if (spool.takes()) {
        setAside(tally.takePending(), tally, reason);
        pending = 0;
      }
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
