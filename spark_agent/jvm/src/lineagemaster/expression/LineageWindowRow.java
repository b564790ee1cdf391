package lineagemaster.expression;

import lineagemaster.capture.CaptureStages;
import lineagemaster.capture.FrameSpec;
import lineagemaster.capture.TapBuffer;
import lineagemaster.capture.WindowBuffer;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.codegen.Block;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext;
import org.apache.spark.sql.catalyst.expressions.codegen.EmptyBlock$;
import org.apache.spark.sql.catalyst.expressions.codegen.ExprCode;
import org.apache.spark.sql.catalyst.expressions.codegen.FalseLiteral$;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import scala.collection.Seq;

/**
 * The position of a row among those that come into a window in a task, which notes its ids: its children. It stands in
 * an aggregate over whole partitions, which the window evaluates before it gives the first row of a partition. Spark
 * does not initialise expressions there, so the buffer is opened with the first row.
 */
public final class LineageWindowRow extends PinnedExpression {
  private static final long serialVersionUID = 1;

  private final FrameSpec spec;
  private transient WindowBuffer buffer;

  public LineageWindowRow(FrameSpec spec, Seq<Expression> children) {
    super(children);
    this.spec = spec;
  }

  @Override
  Expression withChildren(Seq<Expression> children) {
    return new LineageWindowRow(spec, children);
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
    return "lineage_window_row";
  }

  @Override
  public Object eval(InternalRow row) {
    if (buffer == null) {
      buffer = WindowBuffer.open(spec);
    }
    int slot = buffer.slot();
    for (int i = 0; i < children.size(); i++) {
      Object value = children.apply(i).eval(row);
      buffer.ids[i][slot] = value == null ? TapBuffer.NONE : (Long) value;
    }
    buffer.rows = slot + 1;
    return buffer.position(slot);
  }

  @Override
  public ExprCode doGenCode(CodegenContext context, ExprCode result) {
    if (!CaptureStages.IS_CAPTURED) {
      return result.copy(code("final long " + result.value() + " = 0L;\n"), FalseLiteral$.MODULE$, result.value());
    }
    String buffer = LineageFrame.buffer(context);
    String slot = context.freshName("slot");
    Block childCode = EmptyBlock$.MODULE$;
    StringBuilder writes = new StringBuilder(LineageFrame.opening(context, spec, buffer));
    writes.append("final int " + slot + " = " + buffer + ".slot();\n");
    for (int i = 0; i < children.size(); i++) {
      ExprCode child = children.apply(i).genCode(context);
      childCode = childCode.$plus(child.code());
      writes.append(buffer + ".ids[" + i + "][" + slot + "] = ");
      writes.append(child.isNull() + " ? " + TapBuffer.NONE + "L : " + child.value() + ";\n");
    }
    writes.append(buffer + ".rows = " + slot + " + 1;\n");
    writes.append("final long " + result.value() + " = " + buffer + ".position(" + slot + ");\n");
    return result.copy(childCode.$plus(code(writes.toString())), FalseLiteral$.MODULE$, result.value());
  }
}
