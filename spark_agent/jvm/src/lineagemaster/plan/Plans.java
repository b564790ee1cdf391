package lineagemaster.plan;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.StringJoiner;
import java.util.function.Function;
import java.util.stream.Stream;
import lineagemaster.delivery.Json;
import lineagemaster.expression.KeyHash;
import lineagemaster.expression.LineageKey;
import lineagemaster.expression.LineageRoundRobin;
import lineagemaster.expression.LineageRow;
import lineagemaster.expression.ScalaLists;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Ascending$;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.NullsFirst$;
import org.apache.spark.sql.catalyst.expressions.SessionWindow;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import org.apache.spark.sql.catalyst.expressions.SpecifiedWindowFrame;
import org.apache.spark.sql.catalyst.expressions.UnboundedFollowing$;
import org.apache.spark.sql.catalyst.expressions.UnboundedPreceding$;
import org.apache.spark.sql.catalyst.expressions.codegen.CodeGenerator;
import org.apache.spark.sql.catalyst.optimizer.NormalizeFloatingNumbers$;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.CTERelationDef;
import org.apache.spark.sql.catalyst.plans.logical.CTERelationRef;
import org.apache.spark.sql.catalyst.plans.logical.Expand;
import org.apache.spark.sql.catalyst.plans.logical.ExposesMetadataColumns;
import org.apache.spark.sql.catalyst.plans.logical.Generate;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.RebalancePartitions;
import org.apache.spark.sql.catalyst.plans.logical.Repartition;
import org.apache.spark.sql.catalyst.plans.logical.RepartitionByExpression;
import org.apache.spark.sql.catalyst.plans.logical.RepartitionOperation;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import org.apache.spark.sql.catalyst.plans.logical.UnaryNode;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.UserDefinedType;
import scala.Option;
import scala.Product;
import scala.Tuple2;
import scala.collection.Seq;
import scala.runtime.BoxedUnit;

/**
 * What rewriting asks of plans and makes of them, each in one call: a round trip from Python costs more than most
 * answers, and for each object that comes back there is another one when it is released. Several texts come as JSON.
 */
public final class Plans {
  /** What Spark marks the column with that says where a row is. */
  private static final String METADATA = "__file_source_metadata_col";
  private static final String ROW_INDEX = "row_index";
  private static final int UNDER_SUBQUERY = 3; // of the fields of a CTERelationDef
  /** More columns of a key are hashed as one. */
  private static final int MOST_COLUMNS = 50;
  /** What {@link KeyHash} takes, as generated code names it. */
  private static final Set<String> HASHED = Set.of("boolean", "byte", "short", "int", "long", "float", "double",
      "Decimal", "UTF8String", "byte[]", "CalendarInterval");
  private static final Seq<Object> NIL = ScalaLists.of(List.of());

  // -- questions ---------------------------------------------------------------------------------------

  /** The name of its class, without the package. */
  public String kind(Object part) {
    return part.getClass().getSimpleName();
  }

  /** The kinds of all leaves: [kind, ...]. */
  public String leafKinds(LogicalPlan plan) {
    return texts(ScalaLists.asked(plan, "collectLeaves"), this::kind);
  }

  /** An operator: {kind, name, text: all that Spark shows of it, call_sites, has_subqueries, is_deterministic, files}. */
  public String look(LogicalPlan plan) {
    return "{\"kind\":" + Json.quoted(kind(plan))
        + ",\"name\":" + Json.quoted(plan.nodeName())
        + ",\"text\":" + Json.quoted(plan.simpleString(25))
        + ",\"call_sites\":" + texts(CallSites.of(plan), each -> each)
        + ",\"has_subqueries\":" + hasSubqueries(plan)
        + ",\"is_deterministic\":" + plan.deterministic()
        + ",\"files\":" + files(relation(plan))
        + "}";
  }

  private static boolean hasSubqueries(LogicalPlan plan) {
    return !ScalaLists.asked(plan, "subqueries").isEmpty();
  }

  /** The names of expressions' types: [name, ...]. */
  public String types(Seq<Expression> expressions) {
    return texts(ScalaLists.asJava(expressions), each -> each.dataType().catalogString());
  }

  /** The names of columns: [name, ...]. */
  public String names(Seq<NamedExpression> columns) {
    return texts(ScalaLists.asJava(columns), NamedExpression::name);
  }

  /** The columns that are texts; null where others may hold the end of a line, too. */
  public List<Expression> textColumns(Seq<Expression> columns) {
    List<Expression> texts = new ArrayList<>();
    for (Expression each : ScalaLists.asJava(columns)) {
      String type = each.dataType().catalogString().toLowerCase(Locale.ROOT);
      if (Stream.of("string", "char", "varchar").anyMatch(type::startsWith)) {
        texts.add(each);
      } else if (Stream.of("string", "char", "binary", "variant").anyMatch(type::contains)) {
        return null;
      }
    }
    return texts;
  }

  /** Does each function of a window see all rows of the window's partition? */
  public boolean isOfWholePartitions(LogicalPlan window) {
    boolean[] isWhole = {true};
    for (Expression each : ScalaLists.<Expression>asked(window, "windowExpressions")) {
      each.foreach(part -> lookAtFrame(part, isWhole));
    }
    return isWhole[0];
  }

  private static BoxedUnit lookAtFrame(Expression part, boolean[] isWhole) {
    if (part instanceof SpecifiedWindowFrame) {
      SpecifiedWindowFrame frame = (SpecifiedWindowFrame) part;
      isWhole[0] &= frame.lower() == UnboundedPreceding$.MODULE$ && frame.upper() == UnboundedFollowing$.MODULE$;
    }
    return BoxedUnit.UNIT;
  }

  /** Those that are no session windows: what a row says of these is made larger by the rows that it meets. */
  public Seq<Object> withoutSessions(Seq<Expression> grouping) {
    List<Expression> found = ScalaLists.asJava(grouping);
    found.removeIf(each -> each instanceof NamedExpression
        && ((NamedExpression) each).metadata().contains(SessionWindow.marker()));
    return ScalaLists.of(found);
  }

  /** The names of the columns that an expression reads: [name, ...]. */
  public String namesRead(Expression expression) {
    List<Attribute> read = new ArrayList<>();
    scala.collection.Iterator<Attribute> each = expression.references().iterator();
    while (each.hasNext()) {
      read.add(each.next());
    }
    return texts(read, NamedExpression::name);
  }

  /** What tells its columns from those of all other plans: [number, ...]. */
  public String columnIds(LogicalPlan plan) {
    List<Long> ids = new ArrayList<>();
    output(plan).forEach(each -> ids.add(each.exprId().id()));
    return ids.toString();
  }

  /** A Scala Map of texts: {name: value, ...}. */
  public String options(scala.collection.Map<String, String> options) {
    StringJoiner found = new StringJoiner(",", "{", "}");
    for (scala.collection.Iterator<Tuple2<String, String>> each = options.iterator(); each.hasNext();) {
      Tuple2<String, String> pair = each.next();
      found.add(Json.quoted(pair._1()) + ":" + Json.quoted(String.valueOf(pair._2())));
    }
    return found.toString();
  }

  /**
   * What a scan of files reads: {format: the kind of its format, roots: the first paths, count: of all paths, options,
   * is_bucketed, folders: the columns that are names of folders}.
   */
  private String files(HadoopFsRelation relation) {
    if (relation == null) {
      return "null";
    }
    List<Object> roots = ScalaLists.asked(relation.location(), "rootPaths");
    return "{\"format\":" + Json.quoted(kind(relation.fileFormat()))
        + ",\"roots\":" + texts(roots.subList(0, Math.min(roots.size(), 3)), Object::toString)
        + ",\"count\":" + roots.size()
        + ",\"options\":" + options(relation.options())
        + ",\"is_bucketed\":" + relation.bucketSpec().isDefined()
        + ",\"folders\":" + texts(List.of(relation.partitionSchema().fieldNames()), Function.identity())
        + "}";
  }

  /** Do two plans with the same leaves read the same files? Spark itself looks at their folders only. */
  public boolean areOfSameFiles(LogicalPlan plan, LogicalPlan other) {
    List<LogicalPlan> leaves = ScalaLists.asked(plan, "collectLeaves");
    List<LogicalPlan> others = ScalaLists.asked(other, "collectLeaves");
    boolean areSame = leaves.size() == others.size();
    for (int at = 0; areSame && at < leaves.size(); at++) {
      HadoopFsRelation one = relation(leaves.get(at));
      HadoopFsRelation two = relation(others.get(at));
      areSame = one == null || two == null
          || one.sizeInBytes() == two.sizeInBytes()
              && Arrays.equals(one.location().inputFiles(), two.location().inputFiles());
    }
    return areSame;
  }

  /** Of a scan of files; null of other plans, and of a subclass, which may read in another way. */
  private static HadoopFsRelation relation(LogicalPlan leaf) {
    if (leaf.getClass() != LogicalRelation.class) {
      return null;
    }
    Object relation = ((LogicalRelation) leaf).relation();
    return relation.getClass() == HadoopFsRelation.class ? (HadoopFsRelation) relation : null;
  }

  private static <T> String texts(List<T> of, Function<T, String> text) {
    StringJoiner found = new StringJoiner(",", "[", "]");
    of.forEach(each -> found.add(Json.quoted(text.apply(each))));
    return found.toString();
  }

  // -- lists -------------------------------------------------------------------------------------------

  /** A Scala Seq. */
  public Seq<Object> seq(List<?> items) {
    return ScalaLists.of(items);
  }

  private static List<Attribute> output(LogicalPlan plan) {
    return ScalaLists.asked(plan, "output");
  }

  /** A Scala Seq of both. */
  public Seq<Object> joined(List<?> items, List<?> more) {
    List<Object> all = new ArrayList<>(items);
    all.addAll(more);
    return ScalaLists.of(all);
  }

  // -- expressions -------------------------------------------------------------------------------------

  public Expression alias(Expression expression, String name) {
    return ScalaLists.made(Alias.class, expression, name, NamedExpression.newExprId(), NIL, Option.empty(), NIL);
  }

  /**
   * A number from 0 to 2**63 - 1 that is the same for the same values: a hash. Of values with parts, the bytes are
   * hashed by which Spark itself groups them; of all columns where there are many, so that generated code stays short.
   * Numbers that compare as equal (0.0 and -0.0, NaNs) are made the same first.
   */
  public Expression key(Seq<Expression> expressions) {
    if (expressions.isEmpty()) {
      return new Literal(0L, DataTypes.LongType);
    }
    List<Expression> columns = new ArrayList<>();
    for (Expression each : ScalaLists.asJava(expressions)) {
      columns.add(NormalizeFloatingNumbers$.MODULE$.normalize(each));
    }
    if (columns.size() > MOST_COLUMNS) {
      return new LineageKey(expressions(List.of(new LineageRow(false, expressions(columns)))));
    }
    columns.replaceAll(each -> isHashed(each.dataType()) ? each : new LineageRow(false, expressions(List.of(each))));
    return new LineageKey(expressions(columns));
  }

  private static boolean isHashed(DataType type) {
    return !(type instanceof UserDefinedType) && HASHED.contains(CodeGenerator.javaType(type));
  }

  /** A literal. */
  public Expression number(long value) {
    return new Literal(value, DataTypes.LongType);
  }

  // -- plans -------------------------------------------------------------------------------------------

  /** The plan of a subquery, which Spark takes to give the same each time. */
  public LogicalPlan steady(LogicalPlan plan) {
    return new DeterministicPlan(plan);
  }

  /** A plan over other children. */
  public LogicalPlan over(LogicalPlan plan, List<LogicalPlan> children) {
    Iterator<LogicalPlan> next = children.iterator();
    return plan.mapChildren(each -> next.next()); // whose signature all Scalas share
  }

  /** `columns`, and behind them `more`, of a plan. */
  public LogicalPlan project(Seq<?> columns, List<?> more, LogicalPlan child) {
    return ScalaLists.made(Project.class, joined(ScalaLists.asJava(columns), more), child);
  }

  /** The columns that `like` gives, and behind them `more`, of a plan. */
  public LogicalPlan projectAs(LogicalPlan like, List<?> more, LogicalPlan child) {
    return ScalaLists.made(Project.class, joined(output(like), more), child);
  }

  /** An Aggregate with more results, over another child. */
  public LogicalPlan aggregate(Aggregate aggregate, List<?> more, LogicalPlan child) {
    Object[] parts = parts(aggregate);
    parts[1] = joined(ScalaLists.asked(aggregate, "aggregateExpressions"), more);
    parts[2] = child;
    return ScalaLists.made(Aggregate.class, parts);
  }

  /** An Expand over another child, some columns of which each row that is made of a row has as they are. */
  public LogicalPlan expand(Expand expand, List<?> columns, List<?> output, LogicalPlan child) {
    List<Object> projections = new ArrayList<>();
    for (Seq<?> each : ScalaLists.<Seq<?>>asked(expand, "projections")) {
      projections.add(joined(ScalaLists.asJava(each), columns));
    }
    return ScalaLists.made(Expand.class, ScalaLists.of(projections), joined(output(expand), output), child);
  }

  /**
   * A Generate over another child. It names the columns that it drops by their places, and a place may be one that its
   * own child no longer has.
   */
  public LogicalPlan generate(Generate generate, LogicalPlan child) {
    List<Attribute> stock = output(generate.child());
    List<Attribute> output = output(child);
    Set<Object> dropped = new HashSet<>();
    for (Integer place : ScalaLists.<Integer>asked(generate, "unrequiredChildIndex")) {
      if (place < stock.size()) {
        dropped.add(stock.get(place).exprId().id());
      }
    }
    List<Integer> places = new ArrayList<>();
    for (int place = 0; place < output.size(); place++) {
      if (dropped.contains(output.get(place).exprId().id())) {
        places.add(place);
      }
    }
    Object[] parts = parts(generate);
    parts[1] = ScalaLists.of(places);
    parts[parts.length - 1] = child;
    return ScalaLists.made(Generate.class, parts);
  }

  /**
   * A repartition over a child with columns more, whose rows go where they would go without these: where Spark deals
   * rows out in turn, it sorts those of a task by all columns first, so that the order is the same if computed again.
   */
  public LogicalPlan repartition(LogicalPlan plan, List<Expression> more, LogicalPlan child) {
    int count = dealtTo(plan);
    if (count < 2 || more.isEmpty() || !plan.conf().sortBeforeRepartition()) {
      return over(plan, List.of(child));
    }
    List<Attribute> stock = output(((UnaryNode) plan).child());
    List<SortOrder> order = new ArrayList<>();
    order.add(ascending(new LineageRow(true, expressions(stock))));
    order.add(ascending(new LineageRow(false, expressions(stock))));
    more.forEach(each -> order.add(ascending(each)));
    Expression turn = alias(new LineageRoundRobin(count, expressions(List.of())), "lineage_turn");
    List<Object> columns = new ArrayList<>(stock);
    columns.addAll(more);
    LogicalPlan turns = project(ScalaLists.of(columns), List.of(turn), sorted(order, child));
    Object key = ((NamedExpression) turn).toAttribute();
    Object partitions = plan instanceof Repartition ? Option.apply(count) : parts((Product) plan)[2];
    LogicalPlan dealt = ScalaLists.made(
        RepartitionByExpression.class, ScalaLists.of(List.of(key)), turns, partitions, Option.empty());
    return project(ScalaLists.of(columns), List.of(), dealt);
  }

  /** Among how many partitions a repartition deals rows out in turn; 0 where it does not. */
  private static int dealtTo(LogicalPlan plan) {
    if (plan instanceof Repartition) {
      return ((Repartition) plan).shuffle() ? ((Repartition) plan).numPartitions() : 0;
    }
    boolean isByNothing = ScalaLists.asked(plan, "partitionExpressions").isEmpty();
    return isByNothing ? ((RepartitionByExpression) plan).numPartitions() : 0;
  }

  private static SortOrder ascending(Expression expression) {
    return ScalaLists.made(SortOrder.class, expression, Ascending$.MODULE$, NullsFirst$.MODULE$, NIL);
  }

  /** Within each partition. */
  private static LogicalPlan sorted(List<SortOrder> order, LogicalPlan child) {
    boolean hasHints = Sort.class.getConstructors()[0].getParameterCount() > 3; // from Spark 4.3 on
    return hasHints
        ? ScalaLists.made(Sort.class, ScalaLists.of(order), false, child, Option.empty())
        : ScalaLists.made(Sort.class, ScalaLists.of(order), false, child);
  }

  @SuppressWarnings("unchecked") // whose items nobody checks
  private static Seq<Expression> expressions(List<? extends Expression> items) {
    return (Seq<Expression>) (Seq<?>) ScalaLists.of(items);
  }

  /**
   * A query with a name over a child with columns more. Spark deals its rows out in turn when all rules are through, unless
   * it is said to be under a subquery: they are dealt out here.
   */
  public LogicalPlan definition(CTERelationDef stock, List<Expression> more, LogicalPlan child) {
    LogicalPlan own = stock.child();
    boolean isSpread = own instanceof RepartitionOperation || own instanceof RebalancePartitions;
    Object[] parts = parts(stock);
    parts[0] = child;
    if (!stock.underSubquery() && !isSpread) {
      LogicalPlan dealt = ScalaLists.made(RepartitionByExpression.class, NIL, own, Option.empty(), Option.empty());
      parts[0] = repartition(dealt, more, child);
    }
    parts[UNDER_SUBQUERY] = true;
    return ScalaLists.made(CTERelationDef.class, parts);
  }

  /** A CTERelationRef that gives more columns, and is as Spark made it in all else. */
  public LogicalPlan withOutput(CTERelationRef reference, List<?> more) {
    Object[] parts = parts(reference);
    parts[2] = joined(output(reference), more);
    return ScalaLists.made(CTERelationRef.class, parts);
  }

  /**
   * A scan with the column that says where each row is; null where Spark does not tell it. Of all that it may say, the
   * index of the row in its file is asked for, behind what the query asks for itself: it is made for each row.
   */
  public LogicalPlan withMetadata(LogicalRelation scan) {
    boolean isAskedFor = metadata(output(scan)) >= 0;
    List<Attribute> columns = output(((ExposesMetadataColumns) scan).withMetadataColumns());
    int at = metadata(columns);
    if (at < 0) {
      return null;
    }
    StructType asked = isAskedFor ? (StructType) columns.get(at).dataType() : new StructType();
    if (!List.of(asked.fieldNames()).contains(ROW_INDEX)) {
      StructType all = (StructType) relation(scan).fileFormat().createFileMetadataCol().dataType();
      columns.set(at, columns.get(at).withDataType(asked.add(all.apply(ROW_INDEX))));
    }
    Object[] parts = parts(scan);
    parts[1] = ScalaLists.of(columns);
    return ScalaLists.made(LogicalRelation.class, parts);
  }

  /** The index of a row in its file, of a scan with that column; null where the query asks for other parts of it. */
  public Expression rowIndex(LogicalPlan scan) {
    Attribute metadata = output(scan).get(metadata(output(scan)));
    int place = List.of(((StructType) metadata.dataType()).fieldNames()).indexOf(ROW_INDEX);
    return place < 0 ? null : new GetStructField(metadata, place, Option.empty());
  }

  private static int metadata(List<Attribute> columns) {
    for (int at = 0; at < columns.size(); at++) {
      if (columns.get(at).metadata().contains(METADATA)) { // a column of a file may have its name
        return at;
      }
    }
    return -1;
  }

  /** The columns that a command writes into files, not into names of folders. */
  public Seq<Object> dataColumns(LogicalPlan command) {
    Set<Object> folders = new HashSet<>();
    ScalaLists.<Attribute>asked(command, "partitionColumns").forEach(each -> folders.add(each.exprId().id()));
    List<Attribute> columns = ScalaLists.asked(command, "outputColumns");
    columns.removeIf(each -> folders.contains(each.exprId().id()));
    return ScalaLists.of(columns);
  }

  /** What a case class was made of. */
  private static Object[] parts(Product of) {
    Object[] parts = new Object[of.productArity()];
    for (int at = 0; at < parts.length; at++) {
      parts[at] = of.productElement(at);
    }
    return parts;
  }
}
