package lineagemaster.plan;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import lineagemaster.expression.ScalaLists;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.CTERelationDef;
import org.apache.spark.sql.catalyst.plans.logical.CTERelationRef;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SQLExecution;

/**
 * Rows of an optimised plan that were computed from what a table says of its files, while the plan was optimised: Delta
 * Lake does so for a {@code count(*)}. They look like a list of the program. The query as it was analysed tells them
 * apart: it says which operator, or which list, their columns are of.
 */
public final class AnsweredQueries {
  private static final String EXECUTION = "spark.sql.execution.id";
  private static final Set<String> TABLES = Set.of("LogicalRelation", "DataSourceV2Relation", "HiveTableRelation");

  private final SparkContext context;

  public AnsweredQueries(SparkContext context) {
    this.context = context;
  }

  /** The table of which rows of a plan were computed; the rows themselves if of none; null where that is not known. */
  public LogicalPlan tableOf(LogicalPlan rows) {
    try {
      Set<ExprId> columns = columns(rows);
      if (columns.isEmpty() || ScalaLists.get(rows, "data").isEmpty()) {
        return rows;
      }
      String execution = context.getLocalProperty(EXECUTION);
      QueryExecution query = execution == null ? null : SQLExecution.getQueryExecution(Long.parseLong(execution));
      return query == null ? null : new Query(query.analyzed()).tableOf(rows, columns);
    } catch (IllegalStateException error) { // an operator of somebody else's, which cannot be looked into
      return null;
    }
  }

  private static Set<ExprId> columns(LogicalPlan plan) {
    return ScalaLists.<Attribute>get(plan, "output").stream().map(Attribute::exprId).collect(Collectors.toSet());
  }

  /** As it was analysed. */
  private static final class Query {
    private final List<LogicalPlan> operators = new ArrayList<>();
    private final Map<Long, LogicalPlan> named = new HashMap<>(); // what WITH gives a name

    Query(LogicalPlan plan) {
      add(plan);
    }

    /** Also of subqueries, and of the query that a command hides. */
    private void add(LogicalPlan plan) {
      operators.add(plan);
      if (plan instanceof CTERelationDef) {
        named.put(((CTERelationDef) plan).id(), plan);
      }
      parts(plan).forEach(this::add);
    }

    private static List<LogicalPlan> parts(LogicalPlan plan) {
      List<Object> parts = new ArrayList<>(ScalaLists.get(plan, "children"));
      parts.addAll(ScalaLists.get(plan, "innerChildren"));
      parts.addAll(ScalaLists.get(plan, "subqueries"));
      return parts.stream().filter(LogicalPlan.class::isInstance).map(LogicalPlan.class::cast)
          .collect(Collectors.toList());
    }

    LogicalPlan tableOf(LogicalPlan rows, Set<ExprId> columns) {
      boolean isKnown = false;
      for (LogicalPlan operator : operators) {
        if (!makes(operator, columns)) {
          continue;
        }
        isKnown = true;
        Set<LogicalPlan> below = new LinkedHashSet<>();
        addBelow(operator, below);
        for (LogicalPlan leaf : below) {
          if (TABLES.contains(leaf.getClass().getSimpleName())) {
            return below.stream().anyMatch(Aggregate.class::isInstance) ? leaf : null;
          }
        }
      }
      return isKnown ? rows : null;
    }

    /** Is a column made here? Most operators only give those on that are made below. */
    private static boolean makes(LogicalPlan operator, Set<ExprId> columns) {
      if (ScalaLists.get(operator, "children").isEmpty()) {
        return columns(operator).stream().anyMatch(columns::contains);
      }
      return ScalaLists.get(operator, "expressions").stream()
          .anyMatch(made -> made instanceof Alias && columns.contains(((Alias) made).exprId()));
    }

    private void addBelow(LogicalPlan operator, Set<LogicalPlan> below) {
      if (below.add(operator)) {
        parts(operator).forEach(part -> addBelow(part, below));
        if (operator instanceof CTERelationRef && named.containsKey(((CTERelationRef) operator).cteId())) {
          addBelow(named.get(((CTERelationRef) operator).cteId()), below);
        }
      }
    }
  }
}
