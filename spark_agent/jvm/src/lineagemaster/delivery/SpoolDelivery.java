package lineagemaster.delivery;

import java.nio.file.AccessDeniedException;
import java.nio.file.Path;

/**
 * Sends what waits in the spool, in a thread of its own, for as long as there is something: as
 * spark_agent/delivery/spool_delivery.py does it in Python processes.
 */
final class SpoolDelivery {
  private static final long PAUSE_MS = 500;
  private static final long MAX_PAUSE_MS = 15_000;
  private static final long WINDOW_BYTES = 2_000_000;
  private static final long ANSWER_MS = 240_000;
  private static final int NOTHING_LEFT = 0;
  private static final int NOT_SENT = 1;

  private final Spool spool;
  private final AgentConfig config;
  private final Runnable answered;
  private BrokerClient client;
  private boolean isRunning;

  SpoolDelivery(Spool spool, AgentConfig config, Runnable answered) {
    this.spool = spool;
    this.config = config;
    this.answered = answered;
  }

  /** Sends what waits, beside whoever calls. Does nothing while it does so already. */
  synchronized void start() {
    if (!isRunning && config.spoolMaxBytes > 0 && !spool.waiting().isEmpty()) {
      isRunning = true;
      Thread thread = new Thread(this::run, "lineage-spool");
      thread.setDaemon(true);
      thread.start();
    }
  }

  private void run() {
    long pause = PAUSE_MS;
    while (true) {
      int outcome = sendFiles();
      if (outcome == NOTHING_LEFT && isOver()) {
        return;
      }
      pause = outcome == NOT_SENT ? Math.min(2 * pause, MAX_PAUSE_MS) : PAUSE_MS;
      try {
        Thread.sleep(pause);
      } catch (InterruptedException end) {
        return;
      }
    }
  }

  private synchronized boolean isOver() {
    if (spool.waiting().stream().anyMatch(SpoolFile.OWN::contains)) {
      return false;
    }
    isRunning = false;
    return true;
  }

  private int sendFiles() {
    try {
      spool.close();
      for (Path path : spool.waiting()) {
        try (SpoolFile file = SpoolFile.claim(path)) {
          if (file == null || !file.isFor(spool.servers())) {
            continue;
          }
          if (!send(file)) {
            return NOT_SENT; // the broker is not there: the next file would not leave either
          }
          file.remove();
        } catch (AccessDeniedException ofSomebodyElse) {
          continue;
        }
      }
      return NOTHING_LEFT;
    } catch (Throwable error) { // an agent bug, or a disk that fails: the files stay
      return NOT_SENT;
    }
  }

  /** Sends all messages of a file. True when all of them were acknowledged. */
  private boolean send(SpoolFile file) throws Exception {
    DeliveryTally tally = new DeliveryTally();
    Message.Keeper keeper = (message, reason, isOfMessage) -> {
      message.tally().failed(reason);
      message.tally().arrived(message);
    };
    if (client == null) {
      client = KafkaLoader.client(config, answered, true);
    }
    long bytes = 0;
    for (Message message = file.next(tally, keeper); message != null; message = file.next(tally, keeper)) {
      int partitions = client.partitions(message.topic);
      if (partitions == 0) {
        return false;
      }
      if (client.send(message, message.partition < 0 ? -1 : message.partition % partitions) != null) {
        return false;
      }
      bytes += message.value.length;
      if (bytes >= WINDOW_BYTES) {
        bytes = 0;
        if (!isAcknowledged(tally)) {
          return false;
        }
      }
    }
    return isAcknowledged(tally);
  }

  private static boolean isAcknowledged(DeliveryTally tally) throws InterruptedException {
    long until = System.nanoTime() + ANSWER_MS * 1_000_000;
    while (tally.pendingCount() > 0 && tally.failedCount() == 0 && System.nanoTime() - until < 0) {
      tally.await(500);
    }
    return tally.pendingCount() == 0 && tally.failedCount() == 0;
  }
}
