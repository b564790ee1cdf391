package lineagemaster;

import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import scala.collection.Seq;

/** As {@link OfScala212}, of plans. */
interface PlanOfScala212 {
  Seq<LogicalPlan> children();

  Seq<Attribute> output();
}
