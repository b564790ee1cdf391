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
 * (spark_agent/worker/function_failures.py). A task asks for that by an empty file, and removes it when it ends. A
 * worker makes no file, so nothing is left of a task that does not ask.
 */
final class FailedCall {
  private static final String FILE_PREFIX = ".lineage-call-";

  private FailedCall() {}

  /** Lets workers of the running task say it. False if they cannot. */
  static boolean ask(TaskContext task) {
    try {
      Files.createFile(file(task));
      return true;
    } catch (IOException | RuntimeException unwritable) {
      return false;
    }
  }

  /** Removes what `ask` made. */
  static void end(TaskContext task) {
    try {
      Files.deleteIfExists(file(task));
    } catch (IOException | RuntimeException unwritable) {
      // Spark removes the folder.
    }
  }

  private static Path file(TaskContext task) {
    return Paths.get(SparkFiles.getRootDirectory(), FILE_PREFIX + task.taskAttemptId());
  }

  /** As a list in JSON: the place of the row and the size of its batch; null if the worker did not say it. */
  static String json(TaskContext task) {
    try {
      String[] numbers = new String(Files.readAllBytes(file(task)), StandardCharsets.US_ASCII).split(" ");
      return "[" + Long.parseLong(numbers[0]) + "," + Long.parseLong(numbers[1]) + "]";
    } catch (IOException | RuntimeException missing) {
      return "null";
    }
  }
}
