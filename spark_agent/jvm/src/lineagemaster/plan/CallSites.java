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
 * The lines of the user's program that made the operators of a plan. They are noted as tags on what a DataFrame adds to
 * the plan that it is made of: on nodes and their expressions. No query reads tags, and Spark copies them to what its
 * optimiser makes of a node. The optimiser merges operators and replaces them, and leaves expressions what they are. So
 * an operator has the call sites of its expressions. One without any has its own, if it is of the kind that was noted.
 */
public final class CallSites {
  private static final TreeNodeTag<String> SITE = new TreeNodeTag<>("lineage.callSite");
  private static final TreeNodeTag<String> KIND = new TreeNodeTag<>("lineage.kind");
  /** What the optimiser makes of an operator, and users take for the same. */
  private static final Map<String, String> BECOMES = Map.of("Deduplicate", "Aggregate", "Distinct", "Aggregate",
      "DataSourceV2Relation", "DataSourceV2ScanRelation");
  /** Of an expression that is in operators of several call sites. */
  private static final String AMBIGUOUS = "";

  private CallSites() {}

  /** Notes the call site of all that is new in the plan of a Dataset. */
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
      next.addAll(ScalaLists.<LogicalPlan>get(plan, "children"));
      for (Expression expression : ScalaLists.<Expression>get(plan, "expressions")) {
        note(expression, site);
        if (SubqueryExpression.hasSubquery(expression)) {
          addSubqueries(expression, next);
        }
      }
    }
  }

  /** A column or a literal may be the same object in many plans. */
  private static void note(Expression expression, String site) {
    List<Expression> children = ScalaLists.get(expression, "children");
    if (expression instanceof And) {
      children.forEach(child -> note(child, site));
    } else if (!children.isEmpty()) {
      Option<String> noted = expression.getTagValue(SITE);
      boolean isOther = noted.isDefined() && !noted.get().equals(site);
      expression.setTagValue(SITE, isOther ? AMBIGUOUS : site);
    }
  }

  private static void addSubqueries(Expression expression, Deque<LogicalPlan> plans) {
    if (expression instanceof SubqueryExpression) {
      plans.add(((SubqueryExpression) expression).plan());
    }
    ScalaLists.<Expression>get(expression, "children").forEach(child -> addSubqueries(child, plans));
  }

  /** The call sites of an operator of an optimised plan, as far as they are known. */
  static List<String> of(LogicalPlan plan) {
    Set<String> sites = new LinkedHashSet<>();
    boolean[] isAmbiguous = {false};
    for (Expression expression : ScalaLists.<Expression>get(plan, "expressions")) {
      addSites(expression, sites, isAmbiguous);
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

  private static void addSites(Expression expression, Set<String> sites, boolean[] isAmbiguous) {
    Option<String> noted = expression.getTagValue(SITE);
    if (noted.isDefined()) {
      isAmbiguous[0] |= noted.get().equals(AMBIGUOUS);
      if (!noted.get().equals(AMBIGUOUS)) {
        sites.add(noted.get());
      }
    } else if (expression instanceof And) {
      ScalaLists.<Expression>get(expression, "children").forEach(child -> addSites(child, sites, isAmbiguous));
    }
  }
}
