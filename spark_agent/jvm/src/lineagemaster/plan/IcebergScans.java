package lineagemaster.plan;

import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import lineagemaster.delivery.Json;
import lineagemaster.expression.ScalaLists;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Metadata;

/**
 * Scans of tables of Iceberg, and the column `_pos` in them: the position of each row in its data file, whatever was
 * deleted or skipped before it. Spark has built and pruned a scan before the agent sees its plan. So the agent reads by
 * a copy of the scan that has the column more, and the plan stays as it is. Iceberg is not compiled against: where it is
 * another one than is expected here, nothing is said.
 */
public final class IcebergScans {
  private static final String PACKAGE = "org.apache.iceberg.spark.source.";
  private static final String POSITION = "_pos";
  /** A statement that replaces files has this one, and commits by the files that it has read: no copy may read. */
  private static final String REPLACING = "SparkCopyOnWriteScan";
  /** Those that read rows of data files. */
  private static final Set<String> OF_ROWS =
      Set.of(REPLACING, "SparkBatchQueryScan", "SparkStagedScan", "SparkIncrementalAppendScan");
  /** What Iceberg answers from its metadata, without a look at rows. */
  private static final String ANSWERED = "SparkLocalScan";
  private static final String METADATA_TABLE = "org.apache.iceberg.BaseMetadataTable";

  /**
   * What a leaf of a plan reads: {table: its name, location, format: of its files, version: the snapshot or null}.
   * Empty of what is no table of Iceberg, of the tables that it makes of metadata, and of rows without positions.
   */
  public String describe(LogicalPlan leaf) {
    try {
      Object scan = scanOf(leaf);
      Object table = scan == null ? null : IcebergObjects.field(scan, "table");
      if (table == null || IcebergObjects.isA(table, METADATA_TABLE) || !isAnswered(scan) && !hasPositions(scan)) {
        return "";
      }
      return "{" + new IcebergTable(table).describe() + ",\"version\":" + version(scan) + "}";
    } catch (ReflectiveOperationException | RuntimeException | LinkageError other) {
      return "";
    }
  }

  private static boolean isAnswered(Object scan) {
    return scan.getClass().getSimpleName().equals(ANSWERED);
  }

  /**
   * Can the column be had? Not in an Iceberg that names its fields otherwise, nor beside another of that name. Without
   * it, rows that come are not those of a file from its first row on.
   */
  private static boolean hasPositions(Object scan) throws ReflectiveOperationException {
    Object schema = IcebergObjects.field(scan, "schema");
    return IcebergObjects.hasField(scan, "projection") && IcebergObjects.hasField(scan, "readSchema")
        && schema.getClass().getMethod("findField", String.class).invoke(schema, POSITION) == null;
  }

  private static String version(Object scan) throws ReflectiveOperationException {
    Object snapshot = IcebergObjects.hasField(scan, "snapshot") ? IcebergObjects.field(scan, "snapshot") : null;
    return snapshot == null ? "null" : Json.quoted(String.valueOf(IcebergObjects.call("Snapshot", snapshot, "snapshotId")));
  }

  private static Object scanOf(LogicalPlan leaf) {
    if (!(leaf instanceof DataSourceV2ScanRelation)) {
      return null;
    }
    Object scan = ((DataSourceV2ScanRelation) leaf).scan();
    String name = scan.getClass().getName();
    if (!name.startsWith(PACKAGE)) {
      return null;
    }
    String simple = name.substring(PACKAGE.length());
    return OF_ROWS.contains(simple) || simple.equals(ANSWERED) ? scan : null;
  }

  /** The scans of the files that a statement writes anew. */
  static List<Object> replaced(LogicalPlan command) {
    List<Object> scans = new ArrayList<>();
    for (LogicalPlan leaf : ScalaLists.<LogicalPlan>get(command, "collectLeaves")) {
      Object scan = scanOf(leaf);
      if (scan != null && scan.getClass().getSimpleName().equals(REPLACING)) {
        scans.add(scan);
      }
    }
    return scans;
  }

  /** A leaf with the positions of its rows as a column; null where they cannot be had. */
  public LogicalPlan withPositions(LogicalPlan leaf) {
    if (describe(leaf).isEmpty() || isAnswered(scanOf(leaf))) {
      return null;
    }
    if (position(leaf) != null) {
      return leaf; // a statement that deletes rows has asked for it
    }
    try {
      Object scan = scanOf(leaf);
      Object projection = withPosition(IcebergObjects.field(scan, "projection"));
      Object positioned = copy(scan);
      ask(positioned, projection);
      Object[] fields = PlanBuilder.fields((DataSourceV2ScanRelation) leaf);
      List<Object> columns = new ArrayList<>(PlanReader.output(leaf));
      String[] names = ((Scan) positioned).readSchema().fieldNames();
      if (names.length != columns.size() + 1 || !names[columns.size()].equals(POSITION)) {
        return null;
      }
      if (scan.getClass().getSimpleName().equals(REPLACING)) { // only now, since it cannot be undone
        ask(scan, projection);
        positioned = scan;
      }
      columns.add(ScalaLists.construct(AttributeReference.class, POSITION, DataTypes.LongType, false, Metadata.empty(),
          NamedExpression.newExprId(), ScalaLists.of(List.of())));
      fields[1] = positioned;
      fields[2] = ScalaLists.of(columns);
      return ScalaLists.construct(DataSourceV2ScanRelation.class, fields);
    } catch (ReflectiveOperationException | RuntimeException | LinkageError other) {
      return null;
    }
  }

  /** Let a scan read these columns. */
  private static void ask(Object scan, Object projection) throws ReflectiveOperationException {
    IcebergObjects.set(scan, "projection", projection);
    IcebergObjects.set(scan, "readSchema", null);
  }

  /** The column of a leaf with the positions; null where it has none. */
  public Attribute position(LogicalPlan leaf) {
    return PlanReader.output(leaf).stream()
        .filter(column -> column.name().equals(POSITION) && column.dataType() == DataTypes.LongType)
        .findFirst().orElse(null);
  }

  private static Object withPosition(Object projection) throws ReflectiveOperationException {
    ClassLoader loader = projection.getClass().getClassLoader();
    List<Object> columns = new ArrayList<>((List<?>) projection.getClass().getMethod("columns").invoke(projection));
    columns.add(Class.forName("org.apache.iceberg.MetadataColumns", true, loader).getField("ROW_POSITION").get(null));
    return projection.getClass().getConstructor(List.class).newInstance(columns);
  }

  /** Another object with the same fields. What it has planned is shared, and is not planned again. */
  private static Object copy(Object scan) throws ReflectiveOperationException {
    Class<?> unsafe = Class.forName("sun.misc.Unsafe"); // these classes have no constructor that could be relied on
    Field instance = unsafe.getDeclaredField("theUnsafe");
    instance.setAccessible(true);
    Object copy = unsafe.getMethod("allocateInstance", Class.class).invoke(instance.get(null), scan.getClass());
    for (Class<?> type = scan.getClass(); type != Object.class; type = type.getSuperclass()) {
      for (Field field : type.getDeclaredFields()) {
        if (!Modifier.isStatic(field.getModifiers())) {
          field.setAccessible(true);
          field.set(copy, field.get(scan));
        }
      }
    }
    return copy;
  }
}
