package lineagemaster.delivery;

import java.nio.charset.StandardCharsets;
import java.security.SecureRandom;
import java.util.List;
import org.apache.spark.TaskContext;

/** The commit manifest of one task run, with the fields of `run_committed` and `run_kept` (docs/contract.md). */
public final class Manifest {
  private static final SecureRandom RANDOM = new SecureRandom();

  private final StringBuilder fields = new StringBuilder();
  private int cut;

  /**
   * @param partition of the node
   * @param input the node whose rows went into the run
   * @param nodes the others that the run has flows of
   */
  public Manifest(TaskContext task, long run, int partition, int input, List<Integer> nodes) {
    number("run", run);
    number("split", partition);
    number("attempt", task.taskAttemptId());
    number("stage", task.stageId());
    number("input", input);
    json("nodes", nodes.toString());
    json("action", "null");
    json("overridden", "[]");
    json("counts", "{}");
    number("withheld", 0);
  }

  /** Says which execution of a query the task is of, if it is of one. */
  public Manifest execution(TaskContext task) {
    return property(task, "spark.sql.execution.id", "execution");
  }

  /** Says a local property of the job under this name, if it is a number. */
  public Manifest property(TaskContext task, String property, String name) {
    String value = task.getLocalProperty(property);
    if (value != null && value.chars().allMatch(c -> c >= '0' && c <= '9') && !value.isEmpty()) {
      json(name, value);
    }
    return this;
  }

  /** The number of a new task run: random, below 2**53, so that readers of JSON do not round it. */
  public static long newRun() {
    return RANDOM.nextLong() >>> 11;
  }

  public Manifest number(String name, long value) {
    return json(name, Long.toString(value));
  }

  public Manifest json(String name, String value) {
    fields.append(",\"").append(name).append("\":").append(value);
    return this;
  }

  public Manifest text(String name, String value) {
    return json(name, Json.quoted(value));
  }

  /** Says how many keys were cut. */
  public Manifest cut(int count) {
    cut = count;
    return this;
  }

  /** A line of JSON for the driver. */
  public String line() {
    return "{\"type\":\"run\",\"has_client\":true" + fields + ",\"cut\":" + cut + "}";
  }

  /** Sends it as `run_kept`. Nobody waits for it: if it is lost, results say that the run is not known. */
  public void sendAsCached(AgentConfig config) {
    String event = "{\"version\":" + Json.quoted(config.contractVersion) + ",\"type\":\"run_kept\",\"application_id\":"
        + Json.quoted(config.applicationId) + ",\"time\":" + System.currentTimeMillis() + fields + ",\"cut\":" + cut + "}";
    byte[] key = config.applicationId.getBytes(StandardCharsets.UTF_8);
    byte[] message = event.getBytes(StandardCharsets.UTF_8);
    Sender.of(config).send(config.nodeTopic, -1, key, message, new DeliveryTally());
  }
}
