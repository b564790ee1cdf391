package lineagemaster;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.SparkStrategy;
import scala.collection.immutable.List;

/** How Spark's planner runs a {@link SteadyPlan}: as what is below it. */
public final class SteadyStrategy extends SparkStrategy implements StrategyOfScala212 {
  @Override
  @SuppressWarnings("unchecked") // whose items nobody checks
  public List<SparkPlan> apply(LogicalPlan plan) {
    java.util.List<SparkPlan> made =
        plan instanceof SteadyPlan ? java.util.List.of(planLater(((SteadyPlan) plan).child())) : java.util.List.of();
    return (List<SparkPlan>) (Object) ScalaLists.of(made);
  }
}
