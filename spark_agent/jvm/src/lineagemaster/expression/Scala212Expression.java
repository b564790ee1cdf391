package lineagemaster.expression;

import org.apache.spark.sql.catalyst.expressions.Expression;
import scala.collection.Seq;

/**
 * What Spark 3 calls of an expression, as Scala 2.12 names it. For it javac makes a bridge method, so one class file
 * serves all versions.
 */
interface Scala212Expression {
  Seq<Expression> children();
}
