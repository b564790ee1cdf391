package lineagemaster.plan;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
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
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.InputFileBlockLength;
import org.apache.spark.sql.catalyst.expressions.InputFileBlockStart;
import org.apache.spark.sql.catalyst.expressions.InputFileName;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
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
 * or other candidates are read for themselves.
 */
final class KeptScan {
  /** By what is read, and how. They are of the JVM: each run has a SparkContext of its own. */
  private static final Map<String, KeptScan> SCANS = new HashMap<>();

  /** What tells columns of the same name apart, in texts of expressions. */
  private static final String NUMBERS = "#[0-9]+L?";

  private final List<List<InternalRow>> partitions;
  private final int idColumn;

  private KeptScan(List<List<InternalRow>> partitions, int idColumn) {
    this.partitions = partitions;
    this.idColumn = idColumn;
    for (List<InternalRow> rows : partitions) {
      rows.forEach(row -> row.setLong(idColumn, KeptRows.candidate(row.getLong(idColumn))));
    }
  }

  /** The rows that are kept of a plan whose column of ids is that one. It is run if it was not run before. */
  static RDD<InternalRow> rows(String key, SparkPlan plan, int idColumn, KeptRows kept, SparkContext context) {
    synchronized (SCANS) {
      if (!SCANS.containsKey(key)) {
        JavaRDD<InternalRow> rows = plan.execute().toJavaRDD();
        SCANS.put(key, new KeptScan(rows.mapPartitions(KeptScan::copied).collect(), idColumn));
      }
      return SCANS.get(key).kept(kept.keptCandidates(), context);
    }
  }

  private static Iterator<List<InternalRow>> copied(Iterator<InternalRow> rows) {
    List<InternalRow> copies = new ArrayList<>();
    rows.forEachRemaining(row -> copies.add(row.copy()));
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

  /** What a plan reads, and how; null if it is not known to be the same each time. */
  @SuppressWarnings("deprecation") // the only converters of both versions of Scala
  static String key(LogicalPlan plan) {
    StringBuilder key = new StringBuilder();
    LogicalPlan at = plan;
    while (at instanceof Filter || at instanceof Project) {
      for (Expression expression : ScalaLists.<Expression>get(at, "expressions")) {
        if (!isRepeatable(expression)) {
          return null;
        }
        key.append(expression.toString().replaceAll(NUMBERS, "")).append('\n');
      }
      at = at instanceof Filter ? ((Filter) at).child() : ((Project) at).child();
    }
    if (!(at instanceof LogicalRelation) || !(((LogicalRelation) at).relation() instanceof HadoopFsRelation)) {
      return null;
    }
    HadoopFsRelation files = (HadoopFsRelation) ((LogicalRelation) at).relation();
    key.append(String.join("\n", files.inputFiles())).append('\n');
    key.append(files.dataSchema().json()).append(files.partitionSchema().json());
    key.append(files.fileFormat().getClass().getName());
    key.append(new TreeMap<>(JavaConverters.mapAsJavaMap(files.options())));
    TreeMap<String, String> settings = new TreeMap<>(JavaConverters.mapAsJavaMap(SQLConf.get().getAllConfs()));
    settings.keySet().removeIf(name -> !name.startsWith("spark.sql."));
    key.append(settings);
    return key.toString();
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
