package lineagemaster.expression;

import lineagemaster.capture.KeptRows;
import lineagemaster.delivery.AgentConfig;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext;
import scala.collection.Seq;

/**
 * The ids of a scan in a branch of a union. From Spark 4.3 on a union is compiled into one piece with its branches, if
 * none of them has an expression that is `Nondeterministic`. A task then runs the code that opens all branches, and
 * reads one of them. The partition of that branch has another number than the task's.
 */
public final class BranchSource extends SourceExpression {
  private static final long serialVersionUID = 1;

  public BranchSource(AgentConfig config, int node, boolean isStriped, KeptRows kept, Seq<Expression> children) {
    super(config, node, isStriped, kept, children);
  }

  /** Does this Spark compile unions? */
  public static boolean areUnionsCompiled() {
    return indexVariable() != null;
  }

  @Override
  Expression withChildren(Seq<Expression> children) {
    return new BranchSource(config, node, isStriped, kept, children);
  }

  @Override
  String partition(CodegenContext context) {
    try {
      return (String) indexVariable().invoke(context);
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException(error);
    }
  }

  private static java.lang.reflect.Method indexVariable() {
    try {
      return CodegenContext.class.getMethod("currentPartitionIndexVar");
    } catch (NoSuchMethodException older) {
      return null;
    }
  }

  @Override
  boolean isLate() {
    return true;
  }

  @Override
  public Object eval(InternalRow row) {
    if (positions == null) { // outside of generated code the partition is not known: the task's is as good
      open(TaskContext.getPartitionId());
    }
    return super.eval(row);
  }
}
