package lineagemaster.plan;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Collections;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import lineagemaster.capture.KeptRows;
import lineagemaster.expression.ScalaLists;
import lineagemaster.expression.SourceExpression;
import org.apache.spark.SparkContext;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.InputFileBlockLength;
import org.apache.spark.sql.catalyst.expressions.InputFileBlockStart;
import org.apache.spark.sql.catalyst.expressions.InputFileName;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.internal.SQLConf;
import scala.collection.JavaConverters;

/**
 * The candidates of a scan, as the first run of a sift has read them. Further runs take their rows from here, and read
 * no file. They have the partitions, the order and the columns that the scan gave. Another scan, another setting of SQL
 * or other candidates are read for themselves. What would take too much memory is read from its files by each run.
 */
final class KeptScan {
  /** Bytes of rows that are kept, of all scans; and scans that are remembered. */
  private static final long MOST_BYTES = 128L << 20;
  private static final int MOST_SCANS = 100;

  /**
   * By what is read, and how; null for what is not kept. They are of the JVM: each run has a SparkContext of its own.
   * Those that were not used for longest come first.
   */
  private static final Map<List<Object>, KeptScan> SCANS = new LinkedHashMap<>(16, 0.75f, true);

  private final List<List<InternalRow>> partitions;
  private final int idColumn;
  private final long bytes;

  private KeptScan(List<List<InternalRow>> partitions, int idColumn, long bytes) {
    this.partitions = partitions;
    this.idColumn = idColumn;
    this.bytes = bytes;
    for (List<InternalRow> rows : partitions) {
      rows.forEach(row -> row.setLong(idColumn, KeptRows.candidate(row.getLong(idColumn))));
    }
  }

  /**
   * The rows that are kept of a plan whose column of ids is that one. It is run if it was not run before. Where no rows
   * of it are kept here, it gives all of them: the ids of those that are dropped are negative.
   */
  static RDD<InternalRow> rows(
      List<Object> key, SparkPlan plan, int idColumn, KeptRows kept, SparkContext context) {
    synchronized (SCANS) {
      if (!SCANS.containsKey(key)) {
        SCANS.put(key, read(plan, idColumn));
        forgetOldest();
      }
      KeptScan scan = SCANS.get(key);
      return scan == null ? plan.execute() : scan.kept(kept.keptCandidates(), context);
    }
  }

  /** Null if the rows are too large, for this class or for `spark.driver.maxResultSize`, or cannot be read at all. */
  private static KeptScan read(SparkPlan plan, int idColumn) {
    List<List<InternalRow>> partitions;
    JavaRDD<InternalRow> rows = plan.execute().toJavaRDD();
    try {
      partitions = rows.mapPartitions(KeptScan::copied).collect();
    } catch (Exception failed) { // if it is the job's own error, reading the files will raise it again
      return null;
    }
    long bytes = partitions.stream().flatMap(List::stream).mapToLong(KeptScan::size).sum();
    boolean isWhole = partitions.size() == rows.getNumPartitions();
    return isWhole && bytes <= MOST_BYTES ? new KeptScan(partitions, idColumn, bytes) : null;
  }

  private static void forgetOldest() {
    long bytes = SCANS.values().stream().filter(Objects::nonNull).mapToLong(scan -> scan.bytes).sum();
    Iterator<KeptScan> oldest = SCANS.values().iterator();
    while (bytes > MOST_BYTES || SCANS.size() > MOST_SCANS) {
      KeptScan scan = oldest.next();
      oldest.remove();
      bytes -= scan == null ? 0 : scan.bytes;
    }
  }

  private static long size(InternalRow row) {
    return row instanceof UnsafeRow ? ((UnsafeRow) row).getSizeInBytes() : 8L * row.numFields();
  }

  /** A list of the rows of a partition; none if they are too large. */
  private static Iterator<List<InternalRow>> copied(Iterator<InternalRow> rows) {
    List<InternalRow> copies = new ArrayList<>();
    long bytes = 0;
    while (rows.hasNext()) {
      InternalRow row = rows.next().copy();
      copies.add(row);
      bytes += size(row);
      if (bytes > MOST_BYTES) {
        return Collections.emptyIterator();
      }
    }
    return List.of(copies).iterator();
  }

  private RDD<InternalRow> kept(BitSet candidates, SparkContext context) {
    List<List<InternalRow>> kept = new ArrayList<>();
    for (List<InternalRow> rows : partitions) {
      List<InternalRow> some = new ArrayList<>();
      for (InternalRow row : rows) {
        if (candidates.get(Math.toIntExact(row.getLong(idColumn)))) {
          some.add(row);
        }
      }
      kept.add(some);
    }
    JavaSparkContext java = JavaSparkContext.fromSparkContext(context);
    return kept.isEmpty() ? java.<InternalRow>emptyRDD().rdd()
        : java.parallelize(kept, kept.size()).flatMap(List::iterator).rdd();
  }

  // -- which plans these are ---------------------------------------------------------------------------

  /** Which rows the scan keeps that a plan is the filter of; null if it is none whose candidates are to be kept. */
  static KeptRows keptBy(LogicalPlan plan) {
    Alias ids = plan instanceof Filter ? idsOf(((Filter) plan).child()) : null;
    return ids == null || key(plan) == null ? null : ((SourceExpression) ids.child()).kept();
  }

  /** The column of ids in the first projection that makes one with candidates. */
  static Alias idsOf(LogicalPlan plan) {
    for (LogicalPlan at = plan; at instanceof Project; at = ((Project) at).child()) {
      for (Expression column : ScalaLists.<Expression>get(at, "projectList")) {
        if (column instanceof Alias && ((Alias) column).child() instanceof SourceExpression) {
          KeptRows kept = ((SourceExpression) ((Alias) column).child()).kept();
          return kept != null && kept.hasCandidates() ? (Alias) column : null;
        }
      }
    }
    return null;
  }

  /**
   * What a plan reads, and how; null if it is not known to be the same each time. Its conditions are those of the
   * canonical plan, which are equal whatever numbers their columns have: texts of them may be cut.
   */
  @SuppressWarnings("deprecation") // the only converters of both versions of Scala
  static List<Object> key(LogicalPlan plan) {
    List<Object> key = new ArrayList<>();
    LogicalPlan at = plan;
    LogicalPlan canonical = plan.canonicalized();
    while (at instanceof Filter || at instanceof Project) {
      List<Expression> expressions = ScalaLists.get(at, "expressions");
      if (canonical.getClass() != at.getClass() || !expressions.stream().allMatch(KeptScan::isRepeatable)) {
        return null;
      }
      ScalaLists.<Expression>get(canonical, "expressions").forEach(expression -> key.add(known(expression)));
      at = child(at);
      canonical = child(canonical);
    }
    if (!(at instanceof LogicalRelation) || !(((LogicalRelation) at).relation() instanceof HadoopFsRelation)) {
      return null;
    }
    for (Attribute column : ScalaLists.<Attribute>get(at, "output")) {
      key.add(column.name());
      key.add(column.dataType());
    }
    HadoopFsRelation files = (HadoopFsRelation) ((LogicalRelation) at).relation();
    key.add(Arrays.asList(files.inputFiles()));
    key.add(files.dataSchema().json());
    key.add(files.partitionSchema().json());
    key.add(files.fileFormat().getClass().getName());
    key.add(new TreeMap<>(JavaConverters.mapAsJavaMap(files.options())));
    TreeMap<String, String> settings = new TreeMap<>(JavaConverters.mapAsJavaMap(SQLConf.get().getAllConfs()));
    settings.keySet().removeIf(name -> !name.startsWith("spark.sql."));
    key.add(settings);
    return key;
  }

  private static LogicalPlan child(LogicalPlan plan) {
    return plan instanceof Filter ? ((Filter) plan).child() : ((Project) plan).child();
  }

  /** An expression of a canonical plan; of the ids what is the same in each run, which is another application. */
  private static Object known(Expression expression) {
    if (!(expression instanceof Alias) || !(((Alias) expression).child() instanceof SourceExpression)) {
      return expression;
    }
    SourceExpression ids = (SourceExpression) ((Alias) expression).child();
    return List.of(ids.node(), ScalaLists.asJava(ids.children()));
  }

  private static boolean isRepeatable(Expression expression) {
    if (expression instanceof SourceExpression) {
      return true;
    }
    return !(expression instanceof PlanExpression)
        && (expression.deterministic() || expression instanceof Alias)
        && ScalaLists.<Expression>get(expression, "children").stream().allMatch(KeptScan::isRepeatable);
  }

  /** Do expressions of a plan ask which file a row is of? Rows that are kept are read from none. */
  static boolean asksForFiles(LogicalPlan plan) {
    return ScalaLists.<Expression>get(plan, "expressions").stream().anyMatch(KeptScan::asksForFile)
        || ScalaLists.<LogicalPlan>get(plan, "children").stream().anyMatch(KeptScan::asksForFiles);
  }

  private static boolean asksForFile(Expression expression) {
    return expression instanceof InputFileName
        || expression instanceof InputFileBlockStart
        || expression instanceof InputFileBlockLength
        || ScalaLists.<Expression>get(expression, "children").stream().anyMatch(KeptScan::asksForFile);
  }
}
