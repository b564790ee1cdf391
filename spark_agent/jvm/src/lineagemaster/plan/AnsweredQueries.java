package lineagemaster.plan;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import lineagemaster.expression.ScalaLists;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SQLExecution;

/**
 * Rows of an optimised plan that were computed from what a table says of its files, while the plan was optimised: Delta
 * Lake does so for a {@code count(*)}. They look like a list of the program. The query as it was analysed tells them apart.
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
      return table(rows);
    } catch (IllegalStateException error) { // an operator of somebody else's, whose columns cannot be asked for
      return null;
    }
  }

  private LogicalPlan table(LogicalPlan rows) {
    if (ScalaLists.get(rows, "data").isEmpty()) {
      return rows;
    }
    String execution = context.getLocalProperty(EXECUTION);
    QueryExecution query = execution == null ? null : SQLExecution.getQueryExecution(Long.parseLong(execution));
    LogicalPlan operator = query == null ? null : withColumns(query.analyzed(), columns(rows));
    if (operator == null) {
      return null;
    }
    return ScalaLists.<LogicalPlan>get(operator, "collectLeaves").stream()
        .filter(leaf -> TABLES.contains(leaf.getClass().getSimpleName())).findFirst().orElse(rows);
  }

  /** The first operator with these columns, also of a subquery or of the query that a command hides. */
  private static LogicalPlan withColumns(LogicalPlan plan, List<ExprId> columns) {
    if (columns(plan).equals(columns)) {
      return plan;
    }
    List<Object> parts = new ArrayList<>(ScalaLists.get(plan, "children"));
    parts.addAll(ScalaLists.get(plan, "innerChildren"));
    parts.addAll(ScalaLists.get(plan, "subqueries"));
    for (Object part : parts) {
      LogicalPlan operator = part instanceof LogicalPlan ? withColumns((LogicalPlan) part, columns) : null;
      if (operator != null) {
        return operator;
      }
    }
    return null;
  }

  private static List<ExprId> columns(LogicalPlan plan) {
    return ScalaLists.<Attribute>get(plan, "output").stream().map(Attribute::exprId).collect(Collectors.toList());
  }
}
