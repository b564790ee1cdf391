package lineagemaster.plan;

import java.util.stream.Collectors;
import java.util.stream.Stream;
import lineagemaster.capture.KeptRows;
import lineagemaster.capture.TapBuffer;
import lineagemaster.expression.ScalaLists;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.ReturnAnswer;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.FilterExec;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.SparkStrategy;
import scala.collection.immutable.List;

/**
 * Takes each optimised plan from Spark's planner to Python and back. It is the planner's first strategy: what Python
 * makes of a plan is planned in the plan's place, and the query keeps its optimised plan, which others read. A callback
 * that fails leaves the plan as it is: lineage never fails a query. Plans that the callback itself makes Spark plan are
 * not rewritten.
 */
public final class PlanStrategy extends SparkStrategy implements Scala212Strategy {
  private static final String CACHED = "cached:";
  /** The method of Spark that asks the planner for a whole plan. */
  private static final String PLANNING = "createSparkPlan";
  private static final String ADAPTIVE = "org.apache.spark.sql.execution.adaptive.";
  /** The rule behind those of users, from Spark 4.3 on. It tells the planner which scans one task is to read. */
  private static final String MARKING = "org.apache.spark.sql.execution.datasources.MarkSingleTaskExecution$";

  private static final List<SparkPlan> NONE = plans();
  private static final StackWalker WALKER = StackWalker.getInstance(StackWalker.Option.RETAIN_CLASS_REFERENCE);

  private final PlanCallback callback;
  private final SparkContext context;
  private final ThreadLocal<Boolean> isSuspended = ThreadLocal.withInitial(() -> false);
  private final ThreadLocal<LogicalPlan> rewritten = new ThreadLocal<>();
  private volatile String problem = "";
  private volatile boolean hasCached;

  /**
   * @param context whose jobs get the property that something is persisted
   * @throws IllegalStateException where this Spark plans queries in another way
   */
  public PlanStrategy(PlanCallback callback, SparkContext context) {
    if (Stream.of(QueryExecution.class.getMethods()).noneMatch(method -> method.getName().equals(PLANNING))) {
      throw new IllegalStateException("this Spark has no QueryExecution." + PLANNING);
    }
    this.callback = callback;
    this.context = context;
  }

  @Override
  public List<SparkPlan> apply(LogicalPlan plan) {
    KeptRows kept = KeptScan.keptBy(plan);
    if (kept != null) {
      return plans(keptScan((Filter) plan, kept));
    }
    if (!(plan instanceof ReturnAnswer) || isSuspended.get()) { // the root of a plan stands below a ReturnAnswer
      return NONE;
    }
    LogicalPlan query = ((ReturnAnswer) plan).child();
    if (query == rewritten.get()) {
      rewritten.remove();
      return NONE;
    }
    LogicalPlan result = isOfQuery() ? rewritten(query) : query;
    if (result == query) {
      return NONE;
    }
    rewritten.set(result);
    return plans(new RewrittenPlan(planLater(new ReturnAnswer(result))));
  }

  private SparkPlan keptScan(Filter plan, KeptRows kept) {
    ExprId ids = KeptScan.idsOf(plan.child()).exprId();
    java.util.List<ExprId> columns = ScalaLists.<Attribute>get(plan, "output").stream()
        .map(Attribute::exprId).collect(Collectors.toList());
    SparkPlan filter = new FilterExec(plan.condition(), planLater(plan.child()));
    java.util.List<Object> key = java.util.List.of(kept.name(), KeptScan.key(plan));
    return new KeptScanPlan(filter, kept, key, columns.indexOf(ids));
  }

  /** Do expressions of a plan ask which file a row is of? */
  public static boolean asksForFiles(LogicalPlan plan) {
    return KeptScan.asksForFiles(plan);
  }

  @SuppressWarnings("unchecked") // items are not checked
  private static List<SparkPlan> plans(SparkPlan... plans) {
    return (List<SparkPlan>) (Object) ScalaLists.of(java.util.List.of(plans));
  }

  private LogicalPlan rewritten(LogicalPlan plan) {
    isSuspended.set(true);
    try {
      String taker = context.getLocalProperty(TapBuffer.TAKER);
      String entry = entry(taker == null ? "" : "#" + taker);
      markJobs(entry);
      Object result = callback.rewrite(plan, entry);
      if (result == null) {
        return plan;
      }
      LogicalPlan marked = marked((LogicalPlan) result);
      marked.setAnalyzed(); // as Spark does behind its optimiser
      return marked;
    } catch (Throwable error) { // whatever it is, the query goes on without lineage
      problem = error.toString();
      return plan;
    } finally {
      isSuspended.set(false);
    }
  }

  /**
   * Is it a query whose plan is made? Plans of its subqueries come with another caller, and so do the plans that Spark
   * makes again while the query runs.
   */
  private static boolean isOfQuery() {
    return StackWalker.getInstance().walk(frames -> frames
        .takeWhile(frame -> !frame.getClassName().startsWith(ADAPTIVE))
        .dropWhile(frame -> !frame.getMethodName().equals(PLANNING))
        .dropWhile(frame -> frame.getMethodName().equals(PLANNING))
        .findFirst()
        .map(frame -> frame.getClassName().equals(QueryExecution.class.getName()))
        .orElse(false));
  }

  @SuppressWarnings("unchecked") // a rule of logical plans
  private static LogicalPlan marked(LogicalPlan plan) throws ReflectiveOperationException {
    Class<?> rule;
    try {
      rule = Class.forName(MARKING);
    } catch (ClassNotFoundException older) {
      return plan;
    }
    return ((Rule<LogicalPlan>) rule.getField("MODULE$").get(null)).apply(plan);
  }

  /**
   * Where something is persisted, the jobs that this thread starts say so to the workers that compute RDDs below a
   * plan: what these have written to a cache outlives their tasks. No RDD is persisted for a plan before a plan that
   * is cached is run.
   */
  private void markJobs(String entry) {
    hasCached |= entry.startsWith(CACHED);
    if (hasCached || !context.getPersistentRDDs().isEmpty()) {
      context.setLocalProperty(TapBuffer.HAS_PERSISTED, "true");
    }
  }

  /**
   * The method of Spark SQL that the user's program called, as Class.method: the outermost one on the stack. Before it
   * "cached:", where the plan is one that Spark caches. Behind it "@" and the number of this thread, where it works for
   * Python. Behind that "|" and what a library of tables does, where it has the plan made. `rewritten` puts "#" and the
   * number of a library's call before that, whose jobs are under way.
   */
  private static String entry(String taker) {
    String[] parts = {"", "", ""};
    TableWork work = new TableWork();
    WALKER.forEach(frame -> {
      work.look(frame);
      String name = frame.getClassName();
      String simple = name.substring(name.lastIndexOf('.') + 1);
      if (name.startsWith("org.apache.spark.sql.") && simple.startsWith("CacheManager")) {
        parts[0] = CACHED;
      } else if (name.startsWith("org.apache.spark.sql.") && (simple + frame.getMethodName()).indexOf('$') < 0) {
        parts[1] = simple + "." + frame.getMethodName();
      } else if (name.startsWith("py4j.")) {
        parts[2] = "@" + Thread.currentThread().getId();
      }
    });
    String doing = work.json();
    return parts[0] + parts[1] + parts[2] + taker + (doing.isEmpty() ? "" : "|" + doing);
  }

  /** Does this thread make Spark plan a query only to show it to users, whose plan stays as it is? */
  public void suspend(boolean isSuspended) {
    this.isSuspended.set(isSuspended);
  }

  /** Why the last callback that failed did so, once; then empty. */
  public String takeProblem() {
    String text = problem;
    problem = "";
    return text;
  }
}
