package lineagemaster.plan;

import java.util.Collections;
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
import org.apache.spark.sql.execution.LogicalRDD;
import scala.runtime.BoxedUnit;

/** The joins and aggregates that Spark makes of subqueries which refer to the query around them. */
public final class CorrelatedSubqueries {
  /** Joins whose right side only says whether a row has matches. */
  private static final Pattern MATCH_TESTS = Pattern.compile("^(LeftSemi|LeftAnti|ExistenceJoin)");

  private CorrelatedSubqueries() {}

  /**
   * Does a plan read the very columns of another one beside it? Spark gives each side of a join columns of its own. But
   * where it computes a subquery for all distinct values of the query around it, these come from a copy of that query.
   */
  public static boolean isBesideCopy(LogicalPlan outer, LogicalPlan plan) {
    Set<Object> shared = new HashSet<>();
    addColumnsOfRows(outer, shared);
    for (LogicalPlan leaf : ScalaLists.<LogicalPlan>get(plan, "collectLeaves")) {
      if (!Collections.disjoint(shared, columnsOf(leaf))) {
        return true;
      }
    }
    return false;
  }

  /** The columns of leaves, without those that are only tested for matches: Spark may compute such a subquery twice. */
  private static void addColumnsOfRows(LogicalPlan plan, Set<Object> columns) {
    List<LogicalPlan> children = ScalaLists.get(plan, "children");
    if (children.isEmpty()) {
      columns.addAll(columnsOf(plan));
    }
    boolean isMatchTest = plan instanceof Join && MATCH_TESTS.matcher(((Join) plan).joinType().toString()).find();
    children.subList(0, isMatchTest ? 1 : children.size()).forEach(child -> addColumnsOfRows(child, columns));
  }

  /** Those of a leaf. A checkpoint has the columns of what it was made of, and is no copy of that. */
  private static Set<Object> columnsOf(LogicalPlan leaf) {
    Object source = leaf instanceof LogicalRDD ? ((LogicalRDD) leaf).rdd().id() : leaf.getClass();
    Set<Object> columns = new HashSet<>();
    ScalaLists.<Attribute>get(leaf, "output").forEach(column -> columns.add(List.of(source, column.exprId().id())));
    return columns;
  }

  /** Does it compute the distinct values of a copy of `outer`? */
  public static boolean isCopy(Aggregate plan, LogicalPlan outer) {
    Set<Long> columns = leafColumns(plan);
    boolean[] isDistinct = {true};
    for (Expression result : ScalaLists.<Expression>get(plan, "aggregateExpressions")) {
      result.foreach(part -> checkForFunction(part, isDistinct));
    }
    return isDistinct[0] && !columns.isEmpty() && leafColumns(outer).containsAll(columns);
  }

  private static BoxedUnit checkForFunction(Expression part, boolean[] isDistinct) {
    isDistinct[0] &= !part.getClass().getSimpleName().equals("AggregateExpression");
    return BoxedUnit.UNIT;
  }

  private static Set<Long> leafColumns(LogicalPlan plan) {
    Set<Long> ids = new HashSet<>();
    for (LogicalPlan leaf : ScalaLists.<LogicalPlan>get(plan, "collectLeaves")) {
      ScalaLists.<Attribute>get(leaf, "output").forEach(column -> ids.add(column.exprId().id()));
    }
    return ids;
  }

  /** Of an ExistenceJoin: does its plan only ask that a row has no matches? */
  public static boolean isNegated(Join join, LogicalPlan root) {
    ColumnUse use = new ColumnUse(((ExistenceJoin) join.joinType()).exists().exprId().id());
    root.foreach(use::addOperator); // its signature is the same in all versions of Scala
    ScalaLists.<Expression>get(root, "output").forEach(use::addValue);
    return use.isNegated && !use.isAffirmed;
  }

  /** How a plan uses a column that is true or false. */
  private static final class ColumnUse {
    private final long column;
    private boolean isNegated;
    private boolean isAffirmed;

    ColumnUse(long column) {
      this.column = column;
    }

    BoxedUnit addOperator(LogicalPlan plan) {
      if (plan instanceof Filter) {
        addCondition(((Filter) plan).condition(), true);
      } else {
        List<Expression> expressions = ScalaLists.get(plan, "expressions");
        // A projection that hands the column on does not use it.
        expressions.removeIf(expression -> plan instanceof Project && expression instanceof Attribute);
        expressions.forEach(this::addValue);
      }
      return BoxedUnit.UNIT;
    }

    /** The value itself is used, which is true where a row has matches. */
    void addValue(Expression part) {
      if (part instanceof Attribute) {
        isAffirmed |= ((Attribute) part).exprId().id() == column;
      }
      ScalaLists.<Expression>get(part, "children").forEach(this::addValue);
    }

    private void addCondition(Expression part, boolean mustHold) {
      if (part instanceof Not) {
        addCondition(((Not) part).child(), !mustHold);
      } else if (part instanceof And || part instanceof Or) {
        ScalaLists.<Expression>get(part, "children").forEach(child -> addCondition(child, mustHold));
      } else if (part instanceof Attribute && !mustHold) {
        isNegated |= ((Attribute) part).exprId().id() == column;
      } else {
        addValue(part);
      }
    }
  }
}
