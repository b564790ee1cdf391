package lineagemaster;

import java.util.HashSet;
import java.util.List;
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
 * The block of each row of a scan, see {@link ScanBlocks}. To stand in a projection directly over the scan. Its child,
 * if it has one, is the row's index in its file.
 */
public final class LineageBlocks extends LineageExpression implements OfPartition {
  private static final long serialVersionUID = 1;

  private final Common common;
  private final int number;
  private final HashSet<String> known; // null: all
  private transient ScanBlocks blocks;

  /** @param known the parts of files whose blocks are known, a NUL between them, or null to tell of all that are read */
  public LineageBlocks(Common common, int number, String known, Seq<Expression> children) {
    this(common, number, known == null ? null : new HashSet<>(List.of(known.split("\0"))), children);
  }

  private LineageBlocks(Common common, int number, HashSet<String> known, Seq<Expression> children) {
    super(children);
    this.common = common;
    this.number = number;
    this.known = known;
  }

  @Override
  Expression over(Seq<Expression> children) {
    return new LineageBlocks(common, number, known, children);
  }

  @Override
  Object identity() {
    return List.of(common.applicationId, number);
  }

  @Override
  public DataType dataType() {
    return DataTypes.LongType;
  }

  @Override
  public String prettyName() {
    return "lineage_blocks";
  }

  @Override
  public String toString() {
    return prettyName() + "(" + number + ")";
  }

  @Override
  public int productArity() {
    return 4;
  }

  @Override
  public Object productElement(int index) {
    return index == 0 ? common : index == 1 ? (Object) number : index == 2 ? known : kids;
  }

  @Override
  public void initializeInternal(int partitionIndex) {
    blocks = open(common, number, !kids.isEmpty(), known);
  }

  /** For generated code, which knows the set as an object only. */
  @SuppressWarnings("unchecked")
  public static ScanBlocks open(Common common, int number, boolean isByRow, Object known) {
    return ScanBlocks.open(common, number, isByRow, (HashSet<String>) known);
  }

  @Override
  public Object eval(InternalRow row) {
    return evalInternal(row);
  }

  @Override
  public Object evalInternal(InternalRow row) {
    Object index = kids.isEmpty() ? null : kids.head().eval(row);
    return kids.isEmpty() ? blocks.next() : index == null ? ScanBlocks.EVERY : blocks.at((Long) index);
  }

  @Override
  public ExprCode doGenCode(CodegenContext context, ExprCode result) {
    String type = ScanBlocks.class.getName();
    String shared = context.addReferenceObj("lineage", common, Common.class.getName());
    // Neither as text: the same query again finds its compiled code, though its scans have other numbers.
    String number = context.addReferenceObj("scan", this.number, Integer.class.getName()) + ".intValue()";
    String known = this.known == null ? "null" : context.addReferenceObj("known", this.known, "java.lang.Object");
    String blocks = context.addMutableState(type, "blocks", name -> "", true, true);
    context.addPartitionInitializationStatement(blocks + " = " + LineageBlocks.class.getName() + ".open(" + shared
        + ", " + number + ", " + !kids.isEmpty() + ", " + known + ");");
    Block before = EmptyBlock$.MODULE$;
    String call = blocks + ".next()";
    if (!kids.isEmpty()) {
      ExprCode row = kids.head().genCode(context);
      before = row.code();
      call = row.isNull() + " ? " + ScanBlocks.EVERY + "L : " + blocks + ".at(" + row.value() + ")";
    }
    Block code = code("final long " + result.value() + " = " + call + ";\n");
    return result.copy(before.$plus(code), FalseLiteral$.MODULE$, result.value());
  }
}
