package lineagemaster.capture;

import java.util.Arrays;
import java.util.Set;
import lineagemaster.delivery.DeliveryTally;
import lineagemaster.delivery.FlowBlock;
import lineagemaster.delivery.LineageLostException;
import lineagemaster.delivery.Manifest;
import lineagemaster.delivery.Sender;
import org.apache.spark.TaskContext;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * The rows that went through one tap in one task attempt, those of an output in one pass over one partition: a run.
 * Generated code writes ids and keys into its arrays; full ones leave as blocks. Nothing here throws into the job: what
 * fails is counted, with the reason.
 */
public final class TapBuffer implements TaskCapture.Part {
  /** Stands for a null: ids are never negative. */
  public static final long NONE = -1;

  /** Rows of a block; a column of them takes 512 KiB at most. */
  private static final int CHUNK = 1 << 16;
  /** Entries of a block of pairs, which has two columns: below the 900,000 bytes that a block may take. */
  private static final int PAIRS = 50_000;
  private static final int FIRST_CAPACITY = 1 << 10;
  /** Where Spark computes a plan that is read as an RDD (DataFrame.rdd), and an RDD that it keeps (checkpoint). */
  private static final Set<String> READERS_OF_RDDS = Set.of(
      "org.apache.spark.sql.execution.SQLExecutionRDD.compute",
      "org.apache.spark.rdd.RDD.getOrCompute",
      "org.apache.spark.rdd.ReliableCheckpointRDD$.writePartitionToCheckpointFile");

  /** The property of jobs where something is persisted, as spark_agent/worker/capture.py has it. */
  public static final String KEEPING = "spark.lineage.keeping";

  /** One array for each column of ids. */
  public final long[][] ids;
  /** The keys of the rows, if the tap has them. */
  public long[] keys;
  /** How many rows the arrays hold. */
  public int rows;
  /** The key of the place that the last row went to; keys are never negative. */
  public long place = NONE;
  /** Is each row so far one line of its file? */
  public boolean isOfLines = true;

  private final TaskContext task = TaskContext.get();
  private final TapSpec spec;
  private final long run = Manifest.newRun();
  private final byte[] messageKey;
  private final KeyCodes codes;
  private final IdSpans spans = new IdSpans();
  private final OutputFiles places;
  private final DeliveryTally delivery = new DeliveryTally();
  private final int split;
  private final OutputPasses passes; // of an output
  private final boolean isReadAsRdd;
  private final boolean isKept;
  private final CacheFill filling; // of the rows that are kept
  private final int most; // rows of a block
  private int capacity;
  private long first; // the number of the arrays' first row
  private int blocks;

  private TapBuffer(TapSpec spec, int split, OutputPasses passes, int most) {
    this.spec = spec;
    this.split = split;
    this.passes = passes;
    this.most = most;
    Sender.prepare(spec.common);
    isReadAsRdd = !spec.hasKey()
        && StackWalker.getInstance().walk(frames -> frames.anyMatch(
            each -> READERS_OF_RDDS.contains(each.getClassName() + "." + each.getMethodName())));
    isKept = task != null && (spec.isKept || isReadAsRdd && "true".equals(task.getLocalProperty(KEEPING)));
    filling = isKept && !spec.hasKey() ? new CacheFill(task) : null;
    ids = new long[spec.sources.length][0];
    keys = spec.hasKey() ? new long[0] : null;
    codes = spec.hasKey() ? new KeyCodes(PAIRS) : null;
    places = spec.hasPlaces() ? new OutputFiles(spec) : null;
    messageKey = (spec.common.applicationId + "#" + run).getBytes(java.nio.charset.StandardCharsets.UTF_8);
  }

  /** The buffer of this tap in the task that is running, for one pass over the partition of this index. */
  public static TapBuffer open(TapSpec spec, int partition) {
    TaskContext task = TaskContext.get();
    if (spec.hasKey()) { // groups are made of the records with their keys, of whatever partition
      return TaskCapture.of(spec.common, spec, () -> new TapBuffer(spec, task == null ? 0 : task.partitionId(), null, CHUNK));
    }
    return TaskCapture.of(spec.common, spec, OutputPasses::new).open(spec, partition);
  }

  static TapBuffer ofOutput(TapSpec spec, int partition, boolean isOneOfMany, OutputPasses passes) {
    return new TapBuffer(spec, partition, passes, isOneOfMany ? FIRST_CAPACITY : CHUNK);
  }

  /** How many rows it has seen. */
  synchronized long seen() {
    return first + rows;
  }

  /** Where the next row is written. It counts when `rows` has been set behind it. */
  public int slot() {
    if (rows == capacity) {
      makeRoom();
    }
    return rows;
  }

  /** The row in the slot that was given last is the first one of those that go to another place. */
  public void enter(long key, int bucket, UTF8String[] values) {
    place = key;
    try {
      places.begin(key, first + rows, bucket, values);
    } catch (Throwable error) { // a fault of ours must not become one of the job
      places.lose();
    }
  }

  private void makeRoom() {
    if (capacity == 0 && passes != null) {
      passes.enter(this, split);
    }
    int larger = capacity == 0 ? FIRST_CAPACITY : capacity * 4;
    if (larger <= most && grow(larger)) {
      capacity = larger;
    } else if (capacity == 0) { // the job needs the memory: row by row, then
      grow(1);
      capacity = 1;
    } else {
      leave();
    }
  }

  private boolean grow(int size) {
    try {
      for (int i = 0; i < ids.length; i++) {
        ids[i] = Arrays.copyOf(ids[i], size);
      }
      if (keys != null) {
        keys = Arrays.copyOf(keys, size);
      }
      return true;
    } catch (OutOfMemoryError error) { // the job needs it: small blocks, then
      return false;
    }
  }

  /** Sends the rows that the arrays hold. */
  private synchronized void leave() {
    int count = rows;
    if (task != null && count > 0 && CaptureStages.IS_ENCODED) {
      try {
        for (int i = 0; i < ids.length; i++) {
          sendIds(ids[i], count, spec.sources[i]);
        }
        if (codes != null) {
          sendCodes(count);
        }
      } catch (Throwable error) { // a fault of ours must not become one of the job
        blocks++;
        delivery.fail("a fault of the agent: " + error);
      }
    }
    first += count;
    rows = 0;
  }

  private void sendIds(long[] column, int count, int source) {
    int nulls = 0;
    for (int i = 0; i < count; i++) {
      nulls += column[i] >>> 63;
    }
    if (nulls == 0) {
      send(spans.block(spec.node, source, column, count).outputs(first));
      return;
    }
    long[] in = new long[Math.min(count - nulls, PAIRS)];
    long[] out = new long[in.length];
    int held = 0;
    for (int i = 0; i < count; i++) {
      if (column[i] >= 0) {
        in[held] = column[i];
        out[held++] = first + i;
        if (held == PAIRS) {
          send(new FlowBlock(spec.node, "pairs").from(source).column("out", out, held).column("in", in, held));
          held = 0;
        }
      }
    }
    if (held > 0) {
      send(new FlowBlock(spec.node, "pairs").from(source).column("out", out, held).column("in", in, held));
    }
  }

  /** Sends the codes of the arrays' keys, which take the place of the keys. */
  private void sendCodes(int count) {
    for (int i = 0; i < count; i++) {
      keys[i] = codes.of(keys[i] & Long.MAX_VALUE);
      if (codes.waiting() == PAIRS) {
        sendKeys();
      }
    }
    send(new FlowBlock(spec.codes, "codes").inputs(first).column("code", keys, count));
  }

  private void sendKeys() {
    int count = codes.waiting();
    long[] in = new long[count];
    long code = codes.size() - count;
    for (int i = 0; i < count; i++) {
      in[i] = code + i;
    }
    send(new FlowBlock(spec.keys, "pairs").column("out", codes.taken(), count).column("in", in, count));
  }

  private void send(FlowBlock block) {
    byte[] message = block.encoded(spec.common.applicationId, run, split, blocks++);
    if (!CaptureStages.IS_SENT) {
      return;
    }
    Sender.of(spec.common).send(spec.common.topic, split % spec.common.partitions, messageKey, message, delivery);
  }

  @Override
  public boolean hasFilled() {
    return filling != null && filling.hasFilled();
  }

  @Override
  public synchronized void finish() {
    leave();
    if (codes != null && codes.waiting() > 0) {
      try {
        sendKeys();
      } catch (Throwable error) { // as above
        blocks++;
        delivery.fail("a fault of the agent: " + error);
      }
    }
  }

  @Override
  public synchronized void keep() {
    if (isKept) {
      finish();
      manifest(delivery.failed(), 0).keep(spec.common);
    }
  }

  private Manifest manifest(int dropped, int unconfirmed) {
    Manifest manifest = new Manifest(task, run, split, spec.node, spec.nodes());
    if (!isReadAsRdd) { // else these rows are of no execution of this plan, whichever reads them
      manifest.execution(task);
    }
    manifest.number("blocks", blocks).number("dropped", dropped).number("unconfirmed", unconfirmed);
    manifest.number("inputs", first).number("outputs", codes == null ? first : codes.size());
    return manifest.number("waited_ms", delivery.waitedMs()).text("problem", dropped == 0 ? "" : delivery.problem());
  }

  @Override
  public synchronized void tell() {
    int unconfirmed = Sender.of(spec.common).settle(delivery);
    int dropped = delivery.failed() + unconfirmed;
    Manifest manifest = manifest(dropped, unconfirmed);
    if (dropped > 0 && spec.common.failsOnLoss) {
      throw new LineageLostException("lineage of split " + task.partitionId() + " is incomplete, and "
          + "spark.lineage.onError=fail: " + dropped + " of " + blocks + " blocks are lost; " + delivery.problem());
    }
    if (places != null) {
      manifest.json("places", places.json(first));
    }
    if (!isOfLines) {
      manifest.json("lines", "false");
    }
    spec.common.manifests.add(manifest.line());
  }
}
