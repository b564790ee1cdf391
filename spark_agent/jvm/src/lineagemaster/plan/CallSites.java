package lineagemaster.plan;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import lineagemaster.expression.ScalaLists;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;
import org.apache.spark.sql.execution.QueryExecution;
import scala.Option;

/**
 * Where the user's program made the operators of a plan. What a DataFrame adds to the plan that it is made of is noted
 * on the plan's nodes and their expressions, as tags: no query reads these, and Spark keeps them on what its optimiser
 * makes of a node. Which operators it merges or exchanges: so an operator is of the places of its expressions, which
 * stay what they are; only one without any is of its own place, as long as it is still of the kind that was noted.
 */
public final class CallSites {
  private static final TreeNodeTag<String> SITE = new TreeNodeTag<>("lineage.callSite");
  private static final TreeNodeTag<String> KIND = new TreeNodeTag<>("lineage.kind");
  /** What the optimiser makes of an operator: for people it is the same. */
  private static final Map<String, String> BECOMES = Map.of("Deduplicate", "Aggregate", "Distinct", "Aggregate",
      "DataSourceV2Relation", "DataSourceV2ScanRelation");
  /** Of an expression that stands in operators of several places. */
  private static final String AMBIGUOUS = "";

  private CallSites() {}

  /** Note the place of all that is new in the plan of a Dataset. */
  public static void note(Object dataset, String site) throws ReflectiveOperationException {
    QueryExecution execution = (QueryExecution) dataset.getClass().getMethod("queryExecution").invoke(dataset);
    Deque<LogicalPlan> next = new ArrayDeque<>(List.of(execution.commandExecuted()));
    while (!next.isEmpty()) {
      LogicalPlan plan = next.pop();
      if (plan.getTagValue(SITE).isDefined()) {
        continue; // with all below it
      }
      plan.setTagValue(SITE, site);
      plan.setTagValue(KIND, plan.getClass().getSimpleName());
      next.addAll(ScalaLists.<LogicalPlan>asked(plan, "children"));
      for (Expression each : ScalaLists.<Expression>asked(plan, "expressions")) {
        note(each, site);
        if (SubqueryExpression.hasSubquery(each)) {
          addSubqueries(each, next);
        }
      }
    }
  }

  /** A column or a literal may be the same object in many plans. */
  private static void note(Expression expression, String site) {
    List<Expression> children = ScalaLists.asked(expression, "children");
    if (expression instanceof And) {
      children.forEach(each -> note(each, site));
    } else if (!children.isEmpty()) {
      Option<String> noted = expression.getTagValue(SITE);
      boolean isOther = noted.isDefined() && !noted.get().equals(site);
      expression.setTagValue(SITE, isOther ? AMBIGUOUS : site);
    }
  }

  private static void addSubqueries(Expression expression, Deque<LogicalPlan> found) {
    if (expression instanceof SubqueryExpression) {
      found.add(((SubqueryExpression) expression).plan());
    }
    ScalaLists.<Expression>asked(expression, "children").forEach(each -> addSubqueries(each, found));
  }

  /** The places of an operator of an optimised plan, as far as they are known. */
  static List<String> of(LogicalPlan plan) {
    Set<String> sites = new LinkedHashSet<>();
    boolean[] isAmbiguous = {false};
    for (Expression each : ScalaLists.<Expression>asked(plan, "expressions")) {
      addSites(each, sites, isAmbiguous);
    }
    if (sites.isEmpty() && !isAmbiguous[0]) {
      String kind = plan.getClass().getSimpleName();
      Option<String> noted = plan.getTagValue(KIND);
      if (noted.isDefined() && (noted.get().equals(kind) || kind.equals(BECOMES.get(noted.get())))) {
        sites.add(plan.getTagValue(SITE).get());
      }
    }
    return new ArrayList<>(sites);
  }

  private static void addSites(Expression expression, Set<String> found, boolean[] isAmbiguous) {
    Option<String> noted = expression.getTagValue(SITE);
    if (noted.isDefined()) {
      isAmbiguous[0] |= noted.get().equals(AMBIGUOUS);
      if (!noted.get().equals(AMBIGUOUS)) {
        found.add(noted.get());
      }
    } else if (expression instanceof And) {
      ScalaLists.<Expression>asked(expression, "children").forEach(each -> addSites(each, found, isAmbiguous));
    }
  }
}
