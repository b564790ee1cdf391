package lineagemaster.capture;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import lineagemaster.delivery.AgentConfig;
import lineagemaster.delivery.LineageLostException;
import lineagemaster.delivery.ManifestAccumulator;
import org.apache.spark.TaskContext;
import org.apache.spark.util.TaskCompletionListener;
import org.apache.spark.util.TaskFailureListener;

/**
 * What one task attempt captures. A task that opens the same generated code once more (coalesce, union) gets the same
 * part again. The protocol, when the attempt has ended:
 *
 * <ol>
 *   <li>Where a part has filled a cache, each part reports what the cache is made of. The cache remains, whatever
 *       becomes of the attempt: it may fail, be killed, or succeed when Spark no longer listens. So the task itself
 *       reports it.
 *   <li>Of an attempt that failed while Python read its rows, each part reports the same: Python says on which row.
 *   <li>Of an attempt that succeeded, each part sends its rest.
 *   <li>Of such an attempt, each part waits for the broker and commits its manifests. Only a loss fails the task, and
 *       only where the user asked for that.
 * </ol>
 *
 * Of an attempt that failed, the driver learns what it failed on: how far each part was ({@link FailureReport}). Where
 * nobody asks for lineage, none of this is done.
 */
final class TaskCapture implements TaskCompletionListener, TaskFailureListener {
  /** One of the things that a task captures. */
  interface Part {
    /** Has the attempt, which has ended, left in a cache the rows that this part has seen? */
    default boolean hasFilledCache() {
      return false;
    }

    /** Does a worker of the same task read the rows that this part has seen, as records of an RDD? */
    default boolean isReadInPython() {
      return false;
    }

    /** Sends what is left, and a manifest as `run_kept`. Waits for nothing. */
    void report();

    /** The same, if a cache may hold what is made of it. */
    default void reportCached() {
      report();
    }

    /** Sends what is left. */
    void finish();

    /**
     * Waits for the broker, within the wait budget, and hands the commit manifests in.
     *
     * @throws LineageLostException where something was lost and the task is to fail for that
     */
    void commit();

    /** Says how far it was when the attempt failed. */
    void describe(FailureReport report);
  }

  private static final ConcurrentHashMap<TaskContext, TaskCapture> TASKS = new ConcurrentHashMap<>();

  private final Map<Object, Part> parts = new LinkedHashMap<>();
  private final ManifestAccumulator manifests;
  private final ManifestAccumulator failures;
  private final boolean isSilent;
  private boolean hasAsked; // where calls of Python fail; set before the listeners are there

  private TaskCapture(AgentConfig config) {
    manifests = config.manifests;
    failures = config.failures;
    isSilent = config.isSilent;
  }

  /** The running task's part of this key, made on first use. Without a task (on the driver) it is nobody's. */
  @SuppressWarnings("unchecked") // a key names one class of parts
  static <P extends Part> P part(AgentConfig config, Object key, Supplier<P> constructor) {
    TaskContext task = TaskContext.get();
    if (task == null) {
      return constructor.get();
    }
    TaskCapture capture = TASKS.computeIfAbsent(task, missing -> new TaskCapture(config));
    boolean isFirst;
    P part;
    synchronized (capture) {
      isFirst = capture.parts.isEmpty();
      part = (P) capture.parts.computeIfAbsent(key, missing -> constructor.get());
    }
    if (isFirst) { // outside of the lock: a task that has ended calls its listener at once
      capture.hasAsked = config.attendsCalls() && FailedCall.ask(task);
      task.addTaskFailureListener(capture);
      task.addTaskCompletionListener(capture);
    }
    return part;
  }

  /** The error goes on as it is. Another thread of the task may still read rows: it has read the culprit before. */
  @Override
  public void onTaskFailure(TaskContext task, Throwable error) {
    if (isSilent || task.isInterrupted() || !TASKS.containsKey(task) || !FailureReport.isOfTask(error)) {
      return;
    }
    try {
      FailureReport report = new FailureReport(task, error);
      synchronized (this) {
        parts.values().forEach(part -> part.describe(report));
      }
      failures.add(report.line());
    } catch (Throwable bug) {
      // What the task failed on is not known, then. No lineage is missing.
    }
  }

  @Override
  public void onTaskCompletion(TaskContext task) {
    TASKS.remove(task);
    if (hasAsked) {
      FailedCall.end(task);
    }
    if (isSilent) {
      return;
    }
    boolean hasSucceeded = !task.isFailed() && !task.isInterrupted();
    synchronized (this) {
      try {
        if (parts.values().stream().anyMatch(Part::hasFilledCache)) {
          parts.values().forEach(Part::reportCached);
        } else if (!hasSucceeded && !task.isInterrupted() && parts.values().stream().anyMatch(Part::isReadInPython)) {
          parts.values().forEach(Part::report);
        }
        if (hasSucceeded) {
          parts.values().forEach(Part::finish);
          parts.values().forEach(Part::commit); // behind all of `finish`: one wait for the blocks of them all
        }
      } catch (LineageLostException lost) {
        throw lost;
      } catch (Throwable error) { // an agent bug, which must not fail the task
        manifests.gap("what a task counted of a DataFrame's rows is lost (" + error + ")");
      }
    }
  }
}
