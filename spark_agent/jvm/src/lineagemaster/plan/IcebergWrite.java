package lineagemaster.plan;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.StringJoiner;
import lineagemaster.delivery.Json;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import scala.Option;

/**
 * A statement that writes data files of a table of Iceberg. Their names hold the id of the write, by which the snapshot
 * is found that has come of it. Iceberg is not compiled against: of another one than is expected nothing is said.
 */
public final class IcebergWrite {
  private static final String SOURCE = "org.apache.iceberg.spark.source.";
  private static final String OF_FILES = SOURCE + "SparkWrite";
  private static final String OF_DELETES = SOURCE + "SparkPositionDeltaWrite";
  private static final String APPLICATION = "spark.app.id"; // of a snapshot that Spark has committed
  private static final String OWNER = "applicationId";
  private static final int MOST_FILES = 100_000; // of a statement that wrote more, no files are told
  private static final long CLOCKS_MS = 600_000; // those of who commits to a table may differ so far

  private final IcebergTable table;
  private final Object write;
  private final String id;
  private final boolean hasDeletes;
  private final long began = System.currentTimeMillis();
  private final Object newestBefore; // the id of the snapshot that the table has, or its branch; null: none
  private final Set<Object> others = new HashSet<>(); // snapshots that are not of this write
  private final List<Object> replaced; // scans of the files that it writes anew

  private IcebergWrite(Object write, boolean hasDeletes, List<Object> replaced) throws ReflectiveOperationException {
    this.write = write;
    this.hasDeletes = hasDeletes;
    this.replaced = replaced;
    table = new IcebergTable(IcebergObjects.field(write, "table"));
    id = (String) IcebergObjects.field(hasDeletes ? IcebergObjects.field(write, "context") : write, "queryId");
    newestBefore = IcebergTable.id(newest());
  }

  /** The write of a command of Spark; null of what writes no data files of Iceberg. */
  public static IcebergWrite of(LogicalPlan command) {
    try {
      Option<?> write = (Option<?>) command.getClass().getMethod("write").invoke(command);
      if (write.isEmpty()) {
        return null;
      }
      boolean hasDeletes = IcebergObjects.isA(write.get(), OF_DELETES);
      return hasDeletes || IcebergObjects.isA(write.get(), OF_FILES)
          ? new IcebergWrite(write.get(), hasDeletes, IcebergScans.replaced(command)) : null;
    } catch (ReflectiveOperationException | RuntimeException | LinkageError other) {
      return null;
    }
  }

  /**
   * {table: its name, location, format: of its files, id, partitions: [{column, transform, name}, ...]}. A transform is
   * as Iceberg writes it: identity, bucket[16].
   */
  public String describe() throws ReflectiveOperationException {
    StringJoiner partitions = new StringJoiner(",", "[", "]");
    Object schema = table.call("schema");
    Object spec = spec();
    for (Object field : (Iterable<?>) IcebergObjects.call("PartitionSpec", spec, "fields")) {
      int source = (Integer) IcebergObjects.call("PartitionField", field, "sourceId");
      Object column = schema.getClass().getMethod("findColumnName", int.class).invoke(schema, source);
      partitions.add("{\"column\":" + Json.quoted(String.valueOf(column))
          + ",\"transform\":" + Json.quoted(String.valueOf(IcebergObjects.call("PartitionField", field, "transform")))
          + ",\"name\":" + Json.quoted(String.valueOf(IcebergObjects.call("PartitionField", field, "name"))) + "}");
    }
    return "{" + table.describe() + ",\"id\":" + Json.quoted(id) + ",\"partitions\":" + partitions + "}";
  }

  /** By which the rows of this write are partitioned. */
  private Object spec() throws ReflectiveOperationException {
    if (hasDeletes) {
      return table.call("spec");
    }
    return ((Map<?, ?>) table.call("specs")).get(IcebergObjects.field(write, "outputSpecId"));
  }

  /**
   * The snapshot that has files of this write, or is without those that it has replaced by nothing:
   * {version, files: [{path, rows, size, partition, row_id: or null}, ...]}, of data files, none where they are too many.
   * Empty as long as there is none. Reads the manifests of snapshots that were not looked at before, and that no other
   * application says are its own.
   */
  public Object commit() throws ReflectiveOperationException {
    for (Object snapshot : snapshotsSince()) {
      Object version = IcebergTable.id(snapshot);
      if (others.contains(version)) {
        continue;
      }
      if (isOfAnother(snapshot)) {
        others.add(version);
        continue;
      }
      StringJoiner files = new StringJoiner(",", "[", "]");
      int count = 0;
      for (Object file : table.changed(snapshot, "addedDataFiles")) {
        if (isOfThis(file) && ++count <= MOST_FILES) {
          files.add(described(file));
        }
      }
      if (count > MOST_FILES) {
        return PlanReader.inPieces("{\"version\":\"" + version + "\",\"files\":[]}");
      }
      if (count > 0 || hasDeletes && hasDeletesOfThis(snapshot) || isReplacing(snapshot)) {
        return PlanReader.inPieces("{\"version\":\"" + version + "\",\"files\":" + files + "}");
      }
      others.add(version);
    }
    return "";
  }

  /** Of an application that has committed it; what `rewrite_data_files` commits does not say its own. */
  private boolean isOfAnother(Object snapshot) throws ReflectiveOperationException {
    Object own = IcebergObjects.hasField(write, OWNER) ? IcebergObjects.field(write, OWNER) : null;
    Object other = ((Map<?, ?>) IcebergTable.of(snapshot, "summary")).get(APPLICATION);
    return own != null && other != null && !own.equals(other);
  }

  private boolean hasDeletesOfThis(Object snapshot) throws ReflectiveOperationException {
    for (Object file : table.changed(snapshot, "addedDeleteFiles")) {
      if (isOfThis(file)) {
        return true;
      }
    }
    return false;
  }

  /** Has it removed a file that this statement has read to write it anew? No other snapshot can. */
  private boolean isReplacing(Object snapshot) throws ReflectiveOperationException {
    Set<String> files = new HashSet<>();
    for (Object scan : replaced) {
      List<?> tasks = (List<?>) IcebergObjects.field(scan, "tasks");
      for (Object task : tasks == null ? List.of() : tasks) {
        files.add(IcebergTable.path(IcebergObjects.call("ContentScanTask", task, "file")));
      }
    }
    if (!files.isEmpty()) {
      for (Object file : table.changed(snapshot, "removedDataFiles")) {
        if (files.contains(IcebergTable.path(file))) {
          return true;
        }
      }
    }
    return false;
  }

  private boolean isOfThis(Object file) throws ReflectiveOperationException {
    return IcebergTable.path(file).contains("-" + id + "-");
  }

  private String described(Object file) throws ReflectiveOperationException {
    Object specId = IcebergTable.ofFile(file, "specId");
    Object spec = ((Map<?, ?>) table.call("specs")).get(specId);
    Object values = IcebergTable.ofFile(file, "partition");
    Object partition = spec.getClass().getMethod("partitionToPath", IcebergObjects.type("StructLike", file))
        .invoke(spec, values);
    return "{\"path\":" + Json.quoted(IcebergTable.path(file))
        + ",\"rows\":" + IcebergTable.ofFile(file, "recordCount")
        + ",\"size\":" + IcebergTable.ofFile(file, "fileSizeInBytes")
        + ",\"partition\":" + Json.quoted(String.valueOf(partition)) + ",\"row_id\":" + rowId(file) + "}";
  }

  /** Of the first row, in a table that numbers rows; null of others, and of an Iceberg that does not know of it. */
  private static Object rowId(Object file) throws ReflectiveOperationException {
    try {
      return IcebergTable.ofFile(file, "firstRowId");
    } catch (NoSuchMethodException older) {
      return null;
    }
  }

  /** Those that may be of this write, the newest first. A catalog may load the older ones only if they are asked for. */
  private List<Object> snapshotsSince() throws ReflectiveOperationException {
    List<Object> since = new ArrayList<>();
    if (isStaged()) {
      for (Object snapshot : (Iterable<?>) table.call("snapshots")) {
        if (isSince(snapshot)) {
          since.add(0, snapshot);
        }
      }
      return since;
    }
    Object snapshot = newest();
    while (snapshot != null && isSince(snapshot)) {
      since.add(snapshot);
      Object parent = IcebergTable.of(snapshot, "parentId");
      snapshot = newestBefore != null && newestBefore.equals(parent) ? null : table.snapshot(parent);
    }
    return since;
  }

  private boolean isSince(Object snapshot) throws ReflectiveOperationException {
    return !IcebergTable.id(snapshot).equals(newestBefore)
        && (Long) IcebergTable.of(snapshot, "timestampMillis") >= began - CLOCKS_MS;
  }

  /** Is its snapshot published by somebody, later? Until then it is in no branch. */
  private boolean isStaged() throws ReflectiveOperationException {
    return IcebergObjects.hasField(write, "wapId") && IcebergObjects.field(write, "wapId") != null;
  }

  /** The snapshot of the branch that is written, or of the table; null where there is none. */
  private Object newest() throws ReflectiveOperationException {
    return table.newest(IcebergObjects.hasField(write, "branch") ? IcebergObjects.field(write, "branch") : null);
  }
}
