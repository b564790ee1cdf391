package lineagemaster.plan;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.StringJoiner;
import java.util.function.Function;
import java.util.function.LongConsumer;
import java.util.stream.LongStream;
import lineagemaster.delivery.Json;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;

/**
 * A DELETE or a TRUNCATE that removes whole files of a table of Iceberg, and reads no rows. Its snapshot is found by the
 * application that has committed it. Iceberg is not compiled against: of another one than is expected nothing is said.
 */
public final class IcebergDelete {
  private static final String TABLE = "org.apache.iceberg.spark.source.BaseSparkTable";
  private static final String APPLICATION = "spark.app.id";
  private static final String DELETE = "delete";
  private static final String POSITIONS = "POSITION_DELETES";

  private final IcebergTable table;
  private final Object branch; // null: the table
  private final Object newestBefore;
  private final long began = System.currentTimeMillis();
  private Object newestBehind; // once it is known
  private boolean isOver;

  private IcebergDelete(Object sparkTable) throws ReflectiveOperationException {
    table = new IcebergTable(sparkTable.getClass().getMethod("table").invoke(sparkTable));
    branch = IcebergObjects.hasField(sparkTable, "branch") ? IcebergObjects.field(sparkTable, "branch") : null;
    newestBefore = table.newest(branch);
  }

  /** Of a command of Spark that is about to run; null where its table is none of Iceberg. */
  public static IcebergDelete of(LogicalPlan command) {
    try {
      Object relation = command.getClass().getMethod("table").invoke(command);
      if (relation instanceof DataSourceV2ScanRelation) { // of a DELETE without a condition
        relation = relation.getClass().getMethod("relation").invoke(relation);
      }
      Object sparkTable = relation.getClass().getMethod("table").invoke(relation);
      return IcebergObjects.isA(sparkTable, TABLE) ? new IcebergDelete(sparkTable) : null;
    } catch (ReflectiveOperationException | RuntimeException | LinkageError other) {
      return null;
    }
  }

  /** {table: its name, location, format: of its files}. */
  public String describe() throws ReflectiveOperationException {
    return "{" + table.describe() + "}";
  }

  /** Its thread goes on: what is committed from now on is not its own. */
  public synchronized void end() throws ReflectiveOperationException {
    if (!isOver) {
      newestBehind = table.newest(branch);
      isOver = true;
    }
  }

  /**
   * What it has removed: {version, files: [{path, rows, size, deleted}, ...]}, where `deleted` are runs of rows that were
   * deleted before (see {@link DeletionVectors}), null: none. Empty where it has removed nothing.
   *
   * @param application whose snapshot it is
   * @param mostVectors files whose deleted rows are looked up
   * @param mostRuns runs of rows in one of them
   * @throws IllegalStateException where that is not known; the message says why
   */
  public synchronized Object removed(String application, int mostVectors, int mostRuns)
      throws ReflectiveOperationException {
    Object last = isOver ? newestBehind : table.newest(branch);
    List<Object> own = own(last, application);
    boolean isAsBefore = last == null || IcebergTable.id(last).equals(IcebergTable.id(newestBefore));
    if (own.isEmpty() && isAsBefore) {
      own = ofOtherBranches(application);
    }
    if (own.isEmpty() && isAsBefore) {
      return "";
    }
    if (own.size() != 1) {
      throw new IllegalStateException(own.isEmpty() ? "its snapshot was not seen" : "another one ran at the same time");
    }
    List<Object> files = new ArrayList<>();
    table.changed(own.get(0), "removedDataFiles").forEach(files::add);
    if (files.isEmpty()) {
      return "";
    }
    Map<String, String> deleted = deletedBefore(own.get(0), files, mostVectors, mostRuns);
    StringJoiner described = new StringJoiner(",", "[", "]");
    for (Object file : files) {
      String runs = deleted.get(IcebergTable.path(file));
      described.add("{\"path\":" + Json.quoted(IcebergTable.path(file))
          + ",\"rows\":" + IcebergTable.ofFile(file, "recordCount")
          + ",\"size\":" + IcebergTable.ofFile(file, "fileSizeInBytes")
          + ",\"deleted\":" + (runs == null ? "null" : Json.quoted(runs)) + "}");
    }
    return PlanReader.inPieces("{\"version\":\"" + IcebergTable.id(own.get(0)) + "\",\"files\":" + described + "}");
  }

  /** The snapshots that may be its own, up to this one. */
  private List<Object> own(Object last, String application) throws ReflectiveOperationException {
    List<Object> own = new ArrayList<>();
    Object before = IcebergTable.id(newestBefore);
    Object snapshot = last;
    while (snapshot != null && !IcebergTable.id(snapshot).equals(before)) {
      if (isOf(snapshot, application)) {
        own.add(snapshot);
      }
      snapshot = table.parent(snapshot);
    }
    return own;
  }

  /** The same of a setting by which Iceberg writes into another branch (`spark.wap.branch`). */
  private List<Object> ofOtherBranches(String application) throws ReflectiveOperationException {
    List<Object> own = new ArrayList<>();
    for (Object snapshot : (Iterable<?>) table.call("snapshots")) {
      if ((Long) IcebergTable.of(snapshot, "timestampMillis") > began && isOf(snapshot, application)) {
        own.add(snapshot);
      }
    }
    return own;
  }

  private boolean isOf(Object snapshot, String application) throws ReflectiveOperationException {
    Map<?, ?> summary = (Map<?, ?>) IcebergTable.of(snapshot, "summary");
    return DELETE.equals(IcebergTable.of(snapshot, "operation"))
        && application.equals(summary.get(APPLICATION))
        && !table.changed(snapshot, "addedDeleteFiles").iterator().hasNext();
  }

  /** Runs of rows of the files that were deleted by then, by the paths of those that have some. */
  private Map<String, String> deletedBefore(Object snapshot, List<Object> files, int mostVectors, int mostRuns)
      throws ReflectiveOperationException {
    Map<String, String> deleted = new HashMap<>();
    Object before = table.parent(snapshot);
    if (before == null || !table.changed(before, "deleteManifests").iterator().hasNext()) {
      return deleted;
    }
    Set<String> paths = new HashSet<>();
    for (Object file : files) {
      paths.add(IcebergTable.path(file));
    }
    Object scan = table.call("newScan");
    scan = IcebergObjects.type("TableScan", scan).getMethod("useSnapshot", long.class).invoke(scan, IcebergTable.id(before));
    Object tasks = IcebergObjects.call("Scan", scan, "planFiles");
    try {
      for (Object task : (Iterable<?>) tasks) {
        String path = IcebergTable.path(IcebergObjects.call("ContentScanTask", task, "file"));
        List<?> deletes = (List<?>) IcebergObjects.call("FileScanTask", task, "deletes");
        if (!paths.contains(path) || deletes.isEmpty()) {
          continue;
        }
        if (deleted.size() == mostVectors) {
          throw new IllegalStateException("more than " + mostVectors + " of the files had deleted rows");
        }
        deleted.put(path, positions(path, deletes, mostRuns));
      }
    } finally {
      close(tasks);
    }
    return deleted;
  }

  private String positions(String path, List<?> deletes, int mostRuns) throws ReflectiveOperationException {
    for (Object file : deletes) {
      if (!POSITIONS.equals(String.valueOf(IcebergTable.ofFile(file, "content")))) {
        throw new IllegalStateException("rows of " + path + " were deleted by their values");
      }
    }
    Object io = table.call("io");
    Class<?> deleteFile = table.type("DeleteFile");
    Function<Object, Object> input = file -> {
      try {
        return table.type("io.FileIO").getMethod("newInputFile", deleteFile).invoke(io, file);
      } catch (ReflectiveOperationException error) {
        throw new IllegalStateException(error);
      }
    };
    Object loader = table.type("data.BaseDeleteLoader").getConstructor(Function.class).newInstance(input);
    Object index = table.type("data.DeleteLoader")
        .getMethod("loadPositionDeletes", Iterable.class, CharSequence.class).invoke(loader, deletes, path);
    LongStream.Builder rows = LongStream.builder();
    if (!Boolean.TRUE.equals(IcebergObjects.call("deletes.PositionDeleteIndex", index, "isEmpty"))) {
      LongConsumer add = rows::add;
      table.type("deletes.PositionDeleteIndex").getMethod("forEach", LongConsumer.class)
          .invoke(index, add);
    }
    String runs = DeletionVectors.runs(rows.build().sorted().distinct().toArray(), mostRuns);
    if (runs == null) {
      throw new IllegalStateException("too many pieces of " + path + " were deleted before");
    }
    return runs;
  }

  private static void close(Object tasks) {
    try {
      ((AutoCloseable) tasks).close();
    } catch (Exception error) { // what it has read is known
      return;
    }
  }
}
