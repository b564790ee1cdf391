package lineagemaster.capture;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import lineagemaster.delivery.AgentConfig;
import lineagemaster.delivery.Json;
import lineagemaster.delivery.Manifest;
import org.apache.spark.TaskContext;
import org.apache.spark.rdd.InputFileBlockHolder;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * The ids that one partition of a scan gives to its rows, and which rows of which files these are. Called from
 * generated code once a row.
 */
public final class ScanPositions {
  private static final int POSITION_BITS = 33;

  private final long base;
  private final boolean isByRow;
  private final boolean isStriped;
  private UTF8String path; // Spark makes a new one for each file block, so the very object tells them apart
  private long shift; // position = row index + shift, in the current part
  private long next; // the first position that is free
  private Runnable entry; // of this pass with its task; null once that is done
  private final ArrayList<Part> parts = new ArrayList<>();

  private static final class Part {
    final String path;
    final long start;
    final long length;
    final long first;
    private final boolean isStriped;
    private long row; // -1: not known (yet)

    Part(String path, long first, long row, boolean isStriped) {
      this.path = path;
      this.start = InputFileBlockHolder.getStartOffset();
      this.length = InputFileBlockHolder.getLength();
      this.first = first;
      this.row = row;
      this.isStriped = isStriped;
    }

    /** For the driver, which sees the file for itself. */
    String json() {
      return "{\"path\":" + Json.quoted(path) + rows() + "}";
    }

    /** As `parts` of an event have it, with the file as it is now. */
    String seen() {
      InputFile file = InputFile.of(path);
      return "{\"path\":" + Json.quoted(file.path) + rows() + file.fields() + "}";
    }

    private String rows() {
      if (row < 0 && isStriped) {
        row = OrcStripes.rowsBefore(path, start);
      }
      String text = ",\"start\":" + start + ",\"length\":" + length + ",\"first\":" + first;
      return row < 0 ? text : text + ",\"row\":" + row;
    }
  }

  private ScanPositions(int split, boolean isByRow, boolean isStriped) {
    this.base = (long) split << POSITION_BITS;
    this.isByRow = isByRow;
    this.isStriped = isStriped;
  }

  /**
   * For one pass over the scan's partition `split`. A task that reads it twice (a self-join) gets the same ids twice,
   * and one manifest: of the pass that went furthest. A pass that `isLate` counts from its first row on.
   */
  public static ScanPositions open(
      AgentConfig common, int node, int split, boolean isByRow, boolean isStriped, boolean isLate) {
    ScanPositions pass = new ScanPositions(split, isByRow, isStriped);
    pass.entry = () -> TaskCapture.of(common, List.of(node, split), () -> new Passes(common, node, split)).add(pass);
    if (!isLate) {
      pass.enter();
    }
    return pass;
  }

  private void enter() {
    if (entry != null) {
      entry.run();
      entry = null;
    }
  }

  /** The id of the next row. */
  public long next() {
    if (InputFileBlockHolder.getInputFilePath() != path) {
      begin(-1);
    }
    return base + next++;
  }

  /** The id of the row at this index of its file. */
  public long at(long row) {
    if (InputFileBlockHolder.getInputFilePath() != path) {
      begin(row);
    }
    long position = row + shift;
    next = position + 1;
    return base + position;
  }

  private void begin(long row) {
    enter();
    path = InputFileBlockHolder.getInputFilePath();
    shift = next - row;
    String name = path.toString();
    if (!name.isEmpty()) { // else these rows are not of a file
      parts.add(new Part(name, next, isByRow ? row : -1, isStriped));
    }
  }

  /** The passes of one task over one partition of a scan. */
  private static final class Passes implements TaskCapture.Part {
    private final TaskContext task = TaskContext.get();
    private final long run = Manifest.newRun();
    private final AgentConfig common;
    private final int node;
    private final int split;
    private final List<ScanPositions> passes = new ArrayList<>();

    Passes(AgentConfig common, int node, int split) {
      this.common = common;
      this.node = node;
      this.split = split;
    }

    synchronized void add(ScanPositions pass) {
      passes.add(pass);
    }

    @Override
    public void finish() {}

    @Override
    public synchronized void keep() {
      manifest(furthest().parts.stream().map(Part::seen)).keep(common);
    }

    @Override
    public synchronized void tell() {
      common.manifests.add(manifest(furthest().parts.stream().map(Part::json)).line());
    }

    private ScanPositions furthest() {
      return Collections.max(passes, (a, b) -> Long.compare(a.next, b.next));
    }

    private Manifest manifest(Stream<String> parts) {
      long rows = furthest().next;
      Manifest manifest = new Manifest(task, run, split, node, Collections.emptyList()).execution(task);
      manifest.number("blocks", 0).number("dropped", 0).number("unconfirmed", 0).number("waited_ms", 0);
      manifest.number("inputs", rows).number("outputs", rows).text("problem", "");
      return manifest.json("parts", parts.collect(Collectors.joining(",", "[", "]")));
    }
  }
}
