package lineagemaster.delivery;

import java.util.ArrayList;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Set;

/** Counts what became of one task run's messages. The Kafka client reports from a thread of its own. */
public final class DeliveryTally {
  private final Set<Message> pending = Collections.newSetFromMap(new IdentityHashMap<>());
  private long pendingBytes;
  private int failed;
  private int spooled;
  private long waitedNanos;
  private String problem = "";

  /** One more message is on its way. */
  synchronized void sent(Message message) {
    pending.add(message);
    pendingBytes += message.value.length;
  }

  /** A message is on its way no longer: it has arrived, never left, or is counted elsewhere. */
  synchronized void arrived(Message message) {
    pendingBytes -= pending.remove(message) ? message.value.length : 0;
    notifyAll();
  }

  synchronized boolean isPending(Message message) {
    return pending.contains(message);
  }

  /** A message is lost. */
  public synchronized void failed(String reason) {
    failed++;
    problem = reason;
  }

  /** So many messages wait in the spool. */
  synchronized void spooled(int count, String reason) {
    spooled += count;
    problem = reason;
  }

  /** How many messages are lost. */
  public synchronized int failedCount() {
    return failed;
  }

  /** How many messages have gone into the spool. */
  public synchronized int spooledCount() {
    return spooled;
  }

  /** Why messages are lost or late; empty while none is. */
  public synchronized String problem() {
    return problem;
  }

  public synchronized long waitedMs() {
    return Math.round(waitedNanos / 1e6);
  }

  synchronized int pendingCount() {
    return pending.size();
  }

  synchronized long pendingBytes() {
    return pendingBytes;
  }

  /** What is on its way, and from now on is not: what its client still reports of it counts no longer. */
  synchronized List<Message> takePending() {
    List<Message> messages = new ArrayList<>(pending);
    pending.clear();
    pendingBytes = 0;
    notifyAll();
    return messages;
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
    if (!pending.isEmpty() && milliseconds > 0) {
      wait(milliseconds);
    }
  }
}
