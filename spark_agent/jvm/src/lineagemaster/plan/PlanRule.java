package lineagemaster.plan;

import lineagemaster.capture.TapBuffer;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;

/**
 * Takes each plan from Spark's optimiser to Python and back. A callback that fails leaves the plan as it is: lineage
 * never fails a query. Plans that the callback itself makes Spark optimise are not rewritten.
 */
public final class PlanRule extends Rule<LogicalPlan> {
  private static final String CACHED = "cached:";

  private final PlanCallback callback;
  private final SparkContext context;
  private final ThreadLocal<Boolean> isSuspended = ThreadLocal.withInitial(() -> false);
  private final ThreadLocal<LogicalPlan> lastResult = new ThreadLocal<>();
  private volatile String problem = "";
  private volatile boolean hasCached;

  /** @param context whose jobs get the property that something is persisted */
  public PlanRule(PlanCallback callback, SparkContext context) {
    this.callback = callback;
    this.context = context;
  }

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    if (isSuspended.get() || plan == lastResult.get()) { // Spark applies the rule until nothing changes
      return plan;
    }
    isSuspended.set(true);
    try {
      String entry = entry();
      markJobs(entry);
      Object rewritten = callback.rewrite(plan, entry);
      LogicalPlan result = rewritten == null ? plan : (LogicalPlan) rewritten;
      lastResult.set(result);
      return result;
    } catch (Throwable error) { // whatever it is, the query goes on without lineage
      problem = error.toString();
      return plan;
    } finally {
      isSuspended.set(false);
    }
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
   * Python.
   */
  private static String entry() {
    String[] parts = {"", "", ""};
    StackWalker.getInstance().forEach(frame -> {
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
    return parts[0] + parts[1] + parts[2];
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
