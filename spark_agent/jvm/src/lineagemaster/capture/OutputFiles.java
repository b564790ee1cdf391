package lineagemaster.capture;

import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import lineagemaster.delivery.Json;
import org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Into which folders and buckets the rows of one task of an output go, in runs of rows: Spark's writer begins another
 * file where these change. All or nothing: what is not known for all rows is not reported. Where rows go into open files
 * by turns, the records of a block are put in the order of their files, so that runs are few. Within a file they keep
 * their order.
 */
final class OutputFiles {
  /** The most runs of rows: their files have to fit into one event. */
  private static final int MAX_RUNS = 3_000;
  /** With so many runs the records of a block are sorted. */
  private static final int MANY_RUNS = 16;

  private final List<String> columns;
  private final int writers;
  private final Map<Long, Integer> codes = new HashMap<>();
  private final StringBuilder names = new StringBuilder();
  private final StringBuilder runs = new StringBuilder();
  private int runCount;
  private int lastCode = -1; // of the last run that was written
  private int code = -1; // of the file of the last row
  private int[] blockRuns = new int[2 * MANY_RUNS]; // of the rows that were not sent: first row in the block, code
  private int blockRunCount;
  private long end = Long.MAX_VALUE; // rows from here on are written in an order that is not known here
  private boolean isLost;

  OutputFiles(TapSpec spec) {
    columns = spec.folderColumns;
    writers = spec.writers;
  }

  /** Rows from this one of the block on go into the files of this key. `bucket` is -1 without buckets. */
  void begin(long key, int row, long position, int bucket, UTF8String[] values) {
    if (isLost) {
      return;
    }
    Integer known = codes.get(key);
    code = known == null ? codes.size() : known;
    if (known == null) {
      if (code == MAX_RUNS) {
        lose();
        return;
      }
      codes.put(key, code);
      String name = Json.quoted(folder(values));
      names.append(code == 0 ? "[" : ",[").append(name).append(',').append(bucket).append(']');
      if (codes.size() == writers) { // from now on Spark's writer sorts the rows
        end = position + 1;
      }
    }
    addToBlock(row);
  }

  private void addToBlock(int row) {
    if (2 * blockRunCount == blockRuns.length) {
      blockRuns = Arrays.copyOf(blockRuns, 2 * blockRuns.length);
    }
    blockRuns[2 * blockRunCount] = row;
    blockRuns[2 * blockRunCount++ + 1] = code;
  }

  /**
   * A block of so many rows is to be sent, of which the first one is at this position. Sorts its columns where its rows
   * have many runs.
   */
  void endBlock(long[][] columns, int count, long position) {
    if (isLost || blockRunCount == 0) {
      return;
    }
    if (blockRunCount > MANY_RUNS && writers == 0) {
      sort(columns, count);
    }
    for (int i = 0; i < blockRunCount && !isLost; i++) {
      if (blockRuns[2 * i] < endOf(i, count)) {
        addRun(position + blockRuns[2 * i], blockRuns[2 * i + 1]);
      }
    }
    blockRunCount = 0;
    addToBlock(0); // the next row, unless it begins another file
  }

  private void addRun(long position, int runCode) {
    if (runCode == lastCode) {
      return;
    }
    if (runCount++ == MAX_RUNS) {
      lose();
      return;
    }
    lastCode = runCode;
    runs.append(runs.length() == 0 ? "" : ",").append(position).append(',').append(runCode);
  }

  /** By codes, and within one as they came. */
  private void sort(long[][] columns, int count) {
    int[] next = new int[codes.size() + 1]; // where the next row of a code goes; at first, rows of the code before
    for (int i = 0; i < blockRunCount; i++) {
      next[blockRuns[2 * i + 1] + 1] += endOf(i, count) - blockRuns[2 * i];
    }
    for (int i = 1; i < next.length; i++) {
      next[i] += next[i - 1];
    }
    int[] starts = Arrays.copyOf(next, codes.size());
    int[] places = new int[count];
    for (int i = 0; i < blockRunCount; i++) {
      for (int row = blockRuns[2 * i]; row < endOf(i, count); row++) {
        places[row] = next[blockRuns[2 * i + 1]]++;
      }
    }
    long[] sorted = new long[count];
    for (long[] column : columns) {
      for (int row = 0; row < count; row++) {
        sorted[places[row]] = column[row];
      }
      System.arraycopy(sorted, 0, column, 0, count);
    }
    blockRunCount = 0;
    int last = code;
    for (code = 0; code < starts.length; code++) {
      if (starts[code] < next[code]) {
        addToBlock(starts[code]);
      }
    }
    code = last;
  }

  /** Before which row of the block a run of it ends. */
  private int endOf(int run, int count) {
    return run + 1 < blockRunCount ? blockRuns[2 * run + 2] : count;
  }

  void lose() {
    isLost = true;
    codes.clear();
    names.setLength(0);
    runs.setLength(0);
  }

  /** As Spark names it, below the output's own folder. */
  private String folder(UTF8String[] values) {
    StringBuilder name = new StringBuilder();
    for (int i = 0; i < values.length; i++) {
      String value = values[i] == null ? null : values[i].toString();
      name.append(i == 0 ? "" : "/").append(ExternalCatalogUtils.getPartitionPathString(columns.get(i), value));
    }
    return name.toString();
  }

  /** {of: [[folder, bucket], ...], runs: [first row, index in `of`, ...]}, or null where it is not known. */
  String json(long rowCount) {
    return isLost || rowCount > end ? "null" : "{\"of\":[" + names + "],\"runs\":[" + runs + "]}";
  }
}
