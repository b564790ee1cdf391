package lineagemaster.expression;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext;
import org.apache.spark.sql.catalyst.expressions.codegen.EmptyBlock$;
import org.apache.spark.sql.catalyst.expressions.codegen.ExprCode;
import org.apache.spark.sql.catalyst.expressions.codegen.FalseLiteral$;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import scala.collection.Seq;

/** A number for each row that takes the rows of a task to all partitions in turn, see {@link RoundRobin}. */
public final class LineageRoundRobin extends PinnedExpression implements InitializedPerPartition {
  private static final long serialVersionUID = 1;

  private final int partitions;
  private transient RoundRobin roundRobin;

  public LineageRoundRobin(int partitions, Seq<Expression> none) {
    super(none);
    this.partitions = partitions;
  }

  @Override
  Expression withChildren(Seq<Expression> children) {
    return new LineageRoundRobin(partitions, children);
  }

  @Override
  Object identity() {
    return partitions;
  }

  @Override
  public DataType dataType() {
    return DataTypes.LongType;
  }

  @Override
  public String prettyName() {
    return "lineage_round_robin";
  }

  @Override
  public String toString() {
    return prettyName() + "(" + partitions + ")";
  }

  @Override
  public void initializeInternal(int partitionIndex) {
    roundRobin = new RoundRobin(partitions);
  }

  @Override
  public Object eval(InternalRow row) {
    return evalInternal(row);
  }

  @Override
  public Object evalInternal(InternalRow row) {
    return roundRobin.next();
  }

  @Override
  public ExprCode doGenCode(CodegenContext context, ExprCode result) {
    String type = RoundRobin.class.getName();
    String roundRobin = context.addMutableState(type, "roundRobin", name -> "", true, true);
    context.addPartitionInitializationStatement(roundRobin + " = new " + type + "(" + partitions + ");");
    return result.copy(
        EmptyBlock$.MODULE$.$plus(code("final long " + result.value() + " = " + roundRobin + ".next();\n")),
        FalseLiteral$.MODULE$,
        result.value());
  }
}
