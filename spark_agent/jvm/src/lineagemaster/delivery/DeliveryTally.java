package lineagemaster.delivery;

/** Counts what became of one run's messages. The Kafka client reports from a thread of its own. */
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
  public synchronized void lost(String why) {
    pending--;
    fail(why);
    notifyAll();
  }

  /** A message is lost that never was on its way. */
  public synchronized void fail(String why) {
    failed++;
    problem = why;
  }

  public synchronized int failed() {
    return failed;
  }

  synchronized int pending() {
    return pending;
  }

  public synchronized String problem() {
    return problem;
  }

  public synchronized long waitedMs() {
    return Math.round(waitedNanos / 1e6);
  }

  synchronized void waited(long nanos) {
    waitedNanos += nanos;
  }

  /** Why messages that are still on their way have not arrived. */
  synchronized void isLate(String why) {
    problem = problem.isEmpty() ? why : problem;
  }

  /** Waits until nothing is on its way, but not longer than this. */
  synchronized void await(long milliseconds) throws InterruptedException {
    if (pending > 0 && milliseconds > 0) {
      wait(milliseconds);
    }
  }
}
