package lineagemaster;

import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import org.apache.spark.rdd.InputFileBlockHolder;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Which of 64 blocks each row of one partition of a scan is in, as a bit of a long. A block is a run of rows of a part
 * of a file, and every 64th behind it. What is part of a file is said by the task: another cut of the same file has
 * other blocks. Called from generated code once a row.
 */
public final class ScanBlocks {
  /** Of a row that may be in any block. */
  public static final long EVERY = -1;
  /** 8,192 rows in a run: half a million rows have 64 of them. */
  private static final int ROW_BITS = 13;

  private final boolean isByRow;
  private final Set<String> known; // null: all are, and they are told
  private final Set<String> parts = new LinkedHashSet<>();
  private UTF8String path; // Spark makes a new one for each file block, so the very object tells them apart
  private boolean isKnown;
  private int offset;
  private long next;

  private ScanBlocks(boolean isByRow, Set<String> known) {
    this.isByRow = isByRow;
    this.known = known;
  }

  /**
   * For one pass over a partition of the scan `number`.
   *
   * @param isByRow are rows known by their index in the file, however it is cut
   * @param known the parts whose blocks are known: rows of others are in every block; null to tell of all
   */
  public static ScanBlocks open(Common common, int number, boolean isByRow, Set<String> known) {
    ScanBlocks pass = new ScanBlocks(isByRow, known);
    if (known == null) {
      TaskParts.of(common, "blocks " + number, () -> new Told(common, number)).add(pass.parts);
    }
    return pass;
  }

  /** The block of the next row. */
  public long next() {
    if (InputFileBlockHolder.getInputFilePath() != path) {
      begin();
    }
    return isKnown ? block(next++) : EVERY;
  }

  /** The block of the row at this index of its file. */
  public long at(long row) {
    if (InputFileBlockHolder.getInputFilePath() != path) {
      begin();
    }
    return isKnown ? block(row) : EVERY;
  }

  private long block(long row) {
    return 1L << (offset + (int) (row >>> ROW_BITS)); // of a shift, the lowest six bits count
  }

  private void begin() {
    path = InputFileBlockHolder.getInputFilePath();
    next = 0;
    String part = path.toString();
    if (part.isEmpty()) { // these rows are not of a file
      isKnown = false;
      return;
    }
    if (!isByRow) {
      part += "|" + InputFileBlockHolder.getStartOffset() + "|" + InputFileBlockHolder.getLength();
    }
    offset = part.hashCode();
    isKnown = known == null || known.contains(part);
    parts.add(part);
  }

  /** Tells which parts the passes of one task have read. */
  private static final class Told implements TaskParts.Part {
    private final Common common;
    private final int number;
    private final List<Set<String>> passes = new ArrayList<>();

    Told(Common common, int number) {
      this.common = common;
      this.number = number;
    }

    synchronized void add(Set<String> parts) {
      passes.add(parts);
    }

    @Override
    public void finish() {}

    @Override
    public void keep() {}

    @Override
    public synchronized void tell() {
      Set<String> all = new TreeSet<>();
      passes.forEach(all::addAll);
      StringBuilder text = new StringBuilder();
      all.forEach(part -> text.append(text.length() == 0 ? "" : ",").append(Manifest.quoted(part)));
      common.manifests.add("{\"type\":\"blocks\",\"scan\":" + number + ",\"parts\":[" + text + "]}");
    }
  }
}
