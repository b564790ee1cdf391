package lineagemaster.plan;

import lineagemaster.capture.TapBuffer;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;

/**
 * The optimiser's door to Python. A callback that fails leaves the plan as it is: lineage never fails a query. What the
 * callback itself makes Spark plan passes by it.
 */
public final class PlanRule extends Rule<LogicalPlan> {
  private static final String KEPT = "kept:";

  private final PlanCallback callback;
  private final SparkContext context;
  private final ThreadLocal<Boolean> isWithin = ThreadLocal.withInitial(() -> false);
  private final ThreadLocal<LogicalPlan> given = new ThreadLocal<>();
  private volatile String problem = "";
  private volatile boolean hasKept;

  /** @param context whose jobs are told where something is kept */
  public PlanRule(PlanCallback callback, SparkContext context) {
    this.callback = callback;
    this.context = context;
  }

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    if (isWithin.get() || plan == given.get()) { // its batch runs until nothing changes
      return plan;
    }
    isWithin.set(true);
    try {
      String entry = entry();
      noteKeeping(entry);
      Object rewritten = callback.rewrite(plan, entry);
      LogicalPlan taken = rewritten == null ? plan : (LogicalPlan) rewritten;
      given.set(taken);
      return taken;
    } catch (Throwable error) { // whatever it is, the query goes on without lineage
      problem = error.toString();
      return plan;
    } finally {
      isWithin.set(false);
    }
  }

  /**
   * Where something is kept, the jobs that this thread starts say so to the workers that compute RDDs below a plan: what
   * these have given to a cache outlives their tasks. Until a plan that is kept is run, no RDD is persisted for it.
   */
  private void noteKeeping(String entry) {
    hasKept |= entry.startsWith(KEPT);
    if (hasKept || !context.getPersistentRDDs().isEmpty()) {
      context.setLocalProperty(TapBuffer.KEEPING, "true");
    }
  }

  /**
   * Which method of Spark SQL the user's program called, as Class.method: the outermost one on the stack. Behind
   * "kept:" where the plan is one that Spark caches; before "@" and the number of this thread where it works for Python.
   */
  private static String entry() {
    String[] found = {"", "", ""};
    StackWalker.getInstance().forEach(frame -> {
      String name = frame.getClassName();
      String simple = name.substring(name.lastIndexOf('.') + 1);
      if (name.startsWith("org.apache.spark.sql.") && simple.startsWith("CacheManager")) {
        found[0] = KEPT;
      } else if (name.startsWith("org.apache.spark.sql.") && (simple + frame.getMethodName()).indexOf('$') < 0) {
        found[1] = simple + "." + frame.getMethodName();
      } else if (name.startsWith("py4j.")) {
        found[2] = "@" + Thread.currentThread().getId();
      }
    });
    return found[0] + found[1] + found[2];
  }

  /** Whether this thread makes Spark plan a query only to show it to people, whose plan stays as it is. */
  public void onlyShow(boolean isShown) {
    isWithin.set(isShown);
  }

  /** Why the last callback that failed did; then forgotten. */
  public String takeProblem() {
    String text = problem;
    problem = "";
    return text;
  }
}
