package lineagemaster.delivery;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.spark.SparkContext;
import org.apache.spark.util.AccumulatorV2;
import scala.Option;

/**
 * Brings lines of JSON from tasks to the driver, in Spark's own channel. Those of manifests come only of tasks that
 * succeeded; those of failures of any. On the driver they wait in one queue until Python takes them with `poll`.
 */
public final class ManifestAccumulator extends AccumulatorV2<String, List<String>> {
  private static final long serialVersionUID = 1;

  /** Synchronised: the executor's heartbeat may serialise it while a task ends. */
  private final List<String> lines = Collections.synchronizedList(new ArrayList<>());
  private final transient LinkedBlockingQueue<String> queue; // none in a copy: only the driver's own has one

  /** The driver's own. */
  public ManifestAccumulator() {
    this(new LinkedBlockingQueue<>());
  }

  private ManifestAccumulator(LinkedBlockingQueue<String> queue) {
    this.queue = queue;
  }

  /** On the driver: another one with the same queue, of which lines come of tasks that failed, too. */
  public ManifestAccumulator ofFailures(SparkContext context) {
    ManifestAccumulator failures = new ManifestAccumulator(queue);
    failures.register(context, Option.empty(), true);
    return failures;
  }

  /** On the driver: the next line, or null when none came within so long. */
  public String poll(long milliseconds) throws InterruptedException {
    return queue.poll(milliseconds, TimeUnit.MILLISECONDS);
  }

  /** One more line: of a task for the driver, or of the driver itself. */
  @Override
  public void add(String line) {
    if (queue != null) {
      queue.add(line);
    } else {
      lines.add(line);
    }
  }

  /** Something is not followed: the application is not complete. Never throws. */
  public void gap(String reason) {
    try {
      add("{\"type\":\"gap\",\"reason\":" + Json.quoted(reason) + "}");
    } catch (Throwable error) {
      // Nothing is left to say it with: no memory, for example.
    }
  }

  @Override
  public void merge(AccumulatorV2<String, List<String>> other) {
    other.value().forEach(this::add);
  }

  @Override
  public List<String> value() {
    synchronized (lines) {
      return new ArrayList<>(lines);
    }
  }

  @Override
  public boolean isZero() {
    return lines.isEmpty();
  }

  @Override
  public void reset() {
    lines.clear();
  }

  @Override
  public ManifestAccumulator copy() {
    ManifestAccumulator copy = new ManifestAccumulator(null);
    copy.lines.addAll(value());
    return copy;
  }
}
