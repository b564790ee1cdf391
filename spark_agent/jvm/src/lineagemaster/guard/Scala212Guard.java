package lineagemaster.guard;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.SparkPlan;
import scala.collection.Seq;

/** A strategy of the planner as Spark with Scala 2.12 calls it. */
interface Scala212Guard {
  Seq<SparkPlan> apply(LogicalPlan plan);
}
