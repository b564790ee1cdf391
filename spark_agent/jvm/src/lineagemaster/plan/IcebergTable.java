package lineagemaster.plan;

import java.util.Locale;
import java.util.Map;
import lineagemaster.delivery.Json;

/** A table of Iceberg, and its snapshots. */
final class IcebergTable {
  private static final String FORMAT = "write.format.default";

  private final Object table;

  /** Of an `org.apache.iceberg.Table`. */
  IcebergTable(Object table) {
    this.table = table;
  }

  /** What a method of the table without parameters returns. */
  Object call(String method) throws ReflectiveOperationException {
    return IcebergObjects.call("Table", table, method);
  }

  /** A public type of Iceberg. */
  Class<?> type(String name) throws ReflectiveOperationException {
    return IcebergObjects.type(name, table);
  }

  /** Members of a JSON object: table, location, format of its data files. */
  String describe() throws ReflectiveOperationException {
    Object format = ((Map<?, ?>) call("properties")).get(FORMAT);
    return "\"table\":" + Json.quoted(String.valueOf(call("name")))
        + ",\"location\":" + Json.quoted(String.valueOf(call("location")))
        + ",\"format\":" + Json.quoted(format == null ? "parquet" : format.toString().toLowerCase(Locale.ROOT));
  }

  /** The last snapshot of a branch, or with null of the table; null where there is none. */
  Object newest(Object branch) throws ReflectiveOperationException {
    return branch == null ? call("currentSnapshot")
        : type("Table").getMethod("snapshot", String.class).invoke(table, String.valueOf(branch));
  }

  /** The snapshot of this id; null for null. */
  Object snapshot(Object id) throws ReflectiveOperationException {
    return id == null ? null : type("Table").getMethod("snapshot", long.class).invoke(table, id);
  }

  /** What a snapshot was made of; null of the first one. */
  Object parent(Object snapshot) throws ReflectiveOperationException {
    return snapshot(of(snapshot, "parentId"));
  }

  /** What a method of a snapshot without parameters returns: snapshotId, timestampMillis. */
  static Object of(Object snapshot, String method) throws ReflectiveOperationException {
    return IcebergObjects.call("Snapshot", snapshot, method);
  }

  /** The id of a snapshot; null for null. */
  static Object id(Object snapshot) throws ReflectiveOperationException {
    return snapshot == null ? null : of(snapshot, "snapshotId");
  }

  /** Files that a snapshot has added or removed, or its manifests. */
  Iterable<?> changed(Object snapshot, String method) throws ReflectiveOperationException {
    return (Iterable<?>) type("Snapshot").getMethod(method, type("io.FileIO")).invoke(snapshot, call("io"));
  }

  /** What a method of a file without parameters returns: recordCount, fileSizeInBytes. */
  static Object ofFile(Object file, String method) throws ReflectiveOperationException {
    return IcebergObjects.call("ContentFile", file, method);
  }

  static String path(Object file) throws ReflectiveOperationException {
    return String.valueOf(ofFile(file, "path"));
  }
}
