package lineagemaster;

import java.nio.charset.StandardCharsets;
import java.security.SecureRandom;
import java.util.List;
import org.apache.spark.TaskContext;

/** One run's manifest, with the fields of `run_committed` and `run_kept` (docs/contract.md). */
final class Manifest {
  private static final SecureRandom RANDOM = new SecureRandom();

  private final StringBuilder text = new StringBuilder();

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

  /** A line of JSON for the driver. */
  String line() {
    return "{\"type\":\"run\",\"has_client\":true" + text + "}";
  }

  /** Sends it as `run_kept`. Nobody waits for it: a run that is not told of is not known. */
  void keep(Common common) {
    String event = "{\"version\":" + quoted(common.version) + ",\"type\":\"run_kept\",\"application_id\":"
        + quoted(common.applicationId) + ",\"time\":" + System.currentTimeMillis() + text + "}";
    byte[] key = common.applicationId.getBytes(StandardCharsets.UTF_8);
    byte[] message = event.getBytes(StandardCharsets.UTF_8);
    Sender.of(common).send(common.nodeTopic, -1, key, message, new Delivery());
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
