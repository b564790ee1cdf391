package lineagemaster.expression;

import lineagemaster.capture.KeptRows;
import lineagemaster.delivery.AgentConfig;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext;
import scala.collection.Seq;

/** The ids of a scan whose partition the task reads, whether there are rows or not. */
public final class LineageSource extends SourceExpression implements InitializedPerPartition {
  private static final long serialVersionUID = 1;

  public LineageSource(AgentConfig config, int node, boolean isStriped, KeptRows kept, Seq<Expression> children) {
    super(config, node, isStriped, kept, children);
  }

  @Override
  Expression withChildren(Seq<Expression> children) {
    return new LineageSource(config, node, isStriped, kept, children);
  }

  @Override
  String partition(CodegenContext context) {
    return "partitionIndex";
  }

  @Override
  boolean isLate() {
    return false;
  }

  @Override
  public void initializeInternal(int partitionIndex) {
    open(partitionIndex);
  }

  @Override
  public Object evalInternal(InternalRow row) {
    return eval(row);
  }
}
