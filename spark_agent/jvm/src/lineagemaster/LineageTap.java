package lineagemaster;

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
 * A condition that every row meets and that notes where the row comes from. The children are columns of ids, a null
 * where a row has none, and last, if the spec has one, the row's key: a long that is never null or negative.
 */
public final class LineageTap extends LineageExpression {
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
    buffer = TapBuffer.open(spec);
  }

  @Override
  public Object eval(InternalRow row) {
    return evalInternal(row);
  }

  @Override
  public Object evalInternal(InternalRow row) {
    int slot = buffer.slot();
    for (int i = 0; i < kids.size(); i++) {
      Object value = kids.apply(i).eval(row);
      long[] column = i < spec.sources.length ? buffer.ids[i] : buffer.keys;
      column[slot] = value == null ? TapBuffer.NONE : (Long) value;
    }
    buffer.rows = slot + 1;
    return Boolean.TRUE;
  }

  @Override
  public ExprCode doGenCode(CodegenContext context, ExprCode result) {
    String type = TapBuffer.class.getName();
    String shared = context.addReferenceObj("tap", spec, TapSpec.class.getName());
    String buffer = context.addMutableState(type, "tap", name -> "", true, true);
    context.addPartitionInitializationStatement(buffer + " = " + type + ".open(" + shared + ");");
    String slot = context.freshName("slot");
    Block before = EmptyBlock$.MODULE$;
    StringBuilder text = new StringBuilder("final int " + slot + " = " + buffer + ".slot();\n");
    for (int i = 0; i < kids.size(); i++) {
      ExprCode kid = kids.apply(i).genCode(context);
      before = before.$plus(kid.code());
      String column = i < spec.sources.length ? ".ids[" + i + "]" : ".keys";
      String isNull = kid.isNull().toString();
      String value = kid.value().toString();
      text.append(buffer).append(column).append('[').append(slot).append("] = ");
      text.append(isNull.equals("false") ? value : isNull + " ? " + TapBuffer.NONE + "L : " + value).append(";\n");
    }
    // Last, so that no row counts that is not whole: a task may end while another thread of it still reads.
    text.append(buffer).append(".rows = ").append(slot).append(" + 1;\n");
    text.append("final boolean ").append(result.value()).append(" = true;\n");
    return result.copy(before.$plus(code(text.toString())), FalseLiteral$.MODULE$, result.value());
  }
}
