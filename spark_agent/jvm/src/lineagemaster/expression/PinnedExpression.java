package lineagemaster.expression;

import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Unevaluable;
import scala.collection.Seq;

/**
 * An expression that is evaluated once for each row where it stands, never folded, moved, merged or left out.
 * `Unevaluable` is only a mark, since each of them can be evaluated: it keeps the optimiser from running them on the
 * driver over a local table.
 */
abstract class PinnedExpression extends AgentExpression implements Unevaluable {
  private static final long serialVersionUID = 1;

  PinnedExpression(Seq<Expression> children) {
    super(children);
  }

  @Override
  public boolean deterministic() {
    return false;
  }

  @Override
  public boolean foldable() {
    return false;
  }

  @Override
  public boolean stateful() {
    return true;
  }
}
