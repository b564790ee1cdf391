package lineagemaster.guard;

import lineagemaster.expression.ScalaLists;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.ReturnAnswer;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.SparkStrategy;
import scala.collection.immutable.List;

/** Plans nothing itself: judges each query before Spark's planner has it, and so before anything of it runs. */
public final class CommandGuard extends SparkStrategy implements Scala212Guard {
  private static final List<SparkPlan> NONE = none();

  @Override
  public List<SparkPlan> apply(LogicalPlan plan) {
    Commands.judge(plan instanceof ReturnAnswer ? ((ReturnAnswer) plan).child() : plan);
    return NONE;
  }

  @SuppressWarnings("unchecked") // items are not checked
  private static List<SparkPlan> none() {
    return (List<SparkPlan>) (Object) ScalaLists.of(java.util.List.of());
  }
}
