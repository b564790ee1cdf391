package lineagemaster.plan;

import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import scala.collection.Seq;

/**
 * What Spark 3 calls of a plan, as Scala 2.12 names it. For it javac makes bridge methods, so one class file serves all
 * versions.
 */
interface Scala212Plan {
  Seq<LogicalPlan> children();

  Seq<Attribute> output();
}
