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
 * A condition that every row meets and that notes where the row comes from. Its children are, in this order:
 *
 * <ol>
 *   <li>columns of ids, a null where a row has none
 *   <li>if the spec has one, the row's key, its digest, or what a statement did with it: a long that is never null or
 *       negative
 *   <li>of an output that has several files: the key of the row's file, a bucket if it has buckets, and the texts that
 *       name its folder. Bucket and texts are only evaluated for the first row of those that go into one file
 *   <li>texts in which the end of a line is looked for
 *   <li>of an output whose records have names: the texts of the columns of a primary key
 * </ol>
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
  Expression withChildren(Seq<Expression> children) {
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
    for (int i = 0; i < columnCount(); i++) {
      Object value = children.apply(i).eval(row);
      long[] column = i < spec.sourceNodes.length ? buffer.ids[i] : buffer.keys;
      column[slot] = value == null ? TapBuffer.NONE : (Long) value;
    }
    if (spec.hasOutputFiles()) {
      long fileKey = (Long) children.apply(columnCount()).eval(row);
      if (fileKey != buffer.fileKey) {
        int bucket = spec.isBucketed ? (Integer) children.apply(columnCount() + 1).eval(row) : -1;
        UTF8String[] folderValues = new UTF8String[spec.folderColumns.size()];
        for (int i = 0; i < folderValues.length; i++) {
          folderValues[i] = (UTF8String) children.apply(firstFolderValue() + i).eval(row);
        }
        buffer.enterFile(fileKey, bucket, folderValues);
      }
    }
    for (int i = firstText(); i < firstRecordKey() && buffer.isLinePerRow; i++) {
      buffer.isLinePerRow = isOneLine((UTF8String) children.apply(i).eval(row));
    }
    if (firstRecordKey() < children.size()) {
      UTF8String[] values = new UTF8String[children.size() - firstRecordKey()];
      for (int i = 0; i < values.length; i++) {
        values[i] = (UTF8String) children.apply(firstRecordKey() + i).eval(row);
      }
      buffer.nameRecord(slot, values);
    }
    buffer.rows = slot + 1;
    return Boolean.TRUE;
  }

  /** Is a row with this text one line, as far as the text decides that? */
  private boolean isOneLine(UTF8String text) {
    if (text == null) {
      return !spec.isOnlyColumn;
    }
    return !LineBreaks.in(text) && !(spec.isOnlyColumn && LineBreaks.isBlank(text));
  }

  /** How many children are columns of the buffer: ids, and a key, a digest or an operation. */
  private int columnCount() {
    return spec.sourceNodes.length + (spec.hasKey() || spec.hasDigests() || spec.hasOperations() ? 1 : 0);
  }

  /** Where the texts that name the folder begin. */
  private int firstFolderValue() {
    return columnCount() + (spec.isBucketed ? 2 : 1);
  }

  /** Where the texts begin in which the end of a line is looked for. */
  private int firstText() {
    return firstRecordKey() - spec.textCount;
  }

  /** Where the texts begin that name the record. */
  private int firstRecordKey() {
    return children.size() - spec.recordKeyColumns().size();
  }

  @Override
  public ExprCode doGenCode(CodegenContext context, ExprCode result) {
    if (!CaptureStages.IS_CAPTURED) {
      return result.copy(code("final boolean " + result.value() + " = true;\n"), FalseLiteral$.MODULE$, result.value());
    }
    String type = TapBuffer.class.getName();
    String spec = context.addReferenceObj("tap", this.spec, TapSpec.class.getName());
    String buffer = context.addMutableState(type, "tap", name -> "", true, true);
    context.addPartitionInitializationStatement(buffer + " = " + type + ".open(" + spec + ", partitionIndex);");
    String slot = context.freshName("slot");
    Block code = columnsCode(context, buffer, slot);
    if (this.spec.hasOutputFiles()) {
      code = code.$plus(fileCode(context, buffer));
    }
    for (int i = firstText(); i < firstRecordKey(); i++) {
      code = code.$plus(lineCode(children.apply(i).genCode(context), buffer));
    }
    if (firstRecordKey() < children.size()) {
      code = code.$plus(recordKeyCode(context, buffer, slot));
    }
    // Last, so that only whole rows count: a task may end while another thread of it still reads.
    String last = buffer + ".rows = " + slot + " + 1;\nfinal boolean " + result.value() + " = true;\n";
    return result.copy(code.$plus(code(last)), FalseLiteral$.MODULE$, result.value());
  }

  /** The code that writes ids and key into the arrays. */
  private Block columnsCode(CodegenContext context, String buffer, String slot) {
    Block childCode = EmptyBlock$.MODULE$;
    StringBuilder writes = new StringBuilder("final int " + slot + " = " + buffer + ".slot();\n");
    for (int i = 0; i < columnCount(); i++) {
      ExprCode child = children.apply(i).genCode(context);
      childCode = childCode.$plus(child.code());
      String column = i < spec.sourceNodes.length ? ".ids[" + i + "]" : ".keys";
      String isNull = child.isNull().toString();
      String value = child.value().toString();
      writes.append(buffer).append(column).append('[').append(slot).append("] = ");
      writes.append(isNull.equals("false") ? value : isNull + " ? " + TapBuffer.NONE + "L : " + value).append(";\n");
    }
    return childCode.$plus(code(writes.toString()));
  }

  /** The code that looks whether the row goes into the same file as the row before. */
  private Block fileCode(CodegenContext context, String buffer) {
    ExprCode fileKey = children.apply(columnCount()).genCode(context);
    Block code = fileKey.code().$plus(code("if (" + fileKey.value() + " != " + buffer + ".fileKey) {\n"));
    String bucket = "-1";
    if (spec.isBucketed) {
      ExprCode child = children.apply(columnCount() + 1).genCode(context);
      code = code.$plus(child.code());
      bucket = child.value().toString();
    }
    String type = UTF8String.class.getName();
    StringJoiner folderValues = new StringJoiner(", ", "new " + type + "[] {", "}");
    for (int i = firstFolderValue(); i < firstFolderValue() + spec.folderColumns.size(); i++) {
      ExprCode child = children.apply(i).genCode(context);
      code = code.$plus(child.code());
      folderValues.add(child.isNull() + " ? (" + type + ") null : " + child.value());
    }
    String enter = buffer + ".enterFile(" + fileKey.value() + ", " + bucket + ", " + folderValues + ");\n}\n";
    return code.$plus(code(enter));
  }

  /** The code that names the record. */
  private Block recordKeyCode(CodegenContext context, String buffer, String slot) {
    String type = UTF8String.class.getName();
    Block code = EmptyBlock$.MODULE$;
    StringJoiner values = new StringJoiner(", ", "new " + type + "[] {", "}");
    for (int i = firstRecordKey(); i < children.size(); i++) {
      ExprCode child = children.apply(i).genCode(context);
      code = code.$plus(child.code());
      values.add(child.isNull() + " ? (" + type + ") null : " + child.value());
    }
    return code.$plus(code(buffer + ".nameRecord(" + slot + ", " + values + ");\n"));
  }

  /** The code that looks whether the row is one line: as `isOneLine`. */
  private Block lineCode(ExprCode text, String buffer) {
    String type = LineBreaks.class.getName();
    String isNotOneLine = type + ".in(" + text.value() + ")";
    if (spec.isOnlyColumn) {
      isNotOneLine += " || " + type + ".isBlank(" + text.value() + ")";
    }
    String condition = text.isNull() + " ? " + spec.isOnlyColumn + " : " + isNotOneLine;
    String look = "if (" + buffer + ".isLinePerRow && (" + condition + ")) {\n";
    return text.code().$plus(code(look + buffer + ".isLinePerRow = false;\n}\n"));
  }
}
