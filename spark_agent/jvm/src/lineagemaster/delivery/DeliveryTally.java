package lineagemaster.delivery;

/** Counts what became of one task run's messages. The Kafka client reports from a thread of its own. */
public final class DeliveryTally {
  private int pending;
  private int failed;
  private long waitedNanos;
  private String problem = "";

  /** One more message is on its way. */
  public synchronized void sent() {
    pending++;
  }

  /** A message that was on its way has arrived. */
  public synchronized void arrived() {
    pending--;
    notifyAll();
  }

  /** A message that was on its way is lost. */
  public synchronized void lost(String reason) {
    pending--;
    failed(reason);
    notifyAll();
  }

  /** A message is lost that never was on its way. */
  public synchronized void failed(String reason) {
    failed++;
    problem = reason;
  }

  /** How many messages are lost. */
  public synchronized int failedCount() {
    return failed;
  }

  /** Why messages are lost or late; empty while none is. */
  public synchronized String problem() {
    return problem;
  }

  public synchronized long waitedMs() {
    return Math.round(waitedNanos / 1e6);
  }

  synchronized int pendingCount() {
    return pending;
  }

  synchronized void waited(long nanos) {
    waitedNanos += nanos;
  }

  /** Messages are still on their way when nobody waits for them any longer. */
  synchronized void late(String reason) {
    problem = problem.isEmpty() ? reason : problem;
  }

  /** Waits until nothing is on its way, but not longer than this. */
  synchronized void await(long milliseconds) throws InterruptedException {
    if (pending > 0 && milliseconds > 0) {
      wait(milliseconds);
    }
  }
}
