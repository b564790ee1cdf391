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

/** A number for each row that takes the rows of a task to `count` partitions in turn, see {@link RoundRobin}. */
public final class LineageRoundRobin extends PinnedExpression implements InitializedPerPartition {
  private static final long serialVersionUID = 1;

  private final int count;
  private transient RoundRobin turns;

  public LineageRoundRobin(int count, Seq<Expression> none) {
    super(none);
    this.count = count;
  }

  @Override
  Expression over(Seq<Expression> children) {
    return new LineageRoundRobin(count, children);
  }

  @Override
  Object identity() {
    return count;
  }

  @Override
  public DataType dataType() {
    return DataTypes.LongType;
  }

  @Override
  public String prettyName() {
    return "lineage_turn";
  }

  @Override
  public String toString() {
    return prettyName() + "(" + count + ")";
  }

  @Override
  public int productArity() {
    return 2;
  }

  @Override
  public Object productElement(int index) {
    return index == 0 ? (Object) count : kids;
  }

  @Override
  public void initializeInternal(int partitionIndex) {
    turns = new RoundRobin(count);
  }

  @Override
  public Object eval(InternalRow row) {
    return evalInternal(row);
  }

  @Override
  public Object evalInternal(InternalRow row) {
    return turns.next();
  }

  @Override
  public ExprCode doGenCode(CodegenContext context, ExprCode result) {
    String type = RoundRobin.class.getName();
    String turns = context.addMutableState(type, "turns", name -> "", true, true);
    context.addPartitionInitializationStatement(turns + " = new " + type + "(" + count + ");");
    return result.copy(
        EmptyBlock$.MODULE$.$plus(code("final long " + result.value() + " = " + turns + ".next();\n")),
        FalseLiteral$.MODULE$,
        result.value());
  }
}
