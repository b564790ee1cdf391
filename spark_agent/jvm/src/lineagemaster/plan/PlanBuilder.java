package lineagemaster.plan;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Set;
import lineagemaster.expression.KeyHash;
import lineagemaster.expression.LineageKey;
import lineagemaster.expression.LineageRoundRobin;
import lineagemaster.expression.LineageRow;
import lineagemaster.expression.ScalaLists;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Ascending$;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.NullsFirst$;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import org.apache.spark.sql.catalyst.expressions.codegen.CodeGenerator;
import org.apache.spark.sql.catalyst.optimizer.NormalizeFloatingNumbers$;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Expand;
import org.apache.spark.sql.catalyst.plans.logical.Generate;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Repartition;
import org.apache.spark.sql.catalyst.plans.logical.RepartitionByExpression;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import org.apache.spark.sql.catalyst.plans.logical.UnaryNode;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.UserDefinedType;
import scala.Option;
import scala.Product;
import scala.collection.Seq;

/**
 * What the rewriting makes of plans, each in one call, as {@link PlanReader} says. An operator that is given more
 * columns is otherwise as Spark made it.
 */
public final class PlanBuilder {
  /** More columns of a key are hashed as one. */
  private static final int MAX_KEY_COLUMNS = 50;
  /** The types that {@link KeyHash} takes, as generated code names them. */
  private static final Set<String> HASHED_TYPES = Set.of("boolean", "byte", "short", "int", "long", "float", "double",
      "Decimal", "UTF8String", "byte[]", "CalendarInterval");
  private static final Seq<Object> NIL = ScalaLists.of(List.of());

  // -- lists -------------------------------------------------------------------------------------------

  /** A Scala Seq. */
  public Seq<Object> seq(List<?> items) {
    return ScalaLists.of(items);
  }

  /** A Scala Seq of both. */
  static Seq<Object> joined(Seq<?> items, List<?> more) {
    List<Object> all = new ArrayList<>(ScalaLists.asJava(items));
    all.addAll(more);
    return ScalaLists.of(all);
  }

  /** A Scala Seq of both. */
  public Seq<Object> joined(List<?> items, List<?> more) {
    List<Object> all = new ArrayList<>(items);
    all.addAll(more);
    return ScalaLists.of(all);
  }

  // -- expressions -------------------------------------------------------------------------------------

  public Expression alias(Expression expression, String name) {
    return ScalaLists.construct(Alias.class, expression, name, NamedExpression.newExprId(), NIL, Option.empty(), NIL);
  }

  /** A literal. */
  public Expression literal(long value) {
    return new Literal(value, DataTypes.LongType);
  }

  /**
   * A hash that is a number from 0 to 2**63 - 1, the same for the same values. Of values with parts, the bytes are
   * hashed by which Spark itself groups them; of all columns where there are many, so that generated code stays short.
   * Numbers that compare as equal (0.0 and -0.0, NaNs) are normalised first.
   */
  public Expression key(Seq<Expression> expressions) {
    if (expressions.isEmpty()) {
      return literal(0L);
    }
    List<Expression> columns = new ArrayList<>();
    for (Expression expression : ScalaLists.asJava(expressions)) {
      columns.add(NormalizeFloatingNumbers$.MODULE$.normalize(expression));
    }
    if (columns.size() > MAX_KEY_COLUMNS) {
      return new LineageKey(expressions(List.of(rowBytes(columns))));
    }
    columns.replaceAll(column -> isHashed(column.dataType()) ? column : rowBytes(List.of(column)));
    return new LineageKey(expressions(columns));
  }

  private static boolean isHashed(DataType type) {
    return !(type instanceof UserDefinedType) && HASHED_TYPES.contains(CodeGenerator.javaType(type));
  }

  private static Expression rowBytes(List<? extends Expression> columns) {
    return new LineageRow(false, expressions(columns));
  }

  private static Expression rowHash(List<? extends Expression> columns) {
    return new LineageRow(true, expressions(columns));
  }

  @SuppressWarnings("unchecked") // items are not checked
  private static Seq<Expression> expressions(List<? extends Expression> items) {
    return (Seq<Expression>) (Seq<?>) ScalaLists.of(items);
  }

  // -- plans -------------------------------------------------------------------------------------------

  /** The plan of a subquery, which Spark takes for one that gives the same rows each time. */
  public LogicalPlan deterministic(LogicalPlan plan) {
    return new DeterministicPlan(plan);
  }

  /** A plan over other children. */
  public LogicalPlan withChildren(LogicalPlan plan, List<LogicalPlan> children) {
    Iterator<LogicalPlan> next = children.iterator();
    return plan.mapChildren(child -> next.next()); // its signature is the same in all versions of Scala
  }

  /** `columns`, and behind them `more`, of a plan. */
  public LogicalPlan project(Seq<?> columns, List<?> more, LogicalPlan child) {
    return ScalaLists.construct(Project.class, joined(ScalaLists.asJava(columns), more), child);
  }

  /** The columns of `like`, and behind them `more`, of a plan. */
  public LogicalPlan projectAs(LogicalPlan like, List<?> more, LogicalPlan child) {
    return ScalaLists.construct(Project.class, joined(PlanReader.output(like), more), child);
  }

  /** An Aggregate with more results, over another child. */
  public LogicalPlan aggregate(Aggregate aggregate, List<?> more, LogicalPlan child) {
    Object[] fields = fields(aggregate);
    fields[1] = joined(ScalaLists.get(aggregate, "aggregateExpressions"), more);
    fields[2] = child;
    return ScalaLists.construct(Aggregate.class, fields);
  }

  /** An Expand over another child. Some columns of a row of the child go unchanged into all rows that it becomes. */
  public LogicalPlan expand(Expand expand, List<?> columns, List<?> output, LogicalPlan child) {
    List<Object> projections = new ArrayList<>();
    for (Seq<?> projection : ScalaLists.<Seq<?>>get(expand, "projections")) {
      projections.add(joined(ScalaLists.asJava(projection), columns));
    }
    Seq<Object> columnsOfAll = joined(PlanReader.output(expand), output);
    return ScalaLists.construct(Expand.class, ScalaLists.of(projections), columnsOfAll, child);
  }

  /**
   * A Generate over another child. It names the columns that it drops by their indexes, and an index may be one that
   * its own child no longer has.
   */
  public LogicalPlan generate(Generate generate, LogicalPlan child) {
    List<Attribute> original = PlanReader.output(generate.child());
    List<Attribute> output = PlanReader.output(child);
    Set<Object> droppedIds = new HashSet<>();
    for (Integer index : ScalaLists.<Integer>get(generate, "unrequiredChildIndex")) {
      if (index < original.size()) {
        droppedIds.add(original.get(index).exprId().id());
      }
    }
    List<Integer> droppedIndexes = new ArrayList<>();
    for (int index = 0; index < output.size(); index++) {
      if (droppedIds.contains(output.get(index).exprId().id())) {
        droppedIndexes.add(index);
      }
    }
    Object[] fields = fields(generate);
    fields[1] = ScalaLists.of(droppedIndexes);
    fields[fields.length - 1] = child;
    return ScalaLists.construct(Generate.class, fields);
  }

  /**
   * A repartition over a child with more columns. Its rows go where they would go without these. Before a round-robin
   * partitioning, Spark sorts the rows of a task by all columns, so that the order is the same if computed again.
   */
  public LogicalPlan repartition(LogicalPlan plan, List<Expression> more, LogicalPlan child) {
    int partitions = roundRobinPartitions(plan);
    if (partitions < 2 || more.isEmpty() || !plan.conf().sortBeforeRepartition()) {
      return withChildren(plan, List.of(child));
    }
    List<Attribute> original = PlanReader.output(((UnaryNode) plan).child());
    List<SortOrder> order = new ArrayList<>();
    order.add(ascending(rowHash(original)));
    order.add(ascending(rowBytes(original)));
    more.forEach(column -> order.add(ascending(column)));
    Expression number = alias(new LineageRoundRobin(partitions, expressions(List.of())), "lineage_round_robin");
    List<Object> columns = new ArrayList<>(original);
    columns.addAll(more);
    LogicalPlan numbered = project(ScalaLists.of(columns), List.of(number), sorted(order, child));
    Object key = ((NamedExpression) number).toAttribute();
    Object target = plan instanceof Repartition ? Option.apply(partitions) : fields((Product) plan)[2];
    LogicalPlan repartitioned = ScalaLists.construct(
        RepartitionByExpression.class, ScalaLists.of(List.of(key)), numbered, target, Option.empty());
    return project(ScalaLists.of(columns), List.of(), repartitioned);
  }

  /** Over how many partitions a repartition spreads rows round-robin; 0 where it does not. */
  private static int roundRobinPartitions(LogicalPlan plan) {
    if (plan instanceof Repartition) {
      return ((Repartition) plan).shuffle() ? ((Repartition) plan).numPartitions() : 0;
    }
    boolean hasNoKeys = ScalaLists.get(plan, "partitionExpressions").isEmpty();
    return hasNoKeys ? ((RepartitionByExpression) plan).numPartitions() : 0;
  }

  private static SortOrder ascending(Expression expression) {
    return ScalaLists.construct(SortOrder.class, expression, Ascending$.MODULE$, NullsFirst$.MODULE$, NIL);
  }

  /** The rows of each partition in the order of these columns, as Spark sorts what it writes into folders of values. */
  public LogicalPlan sortedBy(List<Expression> columns, LogicalPlan child) {
    List<SortOrder> order = new ArrayList<>();
    columns.forEach(column -> order.add(ascending(column)));
    return sorted(order, child);
  }

  private static LogicalPlan sorted(List<SortOrder> order, LogicalPlan child) {
    boolean hasHints = Sort.class.getConstructors()[0].getParameterCount() > 3; // from Spark 4.3 on
    return hasHints
        ? ScalaLists.construct(Sort.class, ScalaLists.of(order), false, child, Option.empty())
        : ScalaLists.construct(Sort.class, ScalaLists.of(order), false, child);
  }

  /** The arguments that a case class was constructed with. */
  static Object[] fields(Product instance) {
    Object[] fields = new Object[instance.productArity()];
    for (int i = 0; i < fields.length; i++) {
      fields[i] = instance.productElement(i);
    }
    return fields;
  }
}
