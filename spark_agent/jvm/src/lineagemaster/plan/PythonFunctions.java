package lineagemaster.plan;

import java.lang.reflect.Constructor;
import java.util.ArrayList;
import java.util.List;
import lineagemaster.expression.ScalaLists;
import org.apache.spark.api.python.SimplePythonFunction;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.PythonUDF;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import scala.Product;
import scala.collection.Seq;

/**
 * Operators that call one function of Python over many rows, and the same ones with another function. Their classes have
 * the function in a field, and the columns that it gives in the next one.
 */
public final class PythonFunctions {
  /** How Python is to call the function of an operator; -1 where the operator is not made as those that are known. */
  public int evaluation(LogicalPlan plan) {
    int field = functionField((Product) plan);
    return field < 0 ? -1 : function(plan, field).evalType();
  }

  /** What Python reads of the function of such an operator: pickled. */
  public byte[] command(LogicalPlan plan) {
    Object function = function(plan, functionField((Product) plan)).func();
    List<Object> command = ScalaLists.get(function, "command");
    byte[] bytes = new byte[command.size()];
    for (int i = 0; i < bytes.length; i++) {
      bytes[i] = (Byte) command.get(i);
    }
    return bytes;
  }

  /** The names of what its workers import beside what is installed. */
  public List<String> includes(LogicalPlan plan) {
    return function(plan, functionField((Product) plan)).func().pythonIncludes();
  }

  /** Such an operator with another command, over columns more, which gives columns of longs more. */
  public LogicalPlan withCommand(
      LogicalPlan plan, byte[] command, List<String> includes, List<?> arguments, List<?> results) {
    int field = functionField((Product) plan);
    Object[] fields = PlanBuilder.fields((Product) plan);
    PythonUDF udf = (PythonUDF) fields[field];
    StructType type = (StructType) udf.dataType();
    for (Object result : results) {
      type = type.add(((Attribute) result).name(), DataTypes.LongType, true);
    }
    Object[] parts = PlanBuilder.fields(udf);
    for (int i = 0; i < parts.length; i++) {
      if (parts[i] == udf.func()) {
        parts[i] = withCommand((SimplePythonFunction) udf.func(), command, includes);
      } else if (parts[i] == udf.dataType()) {
        parts[i] = type;
      } else if (parts[i] instanceof Seq) {
        parts[i] = PlanBuilder.joined((Seq<?>) parts[i], arguments);
      }
    }
    fields[field] = ScalaLists.construct(PythonUDF.class, parts);
    fields[field + 1] = PlanBuilder.joined((Seq<?>) fields[field + 1], results);
    return ScalaLists.construct(plan.getClass(), fields);
  }

  private static Object withCommand(SimplePythonFunction function, byte[] command, List<String> includes) {
    Object[] fields = PlanBuilder.fields(function);
    fields[0] = command;
    fields[2] = new ArrayList<>(includes);
    try {
      for (Constructor<?> constructor : SimplePythonFunction.class.getConstructors()) {
        if (constructor.getParameterTypes()[0] == byte[].class) {
          return constructor.newInstance(fields);
        }
      }
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException(error);
    }
    throw new IllegalStateException("a function of Python is not made of bytes");
  }

  private static PythonUDF function(LogicalPlan plan, int field) {
    return (PythonUDF) ((Product) plan).productElement(field);
  }

  /** Which field of an operator is its function, -1 where none is as expected. */
  private static int functionField(Product plan) {
    for (int i = 0; i + 1 < plan.productArity(); i++) {
      if (plan.productElement(i) instanceof PythonUDF) {
        PythonUDF udf = (PythonUDF) plan.productElement(i);
        boolean isKnown = udf.func().getClass() == SimplePythonFunction.class
            && udf.dataType() instanceof StructType
            && plan.productElement(i + 1) instanceof Seq;
        return isKnown ? i : -1;
      }
    }
    return -1;
  }
}
