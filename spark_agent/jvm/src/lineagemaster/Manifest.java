package lineagemaster;

import java.security.SecureRandom;
import java.util.List;
import org.apache.spark.TaskContext;

/** One run's manifest as a line of JSON, with the fields of `run_committed` (docs/contract.md). */
final class Manifest {
  private static final SecureRandom RANDOM = new SecureRandom();

  private final StringBuilder text = new StringBuilder("{\"type\":\"run\"");

  Manifest(TaskContext task, long run, int split, int input, List<Integer> nodes) {
    number("run", run);
    number("split", split);
    number("attempt", task.taskAttemptId());
    number("stage", task.stageId());
    number("input", input);
    json("nodes", nodes.toString());
    json("action", "null");
    json("overridden", "[]");
    json("counts", "{}");
    json("has_client", "true");
    number("cut", 0);
    number("withheld", 0);
  }

  /** Says which execution of a query the task is of, if it is of one. */
  Manifest execution(TaskContext task) {
    String execution = task.getLocalProperty("spark.sql.execution.id");
    if (execution != null && execution.chars().allMatch(c -> c >= '0' && c <= '9') && !execution.isEmpty()) {
      json("execution", execution);
    }
    return this;
  }

  /** A run's number: random, below 2**53, so that readers of JSON keep it whole. */
  static long newRun() {
    return RANDOM.nextLong() >>> 11;
  }

  Manifest number(String name, long value) {
    return json(name, Long.toString(value));
  }

  Manifest json(String name, String value) {
    text.append(",\"").append(name).append("\":").append(value);
    return this;
  }

  Manifest text(String name, String value) {
    return json(name, quoted(value));
  }

  String line() {
    return text.append('}').toString();
  }

  /** A JSON string. Lone surrogates, which UTF-8 has no bytes for, are escaped too. */
  static String quoted(String value) {
    StringBuilder quoted = new StringBuilder(value.length() + 2).append('"');
    for (int i = 0; i < value.length(); i++) {
      char c = value.charAt(i);
      if (c == '"' || c == '\\') {
        quoted.append('\\').append(c);
      } else if (c < ' ' || c > '~') {
        quoted.append(String.format("\\u%04x", (int) c));
      } else {
        quoted.append(c);
      }
    }
    return quoted.append('"').toString();
  }
}
