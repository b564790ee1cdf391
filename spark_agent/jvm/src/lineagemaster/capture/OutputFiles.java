package lineagemaster.capture;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import lineagemaster.delivery.Json;
import org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Into which folders and buckets the rows of one task of an output go, in runs of rows: Spark's writer begins another
 * file where these change. All or nothing: what is not known for all rows is not reported.
 */
final class OutputFiles {
  /** The most runs of rows: their files have to fit into one event. */
  private static final int MAX_RUNS = 3_000;

  private final List<String> columns;
  private final int writers;
  private final Map<Long, Integer> codes = new HashMap<>();
  private final StringBuilder names = new StringBuilder();
  private final StringBuilder runs = new StringBuilder();
  private int runCount;
  private long end = Long.MAX_VALUE; // rows from here on are written in an order that is not known here
  private boolean isLost;

  OutputFiles(TapSpec spec) {
    columns = spec.folderColumns;
    writers = spec.writers;
  }

  /** Rows from `row` on go into the files of this key. `bucket` is -1 without buckets. */
  void begin(long key, long row, int bucket, UTF8String[] values) {
    if (isLost) {
      return;
    }
    if (runCount++ == MAX_RUNS) {
      lose();
      return;
    }
    Integer code = codes.get(key);
    if (code == null) {
      code = codes.size();
      codes.put(key, code);
      String name = Json.quoted(folder(values));
      names.append(code == 0 ? "[" : ",[").append(name).append(',').append(bucket).append(']');
      if (codes.size() == writers) { // from now on Spark's writer sorts the rows
        end = row + 1;
      }
    }
    runs.append(runs.length() == 0 ? "" : ",").append(row).append(',').append(code.intValue());
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
