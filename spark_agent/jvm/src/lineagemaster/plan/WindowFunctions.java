package lineagemaster.plan;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.StringJoiner;
import lineagemaster.capture.FrameSpec;
import lineagemaster.delivery.Json;
import lineagemaster.expression.LineageFrame;
import lineagemaster.expression.LineageWindowRow;
import lineagemaster.expression.ScalaLists;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.CreateNamedStruct;
import org.apache.spark.sql.catalyst.expressions.CurrentRow$;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.FrameLessOffsetWindowFunction;
import org.apache.spark.sql.catalyst.expressions.If;
import org.apache.spark.sql.catalyst.expressions.IsNull;
import org.apache.spark.sql.catalyst.expressions.Lead;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NthValue;
import org.apache.spark.sql.catalyst.expressions.RowFrame$;
import org.apache.spark.sql.catalyst.expressions.SpecialFrameBoundary;
import org.apache.spark.sql.catalyst.expressions.SpecifiedWindowFrame;
import org.apache.spark.sql.catalyst.expressions.UnboundedFollowing$;
import org.apache.spark.sql.catalyst.expressions.UnboundedPreceding$;
import org.apache.spark.sql.catalyst.expressions.WindowExpression;
import org.apache.spark.sql.catalyst.expressions.WindowFrame;
import org.apache.spark.sql.catalyst.expressions.WindowSpecDefinition;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.Count;
import org.apache.spark.sql.catalyst.expressions.aggregate.First;
import org.apache.spark.sql.catalyst.expressions.aggregate.Last;
import org.apache.spark.sql.catalyst.expressions.aggregate.Max;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.types.DataTypes;
import scala.Product;
import scala.collection.Seq;

/**
 * The functions of a Window: which rows of its partition each one takes its value from, and the same functions over ids
 * instead of values. Spark evaluates these in the same pass, over the same rows in the same order.
 */
public final class WindowFunctions {
  private static final String PACKAGE = "org.apache.spark.sql.catalyst.expressions.";
  /** They compare a row with those around it, and take no value from these. */
  private static final Set<String> RANKS = Set.of(
      "RowNumber", "Rank", "DenseRank", "PercentRank", "CumeDist", "NTile");

  /** Which child of an offset function is what it gives where there is no row. */
  private static final int DEFAULT = 2;

  /**
   * The functions, in order: [{kind, name, unit, from, to, offset, ignores_nulls}, ...]. The kind is `rank`, `offset`
   * (one row, by its distance), `pick` (one row of a frame), `aggregate` (all rows of a frame), or `other`.
   */
  public String describe(LogicalPlan window) {
    StringJoiner json = new StringJoiner(",", "[", "]");
    expressions(window).forEach(expression -> json.add(described(expression)));
    return json.toString();
  }

  private static String described(Expression named) {
    if (!(named instanceof Alias) || !(((Alias) named).child() instanceof WindowExpression)) {
      return entry("other", named, null, null, false);
    }
    WindowExpression expression = (WindowExpression) ((Alias) named).child();
    WindowFrame frame = expression.windowSpec().frameSpecification();
    Expression function = expression.windowFunction();
    if (function instanceof AggregateExpression) {
      AggregateExpression aggregate = (AggregateExpression) function;
      Expression of = aggregate.aggregateFunction();
      boolean isPlain = !aggregate.isDistinct() && aggregate.filter().isEmpty();
      if (of instanceof First || of instanceof Last) {
        boolean ignoresNulls = of instanceof First ? ((First) of).ignoreNulls() : ((Last) of).ignoreNulls();
        return entry(isPlain ? "pick" : "other", of, frame, null, ignoresNulls);
      }
      return entry(isPlain && !kind(of).startsWith("Python") ? "aggregate" : "other", of, frame, null, false);
    }
    if (function instanceof FrameLessOffsetWindowFunction) {
      FrameLessOffsetWindowFunction of = (FrameLessOffsetWindowFunction) function;
      return entry(of.ignoreNulls() ? "pick" : "offset", of, frame, of.offset(), of.ignoreNulls());
    }
    if (function instanceof NthValue) {
      NthValue of = (NthValue) function;
      return entry("pick", of, frame, of.offset(), of.ignoreNulls());
    }
    return entry(isRank(function) ? "rank" : "other", function, frame, null, false);
  }

  private static boolean isRank(Expression function) {
    return function.getClass().getName().startsWith(PACKAGE) && RANKS.contains(kind(function));
  }

  private static String kind(Expression function) {
    return function.getClass().getSimpleName();
  }

  private static String entry(
      String kind, Expression function, WindowFrame frame, Expression offset, boolean ignoresNulls) {
    String unit = "null";
    String from = "null";
    String to = "null";
    if (frame instanceof SpecifiedWindowFrame) {
      SpecifiedWindowFrame of = (SpecifiedWindowFrame) frame;
      boolean isRows = of.frameType() == RowFrame$.MODULE$;
      unit = isRows ? "\"rows\"" : "\"range\"";
      from = bound(of.lower(), isRows);
      to = bound(of.upper(), isRows);
    }
    return "{\"kind\":" + Json.quoted(kind) + ",\"name\":" + Json.quoted(function.prettyName())
        + ",\"unit\":" + unit + ",\"from\":" + from + ",\"to\":" + to
        + ",\"offset\":" + (offset == null ? "null" : number(offset)) + ",\"ignores_nulls\":" + ignoresNulls + "}";
  }

  /** A number of rows, the text of another literal, 0 for the current row, or null. */
  private static String bound(Expression bound, boolean isRows) {
    if (bound == CurrentRow$.MODULE$) {
      return "0";
    }
    if (bound instanceof SpecialFrameBoundary) {
      return "null";
    }
    String number = isRows ? number(bound) : "null";
    return number.equals("null") ? Json.quoted(bound.sql()) : number;
  }

  private static String number(Expression expression) {
    Object value = expression.foldable() ? expression.eval(null) : null;
    return value instanceof Number ? value.toString() : "null";
  }

  /** The id of the row which stands so many rows behind each row, or before it; a null where there is none. */
  public Expression shifted(LogicalPlan window, int offset, Expression id) {
    Literal distance = new Literal(offset, DataTypes.IntegerType);
    Lead lead = new Lead(id, distance, new Literal(null, DataTypes.LongType), false);
    return over(window, lead, lead.frame());
  }

  /** The id of the row that a function of the window picks. */
  public Expression picked(LogicalPlan window, int index, Expression id) {
    WindowExpression expression = function(window, index);
    return new WindowExpression(over(expression.windowFunction(), id), expression.windowSpec());
  }

  /** A struct of ids, which is null where a function's input is. */
  public Expression unlessNull(LogicalPlan window, int index, List<Expression> ids) {
    List<Expression> fields = new ArrayList<>();
    for (Expression id : ids) {
      fields.add(Literal.create("id" + fields.size(), DataTypes.StringType));
      fields.add(id);
    }
    Expression struct = ScalaLists.construct(CreateNamedStruct.class, ScalaLists.of(fields));
    Expression input = input(function(window, index).windowFunction());
    return new If(new IsNull(input), new Literal(null, struct.dataType()), struct);
  }

  private static Expression input(Expression function) {
    Expression of = function instanceof AggregateExpression
        ? (Expression) (Object) ((AggregateExpression) function).aggregateFunction()
        : function;
    return ScalaLists.<Expression>get(of, "children").get(0);
  }

  /** A function of another input. What it gives where there is no row is null. */
  private static Expression over(Expression function, Expression input) {
    if (function instanceof AggregateExpression) {
      return function.mapChildren(of -> over(of, input));
    }
    int[] index = {0};
    return function.mapChildren(child -> {
      int at = index[0]++;
      boolean isDefault = at == DEFAULT && function instanceof FrameLessOffsetWindowFunction;
      return at == 0 ? input : isDefault ? new Literal(null, input.dataType()) : child;
    });
  }

  private static WindowExpression function(LogicalPlan window, int index) {
    return (WindowExpression) ((Alias) expressions(window).get(index)).child();
  }

  /**
   * What {@link LineageFrame} needs to know of each row, but for its key: the position of the last row of its partition,
   * and the columns of its frames. Of a frame that is a range, Spark
   * counts the rows in it and those up to its end, by the same comparisons as the window's own function.
   *
   * @param ids those of the rows that come in
   * @param functions of each frame, the function whose frame it is
   */
  public List<Expression> frameColumns(
      LogicalPlan window, FrameSpec spec, List<Expression> ids, List<Integer> functions) {
    SpecifiedWindowFrame all = frame(RowFrame$.MODULE$, UnboundedPreceding$.MODULE$, UnboundedFollowing$.MODULE$);
    LineageWindowRow row = new LineageWindowRow(spec, expressions(ids));
    List<Expression> columns = new ArrayList<>();
    columns.add(over(window, new Max(row).toAggregateExpression(), all));
    for (int i = 0; i < functions.size(); i++) {
      SpecifiedWindowFrame of =
          (SpecifiedWindowFrame) function(window, functions.get(i)).windowSpec().frameSpecification();
      if (spec.hasEndColumn(i)) {
        columns.add(over(window, count(), frame(of.frameType(), UnboundedPreceding$.MODULE$, of.upper())));
      }
      if (spec.hasSizeColumn(i)) {
        columns.add(over(window, count(), of));
      }
    }
    return columns;
  }

  private static SpecifiedWindowFrame frame(Object type, Object lower, Object upper) {
    return ScalaLists.construct(SpecifiedWindowFrame.class, type, lower, upper);
  }

  private static Expression count() {
    List<Expression> one = List.of(Literal.create(1, DataTypes.IntegerType));
    return ScalaLists.construct(Count.class, ScalaLists.of(one)).toAggregateExpression();
  }

  /** A function over a frame of the window's partitions in the window's order. */
  private static Expression over(LogicalPlan window, Expression function, WindowFrame frame) {
    WindowSpecDefinition spec = function(window, 0).windowSpec();
    return new WindowExpression(function, ScalaLists.construct(
        WindowSpecDefinition.class,
        ScalaLists.of(ScalaLists.get(spec, "partitionSpec")),
        ScalaLists.of(ScalaLists.get(spec, "orderSpec")),
        frame));
  }

  @SuppressWarnings("unchecked") // items are not checked
  private static Seq<Expression> expressions(List<Expression> items) {
    return (Seq<Expression>) (Seq<?>) ScalaLists.of(items);
  }

  /** A condition over the columns of frames and their key, in their order. */
  public Expression frameTap(FrameSpec spec, List<Expression> columns) {
    return new LineageFrame(spec, expressions(columns));
  }

  /** A Window with more functions, over another child. */
  public LogicalPlan window(LogicalPlan window, List<?> more, LogicalPlan child) {
    Product product = (Product) window;
    Object[] fields = new Object[product.productArity()];
    for (int i = 0; i < fields.length; i++) {
      Object field = product.productElement(i);
      fields[i] = field instanceof LogicalPlan ? child : field;
    }
    List<Object> functions = new ArrayList<>(expressions(window));
    functions.addAll(more);
    fields[0] = ScalaLists.of(functions);
    return ScalaLists.construct(window.getClass(), fields);
  }

  private static List<Expression> expressions(LogicalPlan window) {
    return ScalaLists.get(window, "windowExpressions");
  }
}
