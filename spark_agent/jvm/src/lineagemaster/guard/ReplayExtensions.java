package lineagemaster.guard;

import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import scala.Function1;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/** What each SparkSession of a replay has: `spark.sql.extensions` names it. */
@SuppressWarnings({"unchecked", "rawtypes"}) // the class of sessions has another name in each Spark
public final class ReplayExtensions extends AbstractFunction1<SparkSessionExtensions, BoxedUnit> {
  @Override
  public BoxedUnit apply(SparkSessionExtensions extensions) {
    extensions.injectPlannerStrategy((Function1) new Constant(new CommandGuard()));
    extensions.injectCheckRule((Function1) new Constant(new QueryGuard()));
    return BoxedUnit.UNIT;
  }

  private static final class Constant extends AbstractFunction1<Object, Object> {
    private final Object value;

    Constant(Object value) {
      this.value = value;
    }

    @Override
    public Object apply(Object session) {
      return value;
    }
  }

  /** Judges what a program names, before Spark's optimiser has it: streams, and methods of Java. */
  private static final class QueryGuard extends AbstractFunction1<LogicalPlan, BoxedUnit> {
    @Override
    public BoxedUnit apply(LogicalPlan plan) {
      if (plan.isStreaming()) {
        throw new CommandRefused("run the streaming query", "");
      }
      Commands.judgeExpressions(plan);
      return BoxedUnit.UNIT;
    }
  }
}
