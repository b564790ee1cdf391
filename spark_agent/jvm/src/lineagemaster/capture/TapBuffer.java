package lineagemaster.capture;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Set;
import java.util.function.Predicate;
import lineagemaster.delivery.DeliveryTally;
import lineagemaster.delivery.FlowBlock;
import lineagemaster.delivery.LineageLostException;
import lineagemaster.delivery.Manifest;
import lineagemaster.delivery.Sender;
import org.apache.spark.TaskContext;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * The rows that went through one tap in one task attempt, those of an output in one pass over one partition: a task
 * run. Generated code writes ids and keys into its arrays; full ones are sent as blocks. Nothing here throws into the
 * job: what fails is counted, with the reason.
 */
public class TapBuffer implements TaskCapture.Part {
  /** Stands for a null: ids are never negative. */
  public static final long NONE = -1;

  /** The property of jobs where something is persisted, as spark_agent/worker/plan.py has it. */
  public static final String HAS_PERSISTED = "spark.lineage.keeping";

  /** The property of jobs that a library of the JVM runs for one call: its number, as runtime/fits.py sets it. */
  public static final String TAKER = "spark.lineage.taker";

  /** What a statement does with a row that it writes into another file as it is; see spark_agent/contract/blocks.py. */
  public static final long COPY = 4;

  /** Rows of a block; a column of them takes 512 KiB at most. */
  private static final int MAX_ROWS = 1 << 16;
  /** Entries of a block of pairs, which has two columns: below the 900,000 bytes that a block may take. */
  private static final int MAX_PAIRS = 50_000;
  private static final int FIRST_CAPACITY = 1 << 10;
  /** Where Spark computes a plan that is read as an RDD (DataFrame.rdd), and an RDD that it persists (checkpoint). */
  private static final Set<String> READERS_OF_RDDS = Set.of(
      "org.apache.spark.sql.execution.SQLExecutionRDD.compute",
      "org.apache.spark.rdd.RDD.getOrCompute",
      "org.apache.spark.rdd.ReliableCheckpointRDD$.writePartitionToCheckpointFile");
  /** Runs what a shuffle reads: where a plan ends so, its rows go to other tasks behind it. */
  private static final String SHUFFLE_TASK = "org.apache.spark.scheduler.ShuffleMapTask";
  private static final String PYTHON = "org.apache.spark.api.python.";

  /** One array for each column of ids. */
  public final long[][] ids;
  /** The keys of the rows, if the tap has them, or their digests, or what a statement did with them. */
  public long[] keys;
  /** How many rows the arrays hold. */
  public int rows;
  /** The key of the file that the last row went into; such keys are never negative. */
  public long fileKey = NONE;
  /** Is each row so far one line of its file? */
  public boolean isLinePerRow = true;

  private final TaskContext task = TaskContext.get();
  private final TapSpec spec;
  private final long run = Manifest.newRun();
  private final byte[] messageKey;
  private final KeyCodes codes;
  private final ReadSteps steps; // where they take the place of codes
  private final IdSpans spans = new IdSpans();
  private final OutputFiles outputFiles;
  private final RecordKeys recordKeys; // of an output; null: its records have none
  private final DeliveryTally tally = new DeliveryTally();
  private final int partition;
  private final OutputPasses passes; // of an output
  private final boolean isReadAsRdd;
  private final boolean isShuffled; // behind it
  private final boolean isReadInPython; // as records of an RDD
  private final boolean isPersisted;
  private final CacheFill cacheFill; // of rows that are persisted
  private final int maxRows; // of a block
  private int capacity;
  private long firstRow; // the number of the arrays' first row
  private int blockCount;
  private boolean areStepsSent;
  private long[] lastIds; // of the last block of rows that go into several files
  private volatile long readCount; // in steps: how many rows came; another thread of the task may ask

  /** Of rows without keys that meet others. */
  TapBuffer(TapSpec spec, int partition) {
    this(spec, partition, null, MAX_ROWS, false);
  }

  private TapBuffer(TapSpec spec, int partition, OutputPasses passes, int maxRows, boolean hasKeys) {
    this.spec = spec;
    this.partition = partition;
    this.passes = passes;
    this.maxRows = maxRows;
    if (!spec.config.isSilent) {
      Sender.prepare(spec.config);
    }
    isReadAsRdd = !spec.hasKey() && isCalledBy(
        frame -> READERS_OF_RDDS.contains(frame.getClassName() + "." + frame.getMethodName()));
    isShuffled = !spec.hasKey() && isCalledBy(frame -> frame.getClassName().equals(SHUFFLE_TASK));
    isReadInPython = isReadAsRdd && isCalledBy(frame -> frame.getClassName().startsWith(PYTHON));
    isPersisted = task != null
        && (spec.isPersisted || isReadAsRdd && "true".equals(task.getLocalProperty(HAS_PERSISTED)));
    cacheFill = isPersisted && !spec.hasKey() ? new CacheFill(task) : null;
    ids = new long[spec.sourceNodes.length][0];
    keys = hasKeys ? new long[0] : null;
    codes = hasKeys && !spec.isOfWinners() && !spec.hasDigests() && !spec.hasOperations() ? new KeyCodes(MAX_PAIRS) : null;
    steps = spec.steps();
    outputFiles = spec.hasOutputFiles() ? new OutputFiles(spec) : null;
    messageKey = (spec.config.applicationId + "#" + run).getBytes(StandardCharsets.UTF_8);
    recordKeys = spec.recordKeyColumns().isEmpty()
        ? null : new RecordKeys(spec.config, spec.node, partition, run, this);
  }

  private static boolean isCalledBy(Predicate<StackWalker.StackFrame> isCaller) {
    return StackWalker.getInstance().walk(frames -> frames.anyMatch(isCaller));
  }

  /** The buffer of this tap in the running task, for one pass over the partition of this index. */
  public static TapBuffer open(TapSpec spec, int partition) {
    TaskContext task = TaskContext.get();
    if (spec.hasKey()) { // groups are made of the records with their keys, of whatever partition
      int ofTask = task == null ? 0 : task.partitionId();
      return TaskCapture.part(spec.config, spec, () -> new TapBuffer(spec, ofTask, null, MAX_ROWS, true));
    }
    return TaskCapture.part(spec.config, spec, OutputPasses::new).open(spec, partition);
  }

  static TapBuffer ofOutput(TapSpec spec, int partition, boolean isOneOfMany, OutputPasses passes) {
    return new TapBuffer(spec, partition, passes, isOneOfMany ? FIRST_CAPACITY : MAX_ROWS,
        spec.hasDigests() || spec.hasOperations());
  }

  /** How many rows it has seen. */
  synchronized long rowCount() {
    return firstRow + rows;
  }

  /** Where the next row is written. It counts when `rows` has been set behind it. */
  public int slot() {
    if (rows == capacity) {
      makeRoom();
    }
    if (steps != null) {
      readCount = firstRow + rows + 1;
    }
    return rows;
  }

  /** The key of all rows that came by now, of a tap in steps; NONE before the first one. */
  public long keyOfReads() {
    long count = readCount;
    return count == 0 ? NONE : ReadSteps.key(partition, steps.of(count - 1));
  }

  /** The position of the row in the slot that was returned last. */
  public final long position(int slot) {
    return firstRow + slot;
  }

  /** The row in the slot that was returned last is the first one of those that go into another file. */
  public void enterFile(long key, int bucket, UTF8String[] folderValues) {
    fileKey = key;
    try {
      outputFiles.begin(key, rows, firstRow + rows, bucket, folderValues);
    } catch (Throwable error) { // an agent bug, which must not fail the job
      outputFiles.lose();
    }
  }

  /** The values of the columns that name the record in the slot that was returned last. */
  public final void nameRecord(int slot, UTF8String[] values) {
    if (isSending()) {
      recordKeys.note(firstRow + slot, spec.recordKeyColumns(), values);
    }
  }

  private void makeRoom() {
    if (capacity == 0 && passes != null) {
      passes.enter(this, partition);
    }
    int larger = capacity == 0 ? FIRST_CAPACITY : capacity * 4;
    if (larger <= maxRows && grow(larger)) {
      capacity = larger;
    } else if (capacity == 0) { // the job needs the memory: row by row, then
      grow(1);
      capacity = 1;
    } else {
      sendRows();
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
  private synchronized void sendRows() {
    int count = rows;
    if (count > 0 && outputFiles != null) {
      endBlock(count);
    }
    if (count > 0 && isSending()) {
      try {
        for (int i = 0; i < ids.length; i++) {
          if (spec.isOfWinners()) {
            sendWinners(spec.winnerNode(i), ids[i], count);
          } else {
            sendIds(ids[i], count, spec.sourceNodes[i]);
          }
        }
        if (codes != null) {
          sendCodes(count);
        } else if (spec.hasDigests()) {
          send(new FlowBlock(spec.node, "digests").outputs(firstRow).column("digest", keys, count));
        } else if (spec.hasOperations()) {
          sendOperations(count);
        }
      } catch (Throwable error) {
        countBug(error);
      }
    }
    firstRow += count;
    rows = 0;
  }

  private void endBlock(int count) {
    lastIds = Arrays.stream(ids).mapToLong(column -> column[count - 1]).toArray();
    try {
      outputFiles.endBlock(columns(), count, firstRow);
    } catch (Throwable error) { // an agent bug, which must not fail the job
      outputFiles.lose();
    }
  }

  /** The arrays that hold something of each row. */
  private long[][] columns() {
    if (keys == null) {
      return ids;
    }
    long[][] columns = Arrays.copyOf(ids, ids.length + 1);
    columns[ids.length] = keys;
    return columns;
  }

  final boolean isSending() {
    return task != null && !spec.config.isSilent && CaptureStages.IS_ENCODED;
  }

  /** An agent bug must not fail the job: it counts as a block that is lost. */
  final void countBug(Throwable error) {
    blockCount++;
    tally.failed("an agent bug: " + error);
  }

  private void sendIds(long[] column, int count, int source) {
    int nulls = 0;
    for (int i = 0; i < count; i++) {
      nulls += column[i] >>> 63;
    }
    if (nulls == 0) {
      send(spans.block(spec.node, source, column, count).outputs(firstRow));
      return;
    }
    long[] in = new long[Math.min(count - nulls, MAX_PAIRS)];
    long[] out = new long[in.length];
    int pairs = 0;
    for (int i = 0; i < count; i++) {
      if (column[i] >= 0) {
        in[pairs] = column[i];
        out[pairs++] = firstRow + i;
        if (pairs == MAX_PAIRS) {
          send(new FlowBlock(spec.node, "pairs").from(source).column("out", out, pairs).column("in", in, pairs));
          pairs = 0;
        }
      }
    }
    if (pairs > 0) {
      send(new FlowBlock(spec.node, "pairs").from(source).column("out", out, pairs).column("in", in, pairs));
    }
  }

  /** Sends the ids of a column by the keys of their rows. */
  private void sendWinners(int node, long[] column, int count) {
    long[] out = new long[Math.min(count, MAX_PAIRS)];
    long[] in = new long[out.length];
    int winners = 0;
    for (int i = 0; i < count; i++) {
      if (column[i] >= 0) {
        out[winners] = keys[i];
        in[winners++] = column[i];
      }
      if (winners == MAX_PAIRS || winners > 0 && i == count - 1) {
        send(new FlowBlock(node, "winners").column("out", out, winners).column("in", in, winners));
        winners = 0;
      }
    }
  }

  /** Sends what was done with rows that are no copies. */
  private void sendOperations(int count) {
    long[] out = new long[Math.min(count, MAX_PAIRS)];
    long[] operations = new long[out.length];
    int changes = 0;
    for (int i = 0; i < count; i++) {
      if (keys[i] >= 0 && keys[i] != COPY) {
        out[changes] = firstRow + i;
        operations[changes++] = keys[i];
      }
      if (changes == MAX_PAIRS || changes > 0 && i == count - 1) {
        FlowBlock block = new FlowBlock(spec.node, "operations").column("out", out, changes);
        send(block.column("operation", operations, changes));
        changes = 0;
      }
    }
  }

  /** Sends the codes of the arrays' keys, which take the place of the keys. */
  private void sendCodes(int count) {
    for (int i = 0; i < count; i++) {
      if (steps != null) {
        keys[i] = steps.of(firstRow + i);
        continue;
      }
      keys[i] = codes.of(keys[i] & Long.MAX_VALUE);
      if (codes.newCount() == MAX_PAIRS) {
        sendKeys();
      }
    }
    send(new FlowBlock(spec.codeNode, "codes").inputs(firstRow).column("code", keys, count));
  }

  private void sendKeys() {
    int count = codes.newCount();
    long[] in = new long[count];
    long code = codes.size() - count;
    for (int i = 0; i < count; i++) {
      in[i] = code + i;
    }
    send(new FlowBlock(spec.keyNode, "pairs").column("out", codes.takeNew(), count).column("in", in, count));
  }

  /** Sends the steps of each key: all up to its own. */
  private void sendSteps() {
    long[] in = new long[MAX_PAIRS];
    long[] out = new long[MAX_PAIRS];
    int pairs = 0;
    for (long step = 0; step < stepCount(); step++) {
      for (long before = 0; before <= step; before++) {
        in[pairs] = before;
        out[pairs++] = ReadSteps.key(partition, step);
        if (pairs == MAX_PAIRS || before == step && step == stepCount() - 1) {
          send(new FlowBlock(spec.keyNode, "pairs").column("out", out, pairs).column("in", in, pairs));
          pairs = 0;
        }
      }
    }
    areStepsSent = true;
  }

  private long stepCount() {
    return firstRow == 0 ? 0 : steps.of(firstRow - 1) + 1;
  }

  final void send(FlowBlock block) {
    byte[] message = block.encoded(spec.config.applicationId, run, partition, blockCount++);
    if (!CaptureStages.IS_SENT) {
      return;
    }
    int topicPartition = partition % spec.config.flowPartitions;
    Sender.of(spec.config).send(spec.config.flowTopic, topicPartition, messageKey, message, tally);
  }

  @Override
  public boolean hasFilledCache() {
    return cacheFill != null && cacheFill.isCached();
  }

  @Override
  public boolean isReadInPython() {
    return isReadInPython;
  }

  @Override
  public synchronized void report() {
    finish();
    manifest(tally.failedCount(), 0).sendAsCached(spec.config);
  }

  @Override
  public synchronized void reportCached() {
    if (isPersisted) {
      report();
    }
  }

  @Override
  public synchronized void finish() {
    sendRows();
    if (recordKeys != null) {
      recordKeys.finish();
    }
    if (codes != null && (codes.newCount() > 0 || steps != null && !areStepsSent)) {
      try {
        if (steps != null) {
          sendSteps();
        } else {
          sendKeys();
        }
      } catch (Throwable error) {
        countBug(error);
      }
    }
  }

  /** How many records its last node has. */
  long outputCount() {
    if (steps != null) {
      return stepCount();
    }
    return codes == null ? firstRow : codes.size();
  }

  @Override
  public void describe(FailureReport report) {
    if (spec.isOfWinners()) {
      return; // its rows are groups
    }
    if (firstRow + rows > 0) {
      int last = rows > 0 ? rows - 1 : capacity - 1; // full arrays that were sent hold their rows still
      long[] lastRow = rows == 0 && lastIds != null // but for those that were sorted
          ? lastIds : Arrays.stream(ids).mapToLong(column -> column[last]).toArray();
      report.tap(spec.node, partition, run, spec.sourceNodes, lastRow);
    } else {
      report.tap(spec.node, partition, run, new int[0], new long[0]);
    }
  }

  private Manifest manifest(int dropped, int unconfirmed) {
    Manifest manifest = new Manifest(task, run, partition, spec.node, spec.moreNodes());
    if (!isReadAsRdd) { // else these rows are of no execution of this plan, whichever reads them
      manifest.execution(task);
    }
    manifest.number("blocks", blockCount).number("dropped", dropped).number("unconfirmed", unconfirmed);
    manifest.number("inputs", firstRow).number("outputs", outputCount());
    if (recordKeys != null) {
      manifest.cut(recordKeys.cutCount());
    }
    if (tally.spooledCount() > 0) {
      manifest.number("spooled", tally.spooledCount()).text("host", Sender.host());
    }
    boolean hasArrived = dropped == 0 && tally.spooledCount() == 0;
    return manifest.number("waited_ms", tally.waitedMs()).text("problem", hasArrived ? "" : tally.problem());
  }

  @Override
  public synchronized void commit() {
    int unconfirmed = Sender.of(spec.config).flush(tally);
    int dropped = tally.failedCount() + unconfirmed;
    Manifest manifest = manifest(dropped, unconfirmed);
    if (dropped > 0 && spec.config.failsOnLoss) {
      throw new LineageLostException("lineage of partition " + task.partitionId() + " is incomplete, and "
          + "spark.lineage.onError=fail: " + dropped + " of " + blockCount + " blocks are lost; " + tally.problem());
    }
    if (outputFiles != null) {
      manifest.json("places", outputFiles.json(firstRow));
      manifest.number("spilled", task.taskMetrics().memoryBytesSpilled());
    }
    if (isShuffled) {
      manifest.json("shuffled", "true");
    }
    if (!isLinePerRow) {
      manifest.json("lines", "false");
    }
    if (!spec.hasKey()) {
      manifest.property(task, TAKER, "taker");
    }
    spec.config.manifests.add(manifest.line());
  }
}
