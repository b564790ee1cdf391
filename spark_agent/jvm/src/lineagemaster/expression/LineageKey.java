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

/** A number from 0 to 2**63 - 1 of the values of its children, see {@link KeyHash}. */
public final class LineageKey extends AgentExpression {
  private static final long serialVersionUID = 1;

  public LineageKey(Seq<Expression> children) {
    super(children);
  }

  @Override
  Expression over(Seq<Expression> children) {
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
    return prettyName() + "(" + kids.mkString(", ") + ")";
  }

  @Override
  public int productArity() {
    return 1;
  }

  @Override
  public Object productElement(int index) {
    return kids;
  }

  @Override
  public Object eval(InternalRow row) {
    long hash = KeyHash.START;
    for (Expression each : ScalaLists.<Expression>asJava(kids)) {
      hash = KeyHash.ofAny(hash, each.eval(row));
    }
    return hash & Long.MAX_VALUE;
  }

  @Override
  public ExprCode doGenCode(CodegenContext context, ExprCode result) {
    String type = KeyHash.class.getName();
    String hash = context.freshName("hash");
    Block all = EmptyBlock$.MODULE$.$plus(code("long " + hash + " = " + KeyHash.START + "L;\n"));
    for (int i = 0; i < kids.size(); i++) {
      ExprCode kid = kids.apply(i).genCode(context);
      String isNull = kid.isNull().toString();
      String ofValue = type + ".of(" + hash + ", " + kid.value() + ")";
      String ofNull = type + ".ofNull(" + hash + ")";
      String next = isNull.equals("false") ? ofValue : isNull + " ? " + ofNull + " : " + ofValue;
      all = all.$plus(kid.code()).$plus(code(hash + " = " + next + ";\n"));
    }
    Block last = code("final long " + result.value() + " = " + hash + " & " + Long.MAX_VALUE + "L;\n");
    return result.copy(all.$plus(last), FalseLiteral$.MODULE$, result.value());
  }
}
