package lineagemaster.capture;

import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import lineagemaster.delivery.AgentConfig;
import lineagemaster.delivery.Json;
import lineagemaster.delivery.LineageLostException;
import lineagemaster.delivery.Manifest;
import lineagemaster.delivery.Sender;
import org.apache.spark.TaskContext;
import org.apache.spark.rdd.InputFileBlockHolder;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * The ids that one pass over one partition of a scan gives to its rows, and which rows of which files these are. Called
 * from generated code once a row.
 */
public final class ScanPositions {
  private static final int POSITION_BITS = 33;

  private final long base;
  private final boolean isByRow;
  private final boolean isStriped;
  private UTF8String topic; // of Kafka, where rows are its records
  private int topicPartition = -1;
  private UTF8String path; // Spark makes a new one for each file block, so the very object tells them apart
  private long shift; // position = row index + shift, in the current part
  private long next; // the first position that is free
  private final KeptRows kept; // of a replay; null: all rows are kept
  private KeptRows.Cursor keptOfBlock;
  private long blockFirst; // the position of the first row of the current block
  private Runnable joinTask; // adds this pass to its task; null once that is done
  private final ArrayList<FilePart> parts = new ArrayList<>();

  /** The rows that the pass has read of one block of a file. */
  private static final class FilePart {
    private final String path;
    private final long start; // -1: it is no file
    private final long length;
    private final long firstPosition;
    private final boolean isStriped;
    private long firstRow; // -1: not known (yet)

    FilePart(String path, long firstPosition, long firstRow, boolean isStriped) {
      this(path, InputFileBlockHolder.getStartOffset(), InputFileBlockHolder.getLength(), firstPosition, firstRow,
          isStriped);
    }

    /** The records of a partition of a topic, which have offsets. */
    FilePart(String path, long firstPosition, long firstOffset) {
      this(path, -1, -1, firstPosition, firstOffset, false);
    }

    private FilePart(
        String path, long start, long length, long firstPosition, long firstRow, boolean isStriped) {
      this.path = path;
      this.start = start;
      this.length = length;
      this.firstPosition = firstPosition;
      this.firstRow = firstRow;
      this.isStriped = isStriped;
    }

    /** For the driver, which looks at the file itself. */
    String json() {
      return "{\"path\":" + Json.quoted(path) + rows() + "}";
    }

    /** As `parts` of an event have it, with the file as it is now. */
    String jsonWithFile() {
      InputFile file = InputFile.of(path);
      return "{\"path\":" + Json.quoted(file.path) + rows() + file.sizeAndTime() + "}";
    }

    private static long rowsBefore(String path, long start) {
      if (path.endsWith(AvroBlocks.ENDING)) {
        return AvroBlocks.rowsBefore(path, start);
      }
      long rows = OrcStripes.rowsBefore(path, start);
      return rows < 0 ? AvroBlocks.rowsBefore(path, start) : rows; // which may have any name
    }

    private String rows() {
      if (firstRow < 0 && isStriped) {
        firstRow = rowsBefore(path, start);
      }
      String bytes = start < 0 ? ",\"start\":null,\"length\":null" : ",\"start\":" + start + ",\"length\":" + length;
      String text = bytes + ",\"first\":" + firstPosition;
      return firstRow < 0 ? text : text + ",\"row\":" + firstRow;
    }
  }

  private ScanPositions(int partition, boolean isByRow, boolean isStriped, KeptRows kept) {
    this.base = (long) partition << POSITION_BITS;
    this.isByRow = isByRow;
    this.isStriped = isStriped;
    this.kept = kept;
  }

  /**
   * For one pass over a partition of the scan. A task that reads it twice (a self-join) gets the same ids twice, and
   * one manifest: of the pass that went furthest. A pass that `isLate` counts from its first row on.
   *
   * @param kept the rows that a replay keeps; null: all
   */
  public static ScanPositions open(AgentConfig config, int node, int partition, boolean isByRow, boolean isStriped,
      boolean isLate, KeptRows kept) {
    ScanPositions pass = new ScanPositions(partition, isByRow, isStriped, kept);
    pass.joinTask = () -> TaskCapture
        .part(config, List.of(node, partition), () -> new Passes(config, node, partition))
        .add(pass);
    if (!isLate) {
      pass.enter();
    }
    return pass;
  }

  /** The partition of the record with this id. */
  static int partition(long id) {
    return (int) (id >>> POSITION_BITS);
  }

  /** The position in it. */
  static long position(long id) {
    return id & (1L << POSITION_BITS) - 1;
  }

  /** The keys of the records of a partition, in the running task. */
  static RecordKeys keys(AgentConfig config, int node, int partition) {
    return TaskCapture.part(config, List.of(node, partition), () -> new Passes(config, node, partition)).keys();
  }

  private void enter() {
    if (joinTask != null) {
      joinTask.run();
      joinTask = null;
    }
  }

  /** The id of the next row; negative if a replay drops it. */
  public long next() {
    if (InputFileBlockHolder.getInputFilePath() != path) {
      begin(-1);
    }
    return id(next++);
  }

  /** The id of the row at this index of its file; negative if a replay drops it. */
  public long at(long row) {
    if (InputFileBlockHolder.getInputFilePath() != path) {
      begin(row);
    }
    long position = row + shift;
    next = position + 1;
    return id(position);
  }

  /**
   * The id of the record at this offset of a partition of a topic of Kafka.
   *
   * @param servers what the name of the topic stands behind
   */
  public long at(long offset, UTF8String topic, int topicPartition, UTF8String servers) {
    if (topicPartition != this.topicPartition || !topic.equals(this.topic)) {
      enter();
      this.topic = topic.clone(); // Spark writes the next row over it
      this.topicPartition = topicPartition;
      shift = next - offset;
      parts.add(new FilePart(servers + "/" + topic + "/" + topicPartition, next, offset));
    }
    long position = offset + shift;
    next = position + 1;
    return base + position;
  }

  private long id(long position) {
    return kept == null ? base + position : keptOfBlock.id(position - blockFirst, base + position);
  }

  private void begin(long row) {
    enter();
    path = InputFileBlockHolder.getInputFilePath();
    shift = next - row;
    if (kept != null) {
      blockFirst = next;
      keptOfBlock = kept.ofBlock(row);
    }
    String name = path.toString();
    if (!name.isEmpty()) { // else these rows are not of a file
      parts.add(new FilePart(name, next, isByRow ? row : -1, isStriped));
    }
  }

  /** Is the block of a file that it read last still being read? */
  private boolean isWithinFile() {
    return path != null && path.numBytes() > 0 && InputFileBlockHolder.getInputFilePath() == path;
  }

  /** The passes of one task over one partition of a scan. */
  private static final class Passes implements TaskCapture.Part {
    private final TaskContext task = TaskContext.get();
    private final long run = Manifest.newRun();
    private final AgentConfig config;
    private final int node;
    private final int partition;
    private final List<ScanPositions> passes = new ArrayList<>();
    private RecordKeys keys; // null: its records have none

    Passes(AgentConfig config, int node, int partition) {
      this.config = config;
      this.node = node;
      this.partition = partition;
    }

    synchronized void add(ScanPositions pass) {
      passes.add(pass);
    }

    synchronized RecordKeys keys() {
      if (keys == null) {
        keys = new RecordKeys(config, node, partition, run);
      }
      return keys;
    }

    @Override
    public synchronized void report() {
      finish();
      manifest(furthest().parts.stream().map(FilePart::jsonWithFile), 0).sendAsCached(config);
    }

    @Override
    public synchronized void finish() {
      if (keys != null) {
        keys.finish();
      }
    }

    @Override
    public synchronized void commit() {
      int unconfirmed = keys == null || keys.blockCount() == 0 ? 0 : Sender.of(config).flush(keys.tally());
      Manifest manifest = manifest(furthest().parts.stream().map(FilePart::json), unconfirmed);
      if (keys != null && config.failsOnLoss && keys.tally().failedCount() + unconfirmed > 0) {
        throw new LineageLostException("lineage of partition " + partition + " is incomplete, and "
            + "spark.lineage.onError=fail: keys of its records are lost; " + keys.tally().problem());
      }
      config.manifests.add(manifest.line());
    }

    @Override
    public synchronized void describe(FailureReport report) {
      ScanPositions pass = furthest();
      long passCount = passes.stream().filter(one -> one.next > 0).count();
      String files = pass.parts.stream().map(FilePart::json).collect(Collectors.joining(",", "[", "]"));
      report.scan(node, partition, run, pass.next, passCount, pass.isWithinFile(), files);
    }

    private ScanPositions furthest() {
      return Collections.max(passes, Comparator.comparingLong(pass -> pass.next));
    }

    private Manifest manifest(Stream<String> parts, int unconfirmed) {
      long rows = furthest().next;
      Manifest manifest = new Manifest(task, run, partition, node, Collections.emptyList()).execution(task);
      manifest.number("inputs", rows).number("outputs", rows);
      if (keys == null) {
        manifest.number("blocks", 0).number("dropped", 0).number("unconfirmed", 0).number("waited_ms", 0);
        manifest.text("problem", "");
      } else {
        int dropped = keys.tally().failedCount() + unconfirmed;
        int spooled = keys.tally().spooledCount();
        manifest.number("blocks", keys.blockCount()).number("dropped", dropped).number("unconfirmed", unconfirmed);
        manifest.number("waited_ms", keys.tally().waitedMs()).cut(keys.cutCount());
        if (spooled > 0) {
          manifest.number("spooled", spooled).text("host", Sender.host());
        }
        manifest.text("problem", dropped == 0 && spooled == 0 ? "" : keys.tally().problem());
      }
      return manifest.json("parts", parts.collect(Collectors.joining(",", "[", "]")));
    }
  }
}
