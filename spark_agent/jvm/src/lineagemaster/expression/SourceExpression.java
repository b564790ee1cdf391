package lineagemaster.expression;

import java.util.List;
import java.util.StringJoiner;
import lineagemaster.capture.KeptRows;
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
import org.apache.spark.unsafe.types.UTF8String;
import scala.collection.Seq;

/**
 * The id of each row of a scan: `partition << 33 | position`. It stands in a projection directly over the scan. Its
 * child, if it has one, is the row's index in its file: then the position says which row it is, even where a pushed
 * filter left out some. Of files of stripes (ORC) it finds out how many rows are before the split, where that can be
 * known. Of Kafka there are
 * four children: offset, topic and partition of the record, and the servers. In a replay that `kept` restricts, the id of a row that is dropped is negative.
 */
public abstract class SourceExpression extends PinnedExpression {
  private static final long serialVersionUID = 1;
  private static final int OF_TOPIC = 4;

  final AgentConfig config;
  final int node;
  final boolean isStriped;
  final KeptRows kept; // null: all
  transient ScanPositions positions; // of the rows that are not evaluated by generated code

  SourceExpression(AgentConfig config, int node, boolean isStriped, KeptRows kept, Seq<Expression> children) {
    super(children);
    this.config = config;
    this.node = node;
    this.isStriped = isStriped;
    this.kept = kept;
  }

  public int node() {
    return node;
  }

  /** Which rows a replay keeps; null: all. */
  public KeptRows kept() {
    return kept;
  }

  /** The partition of the scan, in generated code. */
  abstract String partition(CodegenContext context);

  /** May the code that opens a partition run without any row of it being read? */
  abstract boolean isLate();

  @Override
  Object identity() {
    return List.of(config.applicationId, node);
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
    return index == 0 ? config : index == 1 ? (Object) node : index == 2 ? (Object) isStriped : children;
  }

  void open(int partition) {
    positions = ScanPositions.open(config, node, partition, !children.isEmpty(), isStriped, isLate(), kept);
  }

  @Override
  public Object eval(InternalRow row) {
    Object index = children.isEmpty() ? null : children.head().eval(row);
    if (children.size() == OF_TOPIC && index != null) {
      return positions.at((Long) index, (UTF8String) children.apply(1).eval(row),
          (Integer) children.apply(2).eval(row), (UTF8String) children.apply(3).eval(row));
    }
    return index == null ? positions.next() : positions.at((Long) index);
  }

  private String keptRows(CodegenContext context) {
    return kept == null ? "null" : context.addReferenceObj("kept", kept, KeptRows.class.getName());
  }

  @Override
  public ExprCode doGenCode(CodegenContext context, ExprCode result) {
    String type = ScanPositions.class.getName();
    String config = context.addReferenceObj("lineage", this.config, AgentConfig.class.getName());
    // Not as text, so that the same query finds its compiled code again, though its nodes have other numbers.
    String node = context.addReferenceObj("node", this.node, Integer.class.getName()) + ".intValue()";
    String positions = context.addMutableState(type, "positions", name -> "", true, true);
    String arguments = String.join(", ", config, node, partition(context), String.valueOf(!children.isEmpty()),
        String.valueOf(isStriped), String.valueOf(isLate()), keptRows(context));
    context.addPartitionInitializationStatement(positions + " = " + type + ".open(" + arguments + ");");
    Block before = EmptyBlock$.MODULE$;
    String call = positions + ".next()";
    if (!children.isEmpty()) {
      ExprCode rowIndex = children.head().genCode(context);
      before = rowIndex.code();
      StringJoiner place = new StringJoiner(", ", ".at(", ")").add(rowIndex.value().toString());
      for (int i = 1; i < children.size(); i++) {
        ExprCode child = children.apply(i).genCode(context);
        before = before.$plus(child.code());
        place.add(child.value().toString());
      }
      call = rowIndex.isNull() + " ? " + call + " : " + positions + place;
    }
    Block code = code("final long " + result.value() + " = " + call + ";\n");
    return result.copy(before.$plus(code), FalseLiteral$.MODULE$, result.value());
  }
}
