package lineagemaster.expression;

import java.util.StringJoiner;
import lineagemaster.capture.CaptureStages;
import lineagemaster.capture.TapBuffer;
import lineagemaster.capture.TapSpec;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.codegen.Block;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext;
import org.apache.spark.sql.catalyst.expressions.codegen.EmptyBlock$;
import org.apache.spark.sql.catalyst.expressions.codegen.ExprCode;
import org.apache.spark.sql.catalyst.expressions.codegen.FalseLiteral$;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.types.UTF8String;
import scala.collection.Seq;

/**
 * A condition that every row meets and that notes where the row comes from. The children are columns of ids, a null
 * where a row has none, and if the spec has one, the row's key: a long that is never null or negative. Of an output that
 * has places there are instead the key of the row's place, a bucket if it has buckets, and the texts that name its
 * folder, which only the first row of a place is asked for. Last are columns in which the end of a line is looked for.
 */
public final class LineageTap extends PinnedExpression implements InitializedPerPartition {
  private static final long serialVersionUID = 1;

  private final TapSpec spec;
  private transient TapBuffer buffer;

  public LineageTap(TapSpec spec, Seq<Expression> children) {
    super(children);
    this.spec = spec;
  }

  public TapSpec spec() {
    return spec;
  }

  /** The node of its rows. */
  public int node() {
    return spec.node;
  }

  /** Are its rows those of an output? */
  public boolean isOutput() {
    return !spec.hasKey();
  }

  @Override
  Expression over(Seq<Expression> children) {
    return new LineageTap(spec, children);
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
    return "lineage_tap";
  }

  @Override
  public int productArity() {
    return 2;
  }

  @Override
  public Object productElement(int index) {
    return index == 0 ? spec : kids;
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
    int slot = buffer.slot();
    for (int i = 0; i < columns(); i++) {
      Object value = kids.apply(i).eval(row);
      long[] column = i < spec.sources.length ? buffer.ids[i] : buffer.keys;
      column[slot] = value == null ? TapBuffer.NONE : (Long) value;
    }
    if (spec.hasPlaces()) {
      long place = (Long) kids.apply(columns()).eval(row);
      if (place != buffer.place) {
        int bucket = spec.isBucketed ? (Integer) kids.apply(columns() + 1).eval(row) : -1;
        UTF8String[] values = new UTF8String[spec.columns.size()];
        for (int i = 0; i < values.length; i++) {
          values[i] = (UTF8String) kids.apply(names() + i).eval(row);
        }
        buffer.enter(place, bucket, values);
      }
    }
    for (int i = kids.size() - spec.texts; i < kids.size() && buffer.isOfLines; i++) {
      UTF8String text = (UTF8String) kids.apply(i).eval(row);
      buffer.isOfLines = text == null ? !spec.isAlone : !LineBreaks.in(text) && !(spec.isAlone && LineBreaks.isBlank(text));
    }
    buffer.rows = slot + 1;
    return Boolean.TRUE;
  }

  /** How many children are columns of the buffer: ids, and a key. */
  private int columns() {
    return spec.sources.length + (spec.hasKey() ? 1 : 0);
  }

  /** Where the texts that name the folder begin. */
  private int names() {
    return columns() + (spec.isBucketed ? 2 : 1);
  }

  @Override
  public ExprCode doGenCode(CodegenContext context, ExprCode result) {
    if (!CaptureStages.IS_CAPTURED) {
      return result.copy(code("final boolean " + result.value() + " = true;\n"), FalseLiteral$.MODULE$, result.value());
    }
    String type = TapBuffer.class.getName();
    String shared = context.addReferenceObj("tap", spec, TapSpec.class.getName());
    String buffer = context.addMutableState(type, "tap", name -> "", true, true);
    context.addPartitionInitializationStatement(buffer + " = " + type + ".open(" + shared + ", partitionIndex);");
    String slot = context.freshName("slot");
    Block before = EmptyBlock$.MODULE$;
    StringBuilder text = new StringBuilder("final int " + slot + " = " + buffer + ".slot();\n");
    for (int i = 0; i < columns(); i++) {
      ExprCode kid = kids.apply(i).genCode(context);
      before = before.$plus(kid.code());
      String column = i < spec.sources.length ? ".ids[" + i + "]" : ".keys";
      String isNull = kid.isNull().toString();
      String value = kid.value().toString();
      text.append(buffer).append(column).append('[').append(slot).append("] = ");
      text.append(isNull.equals("false") ? value : isNull + " ? " + TapBuffer.NONE + "L : " + value).append(";\n");
    }
    before = before.$plus(code(text.toString()));
    if (spec.hasPlaces()) {
      before = before.$plus(placed(context, buffer));
    }
    for (int i = kids.size() - spec.texts; i < kids.size(); i++) {
      before = before.$plus(looked(kids.apply(i).genCode(context), buffer));
    }
    // Last, so that no row counts that is not whole: a task may end while another thread of it still reads.
    String last = buffer + ".rows = " + slot + " + 1;\nfinal boolean " + result.value() + " = true;\n";
    return result.copy(before.$plus(code(last)), FalseLiteral$.MODULE$, result.value());
  }

  /** The code that looks whether the row goes where the one before it went. */
  private Block placed(CodegenContext context, String buffer) {
    ExprCode place = kids.apply(columns()).genCode(context);
    Block all = place.code().$plus(code("if (" + place.value() + " != " + buffer + ".place) {\n"));
    String bucket = "-1";
    if (spec.isBucketed) {
      ExprCode kid = kids.apply(columns() + 1).genCode(context);
      all = all.$plus(kid.code());
      bucket = kid.value().toString();
    }
    String type = UTF8String.class.getName();
    StringJoiner values = new StringJoiner(", ", "new " + type + "[] {", "}");
    for (int i = names(); i < names() + spec.columns.size(); i++) {
      ExprCode kid = kids.apply(i).genCode(context);
      all = all.$plus(kid.code());
      values.add(kid.isNull() + " ? (" + type + ") null : " + kid.value());
    }
    String enter = buffer + ".enter(" + place.value() + ", " + bucket + ", " + values + ");\n}\n";
    return all.$plus(code(enter));
  }

  /** The code that looks whether the row is one line. */
  private Block looked(ExprCode text, String buffer) {
    String type = LineBreaks.class.getName();
    String found = type + ".in(" + text.value() + ")";
    if (spec.isAlone) {
      found += " || " + type + ".isBlank(" + text.value() + ")";
    }
    String look = "if (" + buffer + ".isOfLines && (" + text.isNull() + " ? " + spec.isAlone + " : " + found + ")) {\n";
    return text.code().$plus(code(look + buffer + ".isOfLines = false;\n}\n"));
  }
}
