package lineagemaster;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.SparkPlan;
import scala.collection.Seq;

/** As {@link OfScala212}, of strategies. */
interface StrategyOfScala212 {
  Seq<SparkPlan> apply(LogicalPlan plan);
}
