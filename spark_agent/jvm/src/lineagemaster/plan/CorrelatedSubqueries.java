package lineagemaster.plan;

import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.regex.Pattern;
import lineagemaster.expression.ScalaLists;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Not;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.catalyst.plans.ExistenceJoin;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import scala.runtime.BoxedUnit;

/** What Spark makes joins of: subqueries that ask of the rows of the query around them. */
public final class CorrelatedSubqueries {
  private static final Pattern LOOKING = Pattern.compile("^(LeftSemi|LeftAnti|ExistenceJoin)");

  private CorrelatedSubqueries() {}

  /**
   * Does a plan read the very columns of another one beside it? Spark gives each side of a join columns of its own, but
   * where it computes a subquery for all different values of the query around it, these come from a copy of that query.
   */
  public static boolean isBesideCopy(LogicalPlan outer, LogicalPlan plan) {
    Set<Long> shared = new HashSet<>();
    gather(outer, shared);
    shared.retainAll(leafColumns(plan));
    return !shared.isEmpty();
  }

  /** The columns of leaves but for those that are only looked at: a subquery may be computed at several places. */
  private static void gather(LogicalPlan plan, Set<Long> ids) {
    List<LogicalPlan> children = ScalaLists.asked(plan, "children");
    if (children.isEmpty()) {
      ids.addAll(leafColumns(plan));
    }
    boolean isLookedAt = plan instanceof Join && LOOKING.matcher(((Join) plan).joinType().toString()).find();
    children.subList(0, isLookedAt ? 1 : children.size()).forEach(each -> gather(each, ids));
  }

  /** Is it the different values of a copy of `outer`? */
  public static boolean isCopy(Aggregate plan, LogicalPlan outer) {
    Set<Long> columns = leafColumns(plan);
    boolean[] isGrouping = {true};
    for (Expression each : ScalaLists.<Expression>asked(plan, "aggregateExpressions")) {
      each.foreach(part -> lookForFunctions(part, isGrouping));
    }
    return isGrouping[0] && !columns.isEmpty() && leafColumns(outer).containsAll(columns);
  }

  private static BoxedUnit lookForFunctions(Expression part, boolean[] isGrouping) {
    isGrouping[0] &= !part.getClass().getSimpleName().equals("AggregateExpression");
    return BoxedUnit.UNIT;
  }

  private static Set<Long> leafColumns(LogicalPlan plan) {
    Set<Long> ids = new HashSet<>();
    for (LogicalPlan leaf : ScalaLists.<LogicalPlan>asked(plan, "collectLeaves")) {
      ScalaLists.<Attribute>asked(leaf, "output").forEach(each -> ids.add(each.exprId().id()));
    }
    return ids;
  }

  /** Of an ExistenceJoin: does the plan that it is in only ask that a row has no matches? */
  public static boolean isDenied(Join join, LogicalPlan root) {
    long exists = ((ExistenceJoin) join.joinType()).exists().exprId().id();
    Asked asked = new Asked(exists);
    root.foreach(asked::look); // whose signature all Scalas share
    ScalaLists.<Expression>asked(root, "output").forEach(asked::take);
    return asked.isDenied && !asked.isAffirmed;
  }

  /** How a plan asks for a column of a truth value. */
  private static final class Asked {
    private final long column;
    private boolean isDenied;
    private boolean isAffirmed;

    Asked(long column) {
      this.column = column;
    }

    BoxedUnit look(LogicalPlan plan) {
      if (plan instanceof Filter) {
        take(((Filter) plan).condition(), true);
      } else {
        List<Expression> own = ScalaLists.asked(plan, "expressions");
        own.removeIf(each -> plan instanceof Project && each instanceof Attribute); // it goes on as it is
        own.forEach(this::take);
      }
      return BoxedUnit.UNIT;
    }

    /** The value itself is asked for, which matches of a row make true. */
    void take(Expression part) {
      if (part instanceof Attribute) {
        isAffirmed |= ((Attribute) part).exprId().id() == column;
      }
      ScalaLists.<Expression>asked(part, "children").forEach(this::take);
    }

    private void take(Expression part, boolean isAsked) {
      if (part instanceof Not) {
        take(((Not) part).child(), !isAsked);
      } else if (part instanceof And || part instanceof Or) {
        ScalaLists.<Expression>asked(part, "children").forEach(each -> take(each, isAsked));
      } else if (part instanceof Attribute && !isAsked) {
        isDenied |= ((Attribute) part).exprId().id() == column;
      } else {
        take(part);
      }
    }
  }
}
