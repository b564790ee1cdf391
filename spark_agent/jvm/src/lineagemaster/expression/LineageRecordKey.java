package lineagemaster.expression;

import java.util.ArrayList;
import java.util.List;
import java.util.StringJoiner;
import lineagemaster.capture.RecordKeys;
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
 * A condition that every row of a scan meets and that notes the key of the record. Its children are the row's id, and
 * the texts of the columns of the key.
 */
public final class LineageRecordKey extends PinnedExpression {
  private static final long serialVersionUID = 1;

  private final AgentConfig config;
  private final int node;
  private final ArrayList<String> columns;
  private transient RecordKeys keys;

  /** @param columns their names */
  public LineageRecordKey(AgentConfig config, int node, List<String> columns, Seq<Expression> children) {
    super(children);
    this.config = config;
    this.node = node;
    this.columns = new ArrayList<>(columns);
  }

  @Override
  Expression withChildren(Seq<Expression> children) {
    return new LineageRecordKey(config, node, columns, children);
  }

  @Override
  Object identity() {
    return List.of(config.applicationId, node);
  }

  @Override
  public DataType dataType() {
    return DataTypes.BooleanType;
  }

  @Override
  public String prettyName() {
    return "lineage_record_key";
  }

  @Override
  public Object eval(InternalRow row) {
    long id = (Long) children.head().eval(row);
    UTF8String[] values = new UTF8String[columns.size()];
    for (int i = 0; i < values.length; i++) {
      values[i] = (UTF8String) children.apply(i + 1).eval(row);
    }
    if (keys == null || !keys.isOf(id)) {
      keys = RecordKeys.of(config, node, id);
    }
    keys.note(id, columns, values);
    return Boolean.TRUE;
  }

  @Override
  public ExprCode doGenCode(CodegenContext context, ExprCode result) {
    String type = RecordKeys.class.getName();
    String text = UTF8String.class.getName();
    String config = context.addReferenceObj("lineage", this.config, AgentConfig.class.getName());
    String node = context.addReferenceObj("node", this.node, Integer.class.getName()) + ".intValue()";
    String columns = context.addReferenceObj("columns", this.columns, List.class.getName());
    String keys = context.addMutableState(type, "keys", name -> "", true, true);
    ExprCode id = children.head().genCode(context);
    Block code = EmptyBlock$.MODULE$.$plus(id.code());
    StringJoiner values = new StringJoiner(", ", "new " + text + "[] {", "}");
    for (int i = 1; i < children.size(); i++) {
      ExprCode child = children.apply(i).genCode(context);
      code = code.$plus(child.code());
      values.add(child.isNull() + " ? (" + text + ") null : " + child.value());
    }
    String note = "if (" + keys + " == null || !" + keys + ".isOf(" + id.value() + ")) {\n"
        + keys + " = " + type + ".of(" + config + ", " + node + ", " + id.value() + ");\n}\n"
        + keys + ".note(" + id.value() + ", " + columns + ", " + values + ");\n"
        + "final boolean " + result.value() + " = true;\n";
    return result.copy(code.$plus(code(note)), FalseLiteral$.MODULE$, result.value());
  }
}
