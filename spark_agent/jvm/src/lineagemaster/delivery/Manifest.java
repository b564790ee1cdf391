package lineagemaster.delivery;

import java.nio.charset.StandardCharsets;
import java.security.SecureRandom;
import java.util.List;
import org.apache.spark.TaskContext;

/** One run's manifest, with the fields of `run_committed` and `run_kept` (docs/contract.md). */
public final class Manifest {
  private static final SecureRandom RANDOM = new SecureRandom();

  private final StringBuilder text = new StringBuilder();

  public Manifest(TaskContext task, long run, int split, int input, List<Integer> nodes) {
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
  public Manifest execution(TaskContext task) {
    String execution = task.getLocalProperty("spark.sql.execution.id");
    if (execution != null && execution.chars().allMatch(c -> c >= '0' && c <= '9') && !execution.isEmpty()) {
      json("execution", execution);
    }
    return this;
  }

  /** A run's number: random, below 2**53, so that readers of JSON keep it whole. */
  public static long newRun() {
    return RANDOM.nextLong() >>> 11;
  }

  public Manifest number(String name, long value) {
    return json(name, Long.toString(value));
  }

  public Manifest json(String name, String value) {
    text.append(",\"").append(name).append("\":").append(value);
    return this;
  }

  public Manifest text(String name, String value) {
    return json(name, Json.quoted(value));
  }

  /** A line of JSON for the driver. */
  public String line() {
    return "{\"type\":\"run\",\"has_client\":true" + text + "}";
  }

  /** Sends it as `run_kept`. Nobody waits for it: a run that is not told of is not known. */
  public void keep(AgentConfig common) {
    String event = "{\"version\":" + Json.quoted(common.version) + ",\"type\":\"run_kept\",\"application_id\":"
        + Json.quoted(common.applicationId) + ",\"time\":" + System.currentTimeMillis() + text + "}";
    byte[] key = common.applicationId.getBytes(StandardCharsets.UTF_8);
    byte[] message = event.getBytes(StandardCharsets.UTF_8);
    Sender.of(common).send(common.nodeTopic, -1, key, message, new DeliveryTally());
  }
}
