package lineagemaster.plan;

import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.execution.SparkPlan;
import scala.collection.Seq;

/** What {@link Scala212Plan} is of a logical plan, of a physical one. */
interface Scala212PhysicalPlan {
  Seq<SparkPlan> children();

  Seq<Attribute> output();
}
