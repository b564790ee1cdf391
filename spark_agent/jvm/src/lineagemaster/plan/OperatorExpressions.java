package lineagemaster.plan;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.StringJoiner;
import java.util.function.Function;
import lineagemaster.delivery.Json;
import lineagemaster.expression.ScalaLists;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.Like;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.PythonUDF;
import org.apache.spark.sql.catalyst.expressions.ScalaUDF;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.First;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.types.StructField;

/**
 * What an operator computes of a row, so that it can be computed again for one row after the job: see `expressions`
 * of a node in docs/contract.md. Columns are named by the ids that Spark gives them. What is not among the functions
 * below stands there as `unknown`, with its name.
 */
final class OperatorExpressions {
  /** Characters of one operator's expressions. A longer answer would reach Python in two writes. */
  private static final int MAX_CHARACTERS = 2_000;
  /** Events are bounded in depth, and each level of an expression takes two of theirs. */
  private static final int MAX_LEVELS = 10;
  private static final int MAX_ITEMS = 100;
  private static final Set<String> FUNCTIONS = Set.of(
      "And", "Or", "Not", "EqualTo", "EqualNullSafe", "LessThan", "LessThanOrEqual", "GreaterThan",
      "GreaterThanOrEqual", "In", "IsNull", "IsNotNull", "IsNaN", "AtLeastNNonNulls", "StartsWith", "EndsWith",
      "Contains", "Like", "Coalesce", "If", "CaseWhen", "Cast", "Add", "Subtract", "Multiply", "Divide", "Remainder",
      "UnaryMinus", "Abs", "Upper", "Lower", "Length", "Substring", "Concat", "StringTrim", "StringTrimLeft",
      "StringTrimRight", "RLike", "Greatest", "Least", "Year", "Month", "DayOfMonth", "DateAdd", "DateSub", "DateDiff",
      "KnownFloatingPointNormalized", "NormalizeNaNAndZero", "KnownNotNull");
  /** They run Python functions of a row, and give the row on. */
  private static final Set<String> OF_PYTHON = Set.of("BatchEvalPython", "ArrowEvalPython");
  /** What Spark adds to a filter to read less: a join above leaves out the same rows. */
  private static final Set<String> PRUNING = Set.of("DynamicPruningSubquery", "BloomFilterMightContain");
  private static final String TRUE = "{\"type\":\"boolean\",\"value\":\"true\"}";
  private static final Set<String> LITERALS = Set.of(
      "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "date", "timestamp",
      "timestamp_ntz", "void");

  private OperatorExpressions() {}

  /** JSON; null where there is nothing that can be said. Never throws: a query does not need it. */
  static String json(LogicalPlan plan) {
    try {
      String json = new OperatorExpressions.Writer().operator(plan);
      return json.length() <= MAX_CHARACTERS ? json : "null";
    } catch (RuntimeException | LinkageError error) {
      return "null";
    }
  }

  /** Writes the expressions of one operator. Ends early where they are too long. */
  private static final class Writer {
    private int written;

    String operator(LogicalPlan plan) {
      if (plan instanceof Filter) {
        return "{\"condition\":" + expression(((Filter) plan).condition(), 0) + "}";
      }
      if (plan instanceof Project) {
        return "{\"defined\":" + list(ScalaLists.<Expression>get(plan, "projectList"), this::definition) + "}";
      }
      if (plan instanceof Join) {
        Join join = (Join) plan;
        String condition = join.condition().isDefined() ? expression(join.condition().get(), 0) : "null";
        return "{\"join\":" + Json.quoted(join.joinType().toString()) + ",\"condition\":" + condition + "}";
      }
      if (plan instanceof Aggregate) {
        return grouping(plan);
      }
      if (OF_PYTHON.contains(plan.getClass().getSimpleName())) {
        return "{\"defined\":" + pythonResults(plan) + "}";
      }
      if (plan instanceof Union) {
        List<LogicalPlan> inputs = ScalaLists.get(plan, "children");
        return "{\"output\":" + columnIds(PlanReader.output(plan))
            + ",\"inputs\":" + list(inputs, input -> columnIds(PlanReader.output(input))) + "}";
      }
      HadoopFsRelation relation = PlanReader.relation(plan);
      return relation == null ? "null" : "{\"columns\":[" + scanned((LogicalRelation) plan, relation) + "]}";
    }

    /** The keys of an aggregate, and whether it gives one of the rows with equal keys. */
    private String grouping(LogicalPlan aggregate) {
      List<Expression> keys = ScalaLists.get(aggregate, "groupingExpressions");
      boolean isDistinct = true;
      for (Expression result : ScalaLists.<Expression>get(aggregate, "aggregateExpressions")) {
        isDistinct &= isOfOneRow(result, 0);
      }
      String written = list(keys, key -> expression(key, 0));
      return keys.isEmpty() ? "null" : "{\"keys\":" + written + ",\"distinct\":" + isDistinct + "}";
    }

    /** Is it a key, or what the first row of a group has? The first one that is not null may be another row's. */
    private static boolean isOfOneRow(Expression result, int level) {
      if (result instanceof AggregateExpression) {
        AggregateExpression aggregate = (AggregateExpression) result;
        Expression of = aggregate.aggregateFunction();
        return of instanceof First && !((First) of).ignoreNulls() && aggregate.filter().isEmpty();
      }
      if (level > MAX_LEVELS) {
        return false;
      }
      for (Expression part : ScalaLists.<Expression>get(result, "children")) {
        if (!isOfOneRow(part, level + 1)) {
          return false;
        }
      }
      return true;
    }

    private String pythonResults(LogicalPlan plan) {
      List<Expression> functions = ScalaLists.get(plan, "udfs");
      List<Attribute> results = ScalaLists.get(plan, "resultAttrs");
      List<String> defined = new ArrayList<>();
      for (int i = 0; i < results.size(); i++) {
        defined.add("{\"column\":" + results.get(i).exprId().id() + ",\"as\":" + unknown(functions.get(i)) + "}");
      }
      return list(defined, Function.identity());
    }

    /** In the order of the columns that the node's schema has. */
    private String scanned(LogicalRelation scan, HadoopFsRelation relation) {
      StructField[] fields = relation.schema().fields();
      List<Attribute> columns = PlanReader.output(scan);
      for (int i = 0; i < fields.length; i++) {
        if (i >= columns.size() || !columns.get(i).name().equals(fields[i].name())) {
          throw new IllegalStateException("other columns than its schema has");
        }
      }
      return columnIds(columns.subList(0, fields.length));
    }

    private String columnIds(List<Attribute> columns) {
      return list(columns, column -> Long.toString(column.exprId().id()));
    }

    private <T> String list(List<T> items, Function<T, String> write) {
      StringJoiner json = new StringJoiner(",", "[", "]");
      for (T item : items) {
        String text = write.apply(item);
        if (!text.isEmpty()) {
          count(text.length());
          json.add(text);
        }
      }
      return json.toString();
    }

    private void count(int characters) {
      written += characters;
      if (written > 4 * MAX_CHARACTERS) { // what is nested is counted again
        throw new IllegalStateException("too long");
      }
    }

    /** Columns that are passed on keep their ids, and are left out. */
    private String definition(Expression column) {
      if (column instanceof Attribute) {
        return "";
      }
      NamedExpression named = (NamedExpression) column;
      String as = column instanceof Alias ? expression(((Alias) column).child(), 0) : unknown(column);
      return "{\"column\":" + named.exprId().id() + ",\"as\":" + as + "}";
    }

    private String expression(Expression expression, int level) {
      if (level > MAX_LEVELS) {
        return unknown(expression);
      }
      if (expression instanceof Attribute) {
        Attribute column = (Attribute) expression;
        return "{\"column\":" + column.exprId().id() + ",\"name\":" + Json.quoted(column.name()) + "}";
      }
      if (expression instanceof Literal) {
        return literal(((Literal) expression).value(), expression);
      }
      if (PRUNING.contains(expression.getClass().getSimpleName())) {
        return TRUE;
      }
      if (expression instanceof InSet) {
        return inSet((InSet) expression, level);
      }
      List<Expression> children = ScalaLists.get(expression, "children");
      if (expression instanceof GetStructField) {
        return "{\"of\":\"GetStructField\",\"name\":" + Json.quoted(((GetStructField) expression).extractFieldName())
            + ",\"inputs\":[" + expression(children.get(0), level + 1) + "]}";
      }
      String name = expression.getClass().getSimpleName();
      if (!FUNCTIONS.contains(name) || children.size() > MAX_ITEMS) {
        return unknown(expression);
      }
      return "{\"of\":" + Json.quoted(name) + more(expression, name)
          + ",\"inputs\":" + list(children, child -> expression(child, level + 1)) + "}";
    }

    /** What of an expression is none of its children. */
    private static String more(Expression expression, String name) {
      if (name.equals("Cast")) {
        return ",\"type\":" + Json.quoted(type(expression));
      }
      if (expression instanceof Like) {
        return ",\"value\":" + Json.quoted(String.valueOf(((Like) expression).escapeChar()));
      }
      if (name.equals("AtLeastNNonNulls")) {
        return ",\"value\":" + Json.quoted(expression.productElement(0).toString());
      }
      return "";
    }

    private String inSet(InSet expression, int level) {
      if (expression.hset().size() > MAX_ITEMS) {
        return unknown(expression);
      }
      List<String> inputs = new ArrayList<>();
      inputs.add(expression(expression.child(), level + 1));
      scala.collection.Iterator<Object> values = expression.hset().iterator();
      while (values.hasNext()) {
        inputs.add(literal(values.next(), expression.child()));
      }
      return "{\"of\":\"In\",\"inputs\":" + list(inputs, Function.identity()) + "}";
    }

    /** A value as Catalyst holds it: dates in days, times in microseconds since 1970. */
    private static String literal(Object value, Expression typed) {
      String type = type(typed);
      if (!LITERALS.contains(type) && !type.startsWith("decimal(")) {
        return unknown(typed);
      }
      return "{\"type\":" + Json.quoted(type) + ",\"value\":" + (value == null ? "null" : Json.quoted(value.toString()))
          + "}";
    }

    private static String type(Expression expression) {
      return expression.dataType().catalogString().toLowerCase(Locale.ROOT);
    }

    private static String unknown(Expression expression) {
      String name = "";
      if (expression instanceof PythonUDF) {
        name = ((PythonUDF) expression).name();
      } else if (expression instanceof ScalaUDF && ((ScalaUDF) expression).udfName().isDefined()) {
        name = ((ScalaUDF) expression).udfName().get();
      }
      return "{\"unknown\":" + Json.quoted(expression.getClass().getSimpleName())
          + (name == null || name.isEmpty() ? "" : ",\"name\":" + Json.quoted(name)) + "}";
    }
  }
}
