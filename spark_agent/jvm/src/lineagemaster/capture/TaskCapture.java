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

/**
 * What one task attempt gathers, found again wherever the task opens the same generated code once more (coalesce,
 * union). When the attempt has succeeded, each part sends its rest and then, once, tells its manifests. Only a loss that
 * the user wants to hear of fails it. What a cache may hold is there whatever becomes of the attempt, also where it
 * fails, is killed, or succeeds when Spark does not listen any more: of that the task itself tells.
 */
final class TaskCapture implements TaskCompletionListener {
  /** Something that a task gathers. */
  interface Part {
    /** Has the attempt, which has ended, left in a cache what this part has seen? */
    default boolean hasFilled() {
      return false;
    }

    /** Of an attempt that has: send what is left and say what the cache is made of. Waits for nothing. */
    void keep();

    /** Send what is left. */
    void finish();

    /**
     * Wait for the broker within the patience and hand the manifests in.
     *
     * @throws LineageLostException where something was lost and the task is to fail for that
     */
    void tell();
  }

  private static final ConcurrentHashMap<TaskContext, TaskCapture> TASKS = new ConcurrentHashMap<>();

  private final Map<Object, Part> parts = new LinkedHashMap<>();
  private final ManifestAccumulator manifests;

  private TaskCapture(ManifestAccumulator manifests) {
    this.manifests = manifests;
  }

  /** The task's part of this key, made on first use. Without a task (on the driver) it is nobody's. */
  @SuppressWarnings("unchecked") // a key names one class of parts
  static <P extends Part> P of(AgentConfig common, Object key, Supplier<P> make) {
    TaskContext task = TaskContext.get();
    if (task == null) {
      return make.get();
    }
    TaskCapture all = TASKS.computeIfAbsent(task, none -> new TaskCapture(common.manifests));
    boolean isFirst;
    P part;
    synchronized (all) {
      isFirst = all.parts.isEmpty();
      part = (P) all.parts.computeIfAbsent(key, none -> make.get());
    }
    if (isFirst) { // outside of the lock: a task that has ended calls its listener at once
      task.addTaskCompletionListener(all);
    }
    return part;
  }

  @Override
  public void onTaskCompletion(TaskContext task) {
    TASKS.remove(task);
    boolean isWell = !task.isFailed() && !task.isInterrupted();
    synchronized (this) {
      try {
        if (parts.values().stream().anyMatch(Part::hasFilled)) {
          parts.values().forEach(Part::keep);
        }
        if (isWell) {
          parts.values().forEach(Part::finish);
          parts.values().forEach(Part::tell); // after all: one wait for the blocks of them all
        }
      } catch (LineageLostException lost) {
        throw lost;
      } catch (Throwable error) { // an agent bug, which must not fail the task
        manifests.gap("what a task counted of a DataFrame's rows is lost (" + error + ")");
      }
    }
  }
}
