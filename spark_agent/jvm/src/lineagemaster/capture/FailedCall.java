package lineagemaster.capture;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import org.apache.spark.SparkFiles;
import org.apache.spark.TaskContext;

/**
 * On which row of its batch a function of Python has failed, as its worker says in a file of the task
 * (spark_agent/worker/function_failures.py).
 */
final class FailedCall {
  private static final String FILE_PREFIX = ".lineage-call-";

  private FailedCall() {}

  /** As a list in JSON: the place of the row and the size of its batch; null if the worker did not say it. */
  static String json(TaskContext task) {
    Path file = Paths.get(SparkFiles.getRootDirectory(), FILE_PREFIX + task.taskAttemptId());
    try {
      String[] numbers = new String(Files.readAllBytes(file), StandardCharsets.US_ASCII).split(" ");
      Files.delete(file);
      return "[" + Long.parseLong(numbers[0]) + "," + Long.parseLong(numbers[1]) + "]";
    } catch (IOException | RuntimeException missing) {
      return "null";
    }
  }
}
