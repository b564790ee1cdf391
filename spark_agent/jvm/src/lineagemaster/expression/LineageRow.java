package lineagemaster.expression;

import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext;
import org.apache.spark.sql.catalyst.expressions.codegen.ExprCode;
import org.apache.spark.sql.catalyst.expressions.codegen.FalseLiteral$;
import org.apache.spark.sql.catalyst.expressions.codegen.GenerateUnsafeProjection$;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import scala.collection.Seq;

/**
 * The hash of the row that Spark itself would make of its children, or all its bytes behind their number. Before a
 * round-robin partitioning (`repartition(n)`) Spark sorts rows by the hash, and where hashes are equal by the bytes.
 */
public final class LineageRow extends AgentExpression {
  private static final long serialVersionUID = 1;

  private final boolean isHash;
  private transient UnsafeProjection projection;

  public LineageRow(boolean isHash, Seq<Expression> children) {
    super(children);
    this.isHash = isHash;
  }

  @Override
  Expression withChildren(Seq<Expression> children) {
    return new LineageRow(isHash, children);
  }

  @Override
  Object identity() {
    return isHash;
  }

  @Override
  public DataType dataType() {
    return isHash ? DataTypes.IntegerType : DataTypes.BinaryType;
  }

  @Override
  public String prettyName() {
    return isHash ? "lineage_row_hash" : "lineage_row_bytes";
  }

  @Override
  public String toString() {
    return prettyName() + "(" + children.mkString(", ") + ")";
  }

  /** Bytes whose order is that of Spark's RecordBinaryComparator: the shorter row first. */
  public static byte[] bytes(UnsafeRow row) {
    byte[] bytes = row.getBytes();
    return ByteBuffer.allocate(Integer.BYTES + bytes.length).putInt(bytes.length).put(bytes).array();
  }

  @Override
  public Object eval(InternalRow row) {
    List<Expression> columns = ScalaLists.asJava(children);
    if (projection == null) {
      projection = UnsafeProjection.create(columns.stream().map(Expression::dataType).toArray(DataType[]::new));
    }
    UnsafeRow sparkRow = projection.apply(
        new GenericInternalRow(columns.stream().map(column -> column.eval(row)).toArray()));
    return isHash ? (Object) sparkRow.hashCode() : bytes(sparkRow);
  }

  @Override
  public ExprCode doGenCode(CodegenContext context, ExprCode result) {
    ExprCode row = row(context);
    String call = isHash
        ? "final int " + result.value() + " = " + row.value() + ".hashCode();\n"
        : "final byte[] " + result.value() + " = " + LineageRow.class.getName() + ".bytes(" + row.value() + ");\n";
    return result.copy(row.code().$plus(code(call)), FalseLiteral$.MODULE$, result.value());
  }

  /** Spark's own code that makes a row of the children. By reflection: its Seq differs between Scalas. */
  private ExprCode row(CodegenContext context) {
    try {
      for (Method method : GenerateUnsafeProjection$.class.getMethods()) {
        if (method.getName().equals("createCode")) {
          return (ExprCode) method.invoke(GenerateUnsafeProjection$.MODULE$, context, children, false);
        }
      }
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException(error);
    }
    throw new IllegalStateException("this Spark has no GenerateUnsafeProjection.createCode");
  }
}
