package lineagemaster.delivery;

/**
 * How long this JVM may wait for its broker in all: the budget that bounds what lineage can cost, with the numbers of
 * spark_agent/delivery/wait_budget.py. Waits of several tasks at the same time count once. Short waits that were
 * answered are free. Times are those of System.nanoTime.
 */
final class WaitBudget {
  private static final long SECOND = 1_000_000_000L;
  private static final long QUICK = SECOND / 20;
  /** What comes back of a spent budget with each nanosecond. */
  private static final double REFILL = 0.005;

  private static final long PAUSE = 20 * SECOND;
  private static final long MAX_PAUSE = 600 * SECOND;

  private final long budget;
  private long spent;
  private long waitedUntil = System.nanoTime(); // the end of the latest wait that was paid for
  private long pausedUntil = waitedUntil;
  private boolean isPaused;
  private long pause = PAUSE;

  WaitBudget(double seconds) {
    budget = (long) (Math.max(0, seconds) * SECOND);
  }

  /** Nobody waits now: the broker did not answer a short while ago. */
  synchronized boolean isPaused() {
    isPaused = isPaused && System.nanoTime() - pausedUntil < 0;
    return isPaused;
  }

  /** How long the next wait may last. A budget that is spent still allows a quick one. */
  synchronized long allowedNanos() {
    return isPaused() ? 0 : Math.max(QUICK, left());
  }

  /** A wait from `begin` until now is over. */
  synchronized void charge(long begin, boolean isAnswered) {
    long end = System.nanoTime();
    if (isAnswered && end - begin <= QUICK) {
      pause = PAUSE;
      return;
    }
    long alone = Math.max(0, end - Math.max(begin, waitedUntil)); // the part in which no other task waited
    spent = spentAt(begin) + alone;
    waitedUntil = Math.max(waitedUntil, end);
    if (!isAnswered && !isPaused()) {
      isPaused = true;
      pausedUntil = end + pause;
      pause = Math.min(2 * pause, MAX_PAUSE);
    }
  }

  /** The broker took a message. A broker that is merely too slow is not waited for because of that. */
  synchronized void answered() {
    if (isPaused && left() > budget / 4) {
      isPaused = false;
      pause = PAUSE;
    }
  }

  private long left() {
    return Math.max(0, budget - spentAt(System.nanoTime()));
  }

  private long spentAt(long now) {
    return Math.max(0, spent - (long) (REFILL * Math.max(0, now - waitedUntil)));
  }
}
