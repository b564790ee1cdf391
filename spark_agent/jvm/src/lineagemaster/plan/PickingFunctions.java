package lineagemaster.plan;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import lineagemaster.expression.ScalaLists;
import org.apache.spark.sql.catalyst.expressions.Coalesce;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.If;
import org.apache.spark.sql.catalyst.expressions.IsNull;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateFunction;
import org.apache.spark.sql.catalyst.expressions.aggregate.First;
import org.apache.spark.sql.catalyst.expressions.aggregate.Last;
import org.apache.spark.sql.catalyst.expressions.aggregate.Max;
import org.apache.spark.sql.catalyst.expressions.aggregate.MaxBy;
import org.apache.spark.sql.catalyst.expressions.aggregate.Min;
import org.apache.spark.sql.catalyst.expressions.aggregate.MinBy;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.types.DataTypes;

/**
 * The functions of an Aggregate that give the value of one row of a group: `min`, `max`, `min_by`, `max_by`, `first`
 * and `last`. Of such a function there is one over ids that picks the same row. Spark evaluates both in the same pass,
 * over the same rows in the same order, also before a shuffle and behind it.
 */
public final class PickingFunctions {
  /** Values that compare as equal may differ here, and functions choose differently among them. */
  private static final String COLLATED = "collate";
  private static final Set<Class<?>> PICKING = Set.of(
      Min.class, Max.class, MinBy.class, MaxBy.class, First.class, Last.class);

  /**
   * What the results of groups are made of: `one` if any row of a group gives them (there are no functions), `winners`
   * if each function picks a row that can be named, else `all`; `unknown` if some may pick one that cannot be named.
   */
  public String decision(Aggregate aggregate) {
    List<AggregateExpression> functions = functions(aggregate);
    if (callsPython(aggregate)) { // whose functions over groups are not all of one kind
      return "all";
    }
    if (functions.isEmpty()) {
      return "one";
    }
    if (!functions.stream().allMatch(PickingFunctions::isPicking)) {
      return "all";
    }
    return functions.stream().allMatch(PickingFunctions::canBeNamed) ? "winners" : "unknown";
  }

  /**
   * For each function that picks other rows than those before it, and each column of ids: the id of the row that it
   * picks. Null or negative where it picks none, or where the row has no id in that column.
   */
  public List<Expression> picked(Aggregate aggregate, List<Expression> ids) {
    Map<Expression, AggregateExpression> different = new LinkedHashMap<>();
    for (AggregateExpression function : functions(aggregate)) {
      different.putIfAbsent(over(function, new Literal(0L, DataTypes.LongType)).canonicalized(), function);
    }
    List<Expression> picked = new ArrayList<>();
    for (AggregateExpression function : different.values()) {
      for (Expression id : ids) {
        picked.add(over(function, id));
      }
    }
    return picked;
  }

  private static List<AggregateExpression> functions(Aggregate aggregate) {
    List<AggregateExpression> functions = new ArrayList<>();
    for (Expression result : ScalaLists.<Expression>get(aggregate, "aggregateExpressions")) {
      collect(result, functions);
    }
    return functions;
  }

  private static void collect(Expression expression, List<AggregateExpression> functions) {
    if (expression instanceof AggregateExpression) {
      functions.add((AggregateExpression) expression);
    } else {
      children(expression).forEach(child -> collect(child, functions));
    }
  }

  private static boolean callsPython(Aggregate aggregate) {
    return ScalaLists.<Expression>get(aggregate, "aggregateExpressions").stream()
        .anyMatch(PickingFunctions::isPython);
  }

  private static boolean isPython(Expression expression) {
    return expression.getClass().getSimpleName().startsWith("Python")
        || children(expression).stream().anyMatch(PickingFunctions::isPython);
  }

  private static boolean isPicking(AggregateExpression function) {
    return PICKING.contains(function.aggregateFunction().getClass());
  }

  private static boolean canBeNamed(AggregateExpression function) {
    return !function.isDistinct() && children((Expression) (Object) function.aggregateFunction()).stream()
        .noneMatch(child -> child.dataType().catalogString().toLowerCase(Locale.ROOT).contains(COLLATED));
  }

  /** The function that picks the same row, of its id. */
  private static AggregateExpression over(AggregateExpression picking, Expression id) {
    return new AggregateExpression(function((Expression) (Object) picking.aggregateFunction(), id), picking.mode(),
        picking.isDistinct(), picking.filter(), NamedExpression.newExprId());
  }

  private static AggregateFunction function(Expression picking, Expression id) {
    List<Expression> children = children(picking);
    Expression last = children.get(children.size() - 1); // what rows are ordered by, where they are
    if (picking instanceof Min || picking instanceof MinBy) {
      return new MinBy(id, last);
    }
    if (picking instanceof Max || picking instanceof MaxBy) {
      return new MaxBy(id, last);
    }
    if (picking instanceof First) {
      boolean ignoresNulls = ((First) picking).ignoreNulls();
      return new First(ignoresNulls ? unlessNull(last, id) : id, ignoresNulls);
    }
    boolean ignoresNulls = ((Last) picking).ignoreNulls();
    return new Last(ignoresNulls ? unlessNull(last, id) : id, ignoresNulls);
  }

  /** Null where a value is; else the id, and -1 of a row without one. */
  private static Expression unlessNull(Expression value, Expression id) {
    List<Expression> choices = List.of(id, new Literal(-1L, DataTypes.LongType));
    return new If(new IsNull(value), new Literal(null, DataTypes.LongType),
        ScalaLists.construct(Coalesce.class, ScalaLists.of(choices)));
  }

  private static List<Expression> children(Expression expression) {
    return ScalaLists.get(expression, "children");
  }
}
