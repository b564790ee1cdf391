package lineagemaster.delivery;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * Sends what waits in the spool, in a thread of its own, for as long as there is something: as
 * spark_agent/delivery/spool_delivery.py does it in Python processes.
 */
final class SpoolDelivery {
  private static final long PAUSE_MS = 500;
  private static final long MAX_PAUSE_MS = 15_000;
  private static final long WINDOW_BYTES = 8_000_000;
  private static final long GROUP_BYTES = 16_000_000;
  private static final int GROUP_FILES = 200;
  private static final long ANSWER_MS = 480_000;
  private static final int NOTHING_LEFT = 0;
  private static final int NOT_SENT = 1;
  private static final int SENT = 2;

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
    List<SpoolFile> files = new ArrayList<>();
    try {
      spool.close();
      claim(files);
      if (files.isEmpty()) {
        return NOTHING_LEFT;
      }
      if (!send(files)) {
        return NOT_SENT;
      }
      for (SpoolFile file : files) {
        file.remove();
      }
      return SENT;
    } catch (Throwable error) { // an agent bug, or a disk that fails: the files stay
      return NOT_SENT;
    } finally {
      files.forEach(SpoolDelivery::close);
    }
  }

  /** Claims files that this JVM may send, as many as go together: a slow broker answers once for them all. */
  private void claim(List<SpoolFile> files) {
    long size = 0;
    for (Path path : spool.waiting()) {
      try {
        SpoolFile file = SpoolFile.claim(path);
        if (file == null) {
          continue;
        }
        if (!file.isFor(spool.servers())) {
          file.close();
          continue;
        }
        files.add(file);
        size += path.toFile().length();
      } catch (IOException ofSomebodyElse) {
        continue;
      }
      if (size >= GROUP_BYTES || files.size() >= GROUP_FILES) {
        return;
      }
    }
  }

  private static void close(SpoolFile file) {
    try {
      file.close();
    } catch (IOException late) {
      // Nothing is written through it.
    }
  }

  /** Sends all messages of the files. True when all of them were acknowledged. */
  private boolean send(List<SpoolFile> files) throws Exception {
    DeliveryTally tally = new DeliveryTally();
    Message.Keeper keeper = (message, reason, isOfMessage) -> {
      message.tally().failed(reason);
      message.tally().arrived(message);
    };
    if (client == null) {
      client = KafkaLoader.client(config, answered, true);
    }
    for (SpoolFile file : files) {
      for (Message message = file.next(tally, keeper); message != null; message = file.next(tally, keeper)) {
        int partitions = client.partitions(message.topic);
        if (partitions == 0) {
          return false;
        }
        if (client.send(message, message.partition < 0 ? -1 : message.partition % partitions) != null) {
          return false;
        }
        if (tally.pendingBytes() >= WINDOW_BYTES && !isAcknowledged(tally)) {
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
