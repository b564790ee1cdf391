package lineagemaster.expression;

import org.apache.spark.sql.catalyst.expressions.Expression;
import scala.collection.Seq;

/** What Spark 3 calls, whose Scala is 2.12: javac makes the bridge to it, so one class file serves all versions. */
interface Scala212Expression {
  Seq<Expression> children();
}
