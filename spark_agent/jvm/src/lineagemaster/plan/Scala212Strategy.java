package lineagemaster.plan;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.SparkPlan;
import scala.collection.Seq;

/** What {@link Scala212Plan} is of a plan, of a strategy of the planner. */
interface Scala212Strategy {
  Seq<SparkPlan> apply(LogicalPlan plan);
}
