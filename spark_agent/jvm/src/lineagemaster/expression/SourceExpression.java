package lineagemaster.expression;

import java.util.List;
import lineagemaster.capture.ScanPositions;
import lineagemaster.delivery.AgentConfig;
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
 * The id of each row of a scan: `split << 33 | position`. To stand in a projection directly over the scan. Its child,
 * if it has one, is the row's index in its file; the position then says which row it is even where a pushed filter
 * left out some. Of files of stripes (ORC) it is told how many rows are before the split, where that can be known.
 */
abstract class SourceExpression extends PinnedExpression {
  private static final long serialVersionUID = 1;

  final AgentConfig common;
  final int node;
  final boolean isStriped;
  transient ScanPositions positions; // of the rows that are not evaluated by generated code

  SourceExpression(AgentConfig common, int node, boolean isStriped, Seq<Expression> children) {
    super(children);
    this.common = common;
    this.node = node;
    this.isStriped = isStriped;
  }

  public int node() {
    return node;
  }

  /** The partition of the scan, in generated code. */
  abstract String split(CodegenContext context);

  /** May the code that opens a partition run without any row of it being read? */
  abstract boolean isLate();

  @Override
  Object identity() {
    return List.of(common.applicationId, node);
  }

  @Override
  public DataType dataType() {
    return DataTypes.LongType;
  }

  @Override
  public String prettyName() {
    return "lineage_source";
  }

  @Override
  public String toString() {
    return prettyName() + "(" + node + ")";
  }

  @Override
  public int productArity() {
    return 4;
  }

  @Override
  public Object productElement(int index) {
    return index == 0 ? common : index == 1 ? (Object) node : index == 2 ? (Object) isStriped : kids;
  }

  void open(int split) {
    positions = ScanPositions.open(common, node, split, !kids.isEmpty(), isStriped, isLate());
  }

  @Override
  public Object eval(InternalRow row) {
    Object index = kids.isEmpty() ? null : kids.head().eval(row);
    return index == null ? positions.next() : positions.at((Long) index);
  }

  @Override
  public ExprCode doGenCode(CodegenContext context, ExprCode result) {
    String type = ScanPositions.class.getName();
    String shared = context.addReferenceObj("lineage", common, AgentConfig.class.getName());
    // Not as text: the same query again finds its compiled code, though its nodes have other numbers.
    String number = context.addReferenceObj("node", node, Integer.class.getName()) + ".intValue()";
    String positions = context.addMutableState(type, "positions", name -> "", true, true);
    context.addPartitionInitializationStatement(
        positions + " = " + type + ".open(" + shared + ", " + number + ", " + split(context) + ", " + !kids.isEmpty()
            + ", " + isStriped + ", " + isLate() + ");");
    Block before = EmptyBlock$.MODULE$;
    String call = positions + ".next()";
    if (!kids.isEmpty()) {
      ExprCode row = kids.head().genCode(context);
      before = row.code();
      call = row.isNull() + " ? " + call + " : " + positions + ".at(" + row.value() + ")";
    }
    Block code = code("final long " + result.value() + " = " + call + ";\n");
    return result.copy(before.$plus(code), FalseLiteral$.MODULE$, result.value());
  }
}
