package lineagemaster.expression;

import lineagemaster.capture.TapBuffer;
import lineagemaster.capture.TapSpec;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext;
import org.apache.spark.sql.catalyst.expressions.codegen.EmptyBlock$;
import org.apache.spark.sql.catalyst.expressions.codegen.ExprCode;
import org.apache.spark.sql.catalyst.expressions.codegen.FalseLiteral$;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import scala.collection.Seq;

/** The key of all rows that a tap below, in the same task, has seen by now; {@link TapBuffer#NONE} before the first. */
public final class LineageReads extends PinnedExpression implements InitializedPerPartition {
  private static final long serialVersionUID = 1;

  private final TapSpec spec;
  private transient TapBuffer buffer;

  public LineageReads(TapSpec spec, Seq<Expression> none) {
    super(none);
    this.spec = spec;
  }

  @Override
  Expression withChildren(Seq<Expression> children) {
    return new LineageReads(spec, children);
  }

  @Override
  Object identity() {
    return spec;
  }

  @Override
  public DataType dataType() {
    return DataTypes.LongType;
  }

  @Override
  public String prettyName() {
    return "lineage_reads";
  }

  @Override
  public void initializeInternal(int partitionIndex) {
    buffer = TapBuffer.open(spec, partitionIndex);
  }

  @Override
  public Object eval(InternalRow row) {
    return evalInternal(row);
  }

  @Override
  public Object evalInternal(InternalRow row) {
    return buffer.keyOfReads();
  }

  @Override
  public ExprCode doGenCode(CodegenContext context, ExprCode result) {
    String type = TapBuffer.class.getName();
    String spec = context.addReferenceObj("tap", this.spec, TapSpec.class.getName());
    String buffer = context.addMutableState(type, "tap", name -> "", true, true);
    context.addPartitionInitializationStatement(buffer + " = " + type + ".open(" + spec + ", partitionIndex);");
    return result.copy(
        EmptyBlock$.MODULE$.$plus(code("final long " + result.value() + " = " + buffer + ".keyOfReads();\n")),
        FalseLiteral$.MODULE$,
        result.value());
  }
}
