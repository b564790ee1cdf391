package lineagemaster.expression;

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

/** A hash of the values of its children: a number from 0 to 2**63 - 1, see {@link KeyHash}. */
public final class LineageKey extends AgentExpression {
  private static final long serialVersionUID = 1;

  public LineageKey(Seq<Expression> children) {
    super(children);
  }

  @Override
  Expression withChildren(Seq<Expression> children) {
    return new LineageKey(children);
  }

  @Override
  Object identity() {
    return "";
  }

  @Override
  public DataType dataType() {
    return DataTypes.LongType;
  }

  @Override
  public String prettyName() {
    return "lineage_key";
  }

  @Override
  public String toString() {
    return prettyName() + "(" + children.mkString(", ") + ")";
  }

  @Override
  public int productArity() {
    return 1;
  }

  @Override
  public Object productElement(int index) {
    return children;
  }

  @Override
  public Object eval(InternalRow row) {
    long hash = KeyHash.START;
    for (Expression child : ScalaLists.<Expression>asJava(children)) {
      hash = KeyHash.ofAny(hash, child.eval(row));
    }
    return hash & Long.MAX_VALUE;
  }

  @Override
  public ExprCode doGenCode(CodegenContext context, ExprCode result) {
    String type = KeyHash.class.getName();
    String hash = context.freshName("hash");
    Block code = EmptyBlock$.MODULE$.$plus(code("long " + hash + " = " + KeyHash.START + "L;\n"));
    for (int i = 0; i < children.size(); i++) {
      ExprCode child = children.apply(i).genCode(context);
      String isNull = child.isNull().toString();
      String ofValue = type + ".of(" + hash + ", " + child.value() + ")";
      String ofNull = type + ".ofNull(" + hash + ")";
      String next = isNull.equals("false") ? ofValue : isNull + " ? " + ofNull + " : " + ofValue;
      code = code.$plus(child.code()).$plus(code(hash + " = " + next + ";\n"));
    }
    Block last = code("final long " + result.value() + " = " + hash + " & " + Long.MAX_VALUE + "L;\n");
    return result.copy(code.$plus(last), FalseLiteral$.MODULE$, result.value());
  }
}
