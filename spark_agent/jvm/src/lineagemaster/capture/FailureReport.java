package lineagemaster.capture;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import lineagemaster.delivery.Json;
import lineagemaster.delivery.LineageLostException;
import org.apache.spark.TaskContext;
import org.apache.spark.TaskKilledException;
import org.apache.spark.shuffle.FetchFailedException;

/**
 * What an attempt that failed says to the driver, which knows the plan (spark_agent/sql/runtime/failed_tasks.py): the
 * error and where in Spark it was raised, how many rows each scan has given, and the last ids that each tap has seen.
 */
final class FailureReport {
  /** Of a message so many characters at the beginning and at the end are kept: Python's errors stand at the end. */
  private static final int MAX_BEGIN = 4_000;
  private static final int MAX_END = 12_000;

  private final TaskContext task;
  private final Throwable error;
  private final ErrorOrigin origin;
  private final List<String> scans = new ArrayList<>();
  private final List<String> taps = new ArrayList<>();

  FailureReport(TaskContext task, Throwable error) {
    this.task = task;
    Throwable shown = error;
    ErrorOrigin known = ErrorOrigin.of(error);
    for (Throwable cause = error.getCause(); known == ErrorOrigin.ELSEWHERE && cause != null && cause != shown;
        cause = cause.getCause()) {
      known = ErrorOrigin.of(cause);
      shown = known == ErrorOrigin.ELSEWHERE ? shown : cause;
    }
    this.error = shown;
    this.origin = known;
  }

  /** Is it an error of what the task does, rather than of Spark, which will try again? */
  static boolean isOfTask(Throwable error) {
    return !(error instanceof TaskKilledException
        || error instanceof FetchFailedException
        || error instanceof InterruptedException
        || error instanceof LineageLostException);
  }

  /**
   * A partition of a scan has given so many rows.
   *
   * @param passes how often it was read
   * @param isWithinFile is the block of a file still being read
   * @param parts the blocks of files, as a list in JSON
   */
  void scan(int node, int partition, long run, long rows, long passes, boolean isWithinFile, String parts) {
    scans.add("{\"node\":" + node + ",\"split\":" + partition + ",\"run\":" + run + ",\"rows\":" + rows + ",\"passes\":"
        + passes + ",\"is_within_file\":" + isWithinFile + ",\"parts\":" + parts + "}");
  }

  /** The ids of the last row that a tap has seen, for each column of ids; none if it has seen no row. */
  void tap(int node, int partition, long run, int[] sources, long[] ids) {
    taps.add("{\"node\":" + node + ",\"split\":" + partition + ",\"run\":" + run + ",\"sources\":"
        + Arrays.toString(sources) + ",\"ids\":" + Arrays.toString(ids) + "}");
  }

  /** A line of JSON for the driver. */
  String line() {
    return "{\"type\":\"failed\",\"split\":" + task.partitionId() + ",\"attempt\":" + task.taskAttemptId()
        + ",\"stage\":" + task.stageId() + ",\"origin\":" + Json.quoted(origin.name().toLowerCase(java.util.Locale.ROOT))
        + ",\"error\":" + Json.quoted(error.getClass().getName()) + ",\"message\":" + Json.quoted(message())
        + ",\"scans\":" + scans + ",\"taps\":" + taps + ",\"call\":" + call() + "}";
  }

  private String call() {
    return origin == ErrorOrigin.PYTHON ? FailedCall.json(task) : "null";
  }

  private String message() {
    String message = String.valueOf(error.getMessage());
    int length = message.length();
    return length <= MAX_BEGIN + MAX_END
        ? message
        : message.substring(0, MAX_BEGIN) + "\n" + message.substring(length - MAX_END);
  }
}
