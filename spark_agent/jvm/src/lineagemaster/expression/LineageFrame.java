package lineagemaster.expression;

import lineagemaster.capture.CaptureStages;
import lineagemaster.capture.FrameSpec;
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
 * A condition directly over a window, that every row meets and that notes where its frames are. Its children are longs
 * that are never null: the position of the last row of its partition, the row's key, and the columns of the frames, those
 * that {@link FrameSpec} says.
 */
public final class LineageFrame extends PinnedExpression {
  private static final long serialVersionUID = 1;
  private static final int FIRST_COLUMN = 2;

  private final FrameSpec spec;
  private transient WindowBuffer buffer;

  public LineageFrame(FrameSpec spec, Seq<Expression> children) {
    super(children);
    this.spec = spec;
  }

  @Override
  Expression withChildren(Seq<Expression> children) {
    return new LineageFrame(spec, children);
  }

  @Override
  Object identity() {
    return spec;
  }

  @Override
  public DataType dataType() {
    return DataTypes.BooleanType;
  }

  @Override
  public String prettyName() {
    return "lineage_frame";
  }

  @Override
  public Object eval(InternalRow row) {
    if (buffer == null) {
      buffer = WindowBuffer.open(spec);
    }
    for (int i = FIRST_COLUMN; i < children.size(); i++) {
      buffer.columns[i - FIRST_COLUMN] = number(i, row);
    }
    buffer.frame(number(0, row), number(1, row));
    return Boolean.TRUE;
  }

  private long number(int child, InternalRow row) {
    return ((Number) children.apply(child).eval(row)).longValue();
  }

  @Override
  public ExprCode doGenCode(CodegenContext context, ExprCode result) {
    String isTrue = "final boolean " + result.value() + " = true;\n";
    if (!CaptureStages.IS_CAPTURED) {
      return result.copy(code(isTrue), FalseLiteral$.MODULE$, result.value());
    }
    String buffer = buffer(context);
    Block childCode = EmptyBlock$.MODULE$;
    StringBuilder writes = new StringBuilder(opening(context, spec, buffer));
    StringBuilder arguments = new StringBuilder();
    for (int i = 0; i < children.size(); i++) {
      ExprCode child = children.apply(i).genCode(context);
      childCode = childCode.$plus(child.code());
      if (i < FIRST_COLUMN) {
        arguments.append(i == 0 ? "" : ", ").append(child.value());
      } else {
        writes.append(buffer + ".columns[" + (i - FIRST_COLUMN) + "] = " + child.value() + ";\n");
      }
    }
    writes.append(buffer + ".frame(" + arguments + ");\n").append(isTrue);
    return result.copy(childCode.$plus(code(writes.toString())), FalseLiteral$.MODULE$, result.value());
  }

  /** The field of generated code that holds the buffer of a window. */
  static String buffer(CodegenContext context) {
    return context.addMutableState(WindowBuffer.class.getName(), "window", name -> "", true, true);
  }

  /** The code that opens the buffer with the first row. */
  static String opening(CodegenContext context, FrameSpec spec, String buffer) {
    String type = WindowBuffer.class.getName();
    String reference = context.addReferenceObj("window", spec, FrameSpec.class.getName());
    return "if (" + buffer + " == null) {\n" + buffer + " = " + type + ".open(" + reference + ");\n}\n";
  }
}
