package lineagemaster.plan;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import lineagemaster.capture.TapBuffer;
import lineagemaster.expression.ScalaLists;
import org.apache.spark.sql.catalyst.expressions.CaseWhen;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.If;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.RepartitionOperation;
import org.apache.spark.sql.catalyst.plans.logical.UnaryNode;
import org.apache.spark.sql.types.DataTypes;
import scala.Option;
import scala.Tuple2;
import scala.collection.Seq;

/**
 * What a statement of Delta Lake does with each row. Delta Lake counts that: where a row is inserted, updated, deleted
 * or copied, its plan increments a metric of that. So the plan itself says it, and nothing is said of one whose metrics
 * are others.
 */
public final class RowOperations {
  /** As spark_agent/contract/blocks.py has them. */
  static final long NONE = 0;
  static final long INSERT = 1;
  static final long UPDATE = 2;
  static final long DELETE = 3;
  static final long COPY = TapBuffer.COPY;

  private static final String METRIC = "IncrementMetric";
  private static final String DROPPED = "_row_dropped_";
  /** Of a DELETE that writes files anew: all rows of these files, which it copies or deletes. */
  private static final String TOUCHED = "number of rows touched";
  /** Words in the description of a metric of rows. */
  private static final Map<String, Long> BY_WORD = Map.of(
      "inserted", INSERT, "updated", UPDATE, "deleted", DELETE, "rewritten unmodified", COPY);

  /** The filter of a DELETE that leaves out what it deletes; null where there is none that is known. */
  public LogicalPlan filterOfDelete(LogicalPlan query) {
    LogicalPlan filter = belowMoves(query);
    if (!(filter instanceof Filter) || metricOf(((Filter) filter).condition()) != null) {
      return null;
    }
    LogicalPlan plan = belowProjections(((Filter) filter).child());
    while (plan instanceof Filter) {
      String metric = metricOf(((Filter) plan).condition());
      if (metric != null) {
        return metric.startsWith(TOUCHED) ? filter : null;
      }
      plan = belowProjections(((Filter) plan).child());
    }
    return null;
  }

  /**
   * The filter of a MERGE that leaves out what it deletes, or does not insert. Its child is a projection that says what
   * becomes of each row. Null where there is none that is known.
   */
  public LogicalPlan filterOfMerge(LogicalPlan query) {
    LogicalPlan filter = belowMoves(query);
    boolean isKnown = filter instanceof Filter && ((Filter) filter).child() instanceof Project
        && operation(((Filter) filter).child()) != null;
    return isKnown ? filter : null;
  }

  /** Below a repartition, too: a MERGE brings rows of one partition of its table together before it writes them. */
  private static LogicalPlan belowMoves(LogicalPlan plan) {
    LogicalPlan below = plan;
    while (below instanceof Project || below instanceof RepartitionOperation) {
      below = ((UnaryNode) below).child();
    }
    return below;
  }

  private static LogicalPlan belowProjections(LogicalPlan plan) {
    LogicalPlan below = plan;
    while (below instanceof Project) {
      below = ((UnaryNode) below).child();
    }
    return below;
  }

  /** What a projection of a MERGE does with a row, by its number, over the columns of its child; null: not known. */
  public Expression operation(LogicalPlan projection) {
    for (NamedExpression column : ScalaLists.<NamedExpression>get(projection, "projectList")) {
      if (column.name().equals(DROPPED)) {
        List<Expression> children = ScalaLists.get(column, "children");
        return children.size() == 1 ? operationOf(children.get(0)) : null;
      }
    }
    return null;
  }

  @SuppressWarnings("unchecked") // items of Scala's lists
  private static Expression operationOf(Expression isDropped) {
    if (isDropped instanceof If) {
      If choice = (If) isDropped;
      Expression then = operationOf(choice.trueValue());
      Expression otherwise = operationOf(choice.falseValue());
      return then == null || otherwise == null ? null : new If(choice.predicate(), then, otherwise);
    }
    if (isDropped instanceof CaseWhen) {
      List<Object> branches = new ArrayList<>();
      for (Tuple2<Expression, Expression> branch
          : ScalaLists.<Tuple2<Expression, Expression>>get(isDropped, "branches")) {
        Expression value = operationOf(branch._2());
        if (value == null) {
          return null;
        }
        branches.add(new Tuple2<>(branch._1(), value));
      }
      Option<Expression> last = ((CaseWhen) isDropped).elseValue();
      Expression otherwise = last.isEmpty() ? literal(NONE) : operationOf(last.get());
      Seq<Object> all = ScalaLists.of(branches);
      return otherwise == null ? null : ScalaLists.construct(CaseWhen.class, all, Option.apply(otherwise));
    }
    if (isDropped instanceof Cast) {
      return operationOf(((Cast) isDropped).child());
    }
    String metric = metricOf(isDropped);
    if (metric != null) {
      return BY_WORD.entrySet().stream().filter(entry -> metric.contains(entry.getKey()))
          .map(entry -> literal(entry.getValue())).findFirst().orElse(null);
    }
    boolean isIgnored = isDropped instanceof Literal && Boolean.TRUE.equals(((Literal) isDropped).value());
    boolean isNever = isDropped.getClass().getSimpleName().equals("RaiseError"); // rows that a filter has left out
    return isIgnored || isNever ? literal(NONE) : null;
  }

  /** May a projection of a MERGE delete rows? */
  public boolean mayDelete(LogicalPlan projection) {
    return gives(operation(projection), DELETE);
  }

  private static boolean gives(Expression operation, long number) {
    if (operation instanceof If) {
      return gives(((If) operation).trueValue(), number) || gives(((If) operation).falseValue(), number);
    }
    if (operation instanceof CaseWhen) {
      return gives(((CaseWhen) operation).elseValue().get(), number)
          || ScalaLists.<Tuple2<Expression, Expression>>get(operation, "branches").stream()
              .anyMatch(branch -> gives(branch._2(), number));
    }
    return ((Literal) operation).value().equals(number);
  }

  private static Expression literal(long number) {
    return new Literal(number, DataTypes.LongType);
  }

  /** The description of the metric that an expression increments; null where it increments none. */
  private static String metricOf(Expression expression) {
    if (!expression.getClass().getSimpleName().equals(METRIC)) {
      return null;
    }
    try {
      Object metric = expression.getClass().getMethod("metric").invoke(expression);
      Option<?> name = (Option<?>) metric.getClass().getMethod("name").invoke(metric);
      return name.isEmpty() ? null : String.valueOf(name.get());
    } catch (ReflectiveOperationException other) {
      return null;
    }
  }

  /**
   * The part of the plan of a DELETE with deletion vectors whose rows are deleted: below the aggregate that gathers
   * them, and below the join with the vectors that their files have. Null where it is not known.
   */
  public LogicalPlan deletedRows(LogicalPlan plan) {
    LogicalPlan aggregate = plan;
    while (aggregate != null && !isGathering(aggregate)) {
      aggregate = onlyChild(aggregate);
    }
    if (aggregate == null) {
      return null;
    }
    LogicalPlan rows = belowProjections(onlyChild(aggregate));
    List<LogicalPlan> sides = ScalaLists.get(rows, "children");
    boolean isWithVectors = rows.getClass().getSimpleName().equals("Join") && sides.size() == 2
        && ScalaLists.get(sides.get(1), "collectLeaves").stream()
            .allMatch(leaf -> leaf.getClass().getSimpleName().equals("LocalRelation"));
    return isWithVectors ? sides.get(0) : onlyChild(aggregate);
  }

  private static boolean isGathering(LogicalPlan plan) {
    return plan.getClass().getSimpleName().equals("Aggregate") && plan.toString().contains("bitmapaggregator(");
  }

  private static LogicalPlan onlyChild(LogicalPlan plan) {
    List<LogicalPlan> children = ScalaLists.get(plan, "children");
    return children.size() == 1 ? children.get(0) : null;
  }

  /** A plan with another one in the place of a part of it. */
  public LogicalPlan replaced(LogicalPlan plan, LogicalPlan part, LogicalPlan other) {
    return plan == part ? other : plan.mapChildren(child -> replaced(child, part, other));
  }
}
