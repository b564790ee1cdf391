package lineagemaster.plan;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.StringJoiner;
import java.util.function.Function;
import java.util.stream.Stream;
import lineagemaster.delivery.Json;
import lineagemaster.expression.ScalaLists;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.HiveTableRelation;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.SessionWindow;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.RepartitionOperation;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.Tuple2;
import scala.collection.Seq;

/**
 * What the rewriting asks of plans, each in one call: a round trip from Python costs more than most answers, and for
 * each object that comes back there is another round trip when it is released. Several texts come as JSON. Its methods
 * are not static, since py4j looks static ones up at each call.
 */
public final class PlanReader {
  /** So many columns of an operator are in its text. */
  private static final int MAX_FIELDS = 25;
  /** So many of the paths that a scan reads are listed. */
  private static final int MAX_ROOTS = 3;
  /** Characters that py4j sends at once, even if some have several bytes. */
  private static final int PIECE = 4_000;

  /** The name of its class, without the package. */
  public String kind(Object part) {
    return part.getClass().getSimpleName();
  }

  /** Is it a command, not a query? */
  public boolean isStatement(LogicalPlan plan) {
    return plan instanceof Command;
  }

  /** The kinds of all leaves: [kind, ...]. */
  public String leafKinds(LogicalPlan plan) {
    return texts(ScalaLists.get(plan, "collectLeaves"), this::kind);
  }

  /**
   * An operator: {kind, name, text: as Spark shows it, call_sites, has_subqueries, is_deterministic, files, table: in
   * Spark's catalog, with its database, or null, expressions}.
   */
  public String describe(LogicalPlan plan) {
    String described = "{\"kind\":" + Json.quoted(kind(plan))
        + ",\"name\":" + Json.quoted(plan.nodeName())
        + ",\"text\":" + Json.quoted(plan.simpleString(MAX_FIELDS))
        + ",\"call_sites\":" + texts(CallSites.of(plan), Function.identity())
        + ",\"has_subqueries\":" + !ScalaLists.get(plan, "subqueries").isEmpty()
        + ",\"is_deterministic\":" + plan.deterministic()
        + ",\"files\":" + files(relation(plan))
        + ",\"table\":" + table(plan);
    String expressions = OperatorExpressions.json(plan);
    boolean isLong = described.length() + expressions.length() > PIECE;
    return described + ",\"expressions\":" + (isLong ? "null" : expressions) + "}";
  }

  private static String table(LogicalPlan plan) {
    CatalogTable table = null;
    if (plan instanceof LogicalRelation) {
      Option<CatalogTable> catalogTable = ((LogicalRelation) plan).catalogTable();
      table = catalogTable.isDefined() ? catalogTable.get() : null;
    } else if (plan instanceof HiveTableRelation) {
      table = ((HiveTableRelation) plan).tableMeta();
    }
    return table == null || table.identifier().database().isEmpty()
        ? null
        : Json.quoted(table.identifier().database().get() + "." + table.identifier().table());
  }

  /** The columns of what a scan reads, or that another plan gives: Spark's JSON of a struct, see {@link #inPieces}. */
  public Object schema(LogicalPlan plan) {
    if (plan instanceof LogicalRelation) {
      return schema(List.of(((LogicalRelation) plan).relation().schema().fields()));
    }
    return schemaOf(output(plan));
  }

  /** The same of columns. */
  public Object schema(Seq<Attribute> columns) {
    return schemaOf(ScalaLists.asJava(columns));
  }

  private static Object schemaOf(List<Attribute> columns) {
    List<StructField> fields = new ArrayList<>();
    for (Attribute column : columns) {
      fields.add(new StructField(column.name(), column.dataType(), column.nullable(), column.metadata()));
    }
    return schema(fields);
  }

  private static Object schema(List<StructField> fields) {
    List<StructField> kept = new ArrayList<>();
    for (StructField field : fields) {
      if (!field.metadata().contains(RowIndexes.METADATA)) {
        kept.add(new StructField(field.name(), field.dataType(), field.nullable(), Metadata.empty()));
      }
    }
    return inPieces(new StructType(kept.toArray(new StructField[0])).json());
  }

  /**
   * A text, or a list of its pieces where it is long: what py4j sends in more than one write comes 40 ms later, since
   * the system waits for the other side to acknowledge the first.
   */
  static Object inPieces(String text) {
    if (text.length() <= PIECE) {
      return text;
    }
    List<String> pieces = new ArrayList<>();
    for (int start = 0; start < text.length(); start += PIECE) {
      pieces.add(text.substring(start, Math.min(start + PIECE, text.length())));
    }
    return pieces;
  }

  /** What asking a query again will need. */
  public RememberedQuery remembered(LogicalPlan query) {
    return new RememberedQuery(query);
  }

  /** The names of expressions' types: [name, ...]. */
  public String typeNames(Seq<Expression> expressions) {
    return texts(ScalaLists.asJava(expressions), expression -> expression.dataType().catalogString());
  }

  /** The names of columns: [name, ...]. */
  public String columnNames(Seq<NamedExpression> columns) {
    return texts(ScalaLists.asJava(columns), NamedExpression::name);
  }

  /** The names of the columns that an expression reads: [name, ...]. */
  public String referenceNames(Expression expression) {
    List<Attribute> references = new ArrayList<>();
    scala.collection.Iterator<Attribute> iterator = expression.references().iterator();
    while (iterator.hasNext()) {
      references.add(iterator.next());
    }
    return texts(references, NamedExpression::name);
  }

  /** The ids of a plan's columns, which those of other plans do not have: [id, ...]. */
  public String columnIds(LogicalPlan plan) {
    List<Long> ids = new ArrayList<>();
    output(plan).forEach(column -> ids.add(column.exprId().id()));
    return ids.toString();
  }

  /** The columns that are texts; null where others may hold the end of a line, too. */
  public List<Expression> textColumns(Seq<Expression> columns) {
    List<Expression> texts = new ArrayList<>();
    for (Expression column : ScalaLists.asJava(columns)) {
      String type = column.dataType().catalogString().toLowerCase(Locale.ROOT);
      if (Stream.of("string", "char", "varchar").anyMatch(type::startsWith)) {
        texts.add(column);
      } else if (Stream.of("string", "char", "binary", "variant").anyMatch(type::contains)) {
        return null;
      }
    }
    return texts;
  }

  /** The columns that a command writes into files, not into names of folders. */
  public Seq<Object> dataColumns(LogicalPlan command) {
    Set<Object> folderIds = new HashSet<>();
    ScalaLists.<Attribute>get(command, "partitionColumns").forEach(column -> folderIds.add(column.exprId().id()));
    List<Attribute> columns = ScalaLists.get(command, "outputColumns");
    columns.removeIf(column -> folderIds.contains(column.exprId().id()));
    return ScalaLists.of(columns);
  }

  /**
   * May a plan that stands in a query twice give other rows the second time? Spark shuffles by a repartition, and uses
   * the shuffled rows again where the plan stands once more.
   */
  public boolean mayDiffer(LogicalPlan plan) {
    if (plan.deterministic() || isShuffle(plan) && plan.conf().exchangeReuseEnabled()) {
      return false;
    }
    return ScalaLists.<Expression>get(plan, "expressions").stream().anyMatch(part -> !part.deterministic())
        || ScalaLists.<LogicalPlan>get(plan, "children").stream().anyMatch(this::mayDiffer);
  }

  private static boolean isShuffle(LogicalPlan plan) {
    return plan instanceof RepartitionOperation && ((RepartitionOperation) plan).shuffle();
  }

  /** The expressions that are no session windows: a session of a row grows with the rows that it is merged with. */
  public Seq<Object> withoutSessions(Seq<Expression> grouping) {
    List<Expression> others = ScalaLists.asJava(grouping);
    others.removeIf(expression -> expression instanceof NamedExpression
        && ((NamedExpression) expression).metadata().contains(SessionWindow.marker()));
    return ScalaLists.of(others);
  }

  /** A Scala Map of texts: {name: value, ...}. */
  public String options(scala.collection.Map<String, String> options) {
    StringJoiner json = new StringJoiner(",", "{", "}");
    scala.collection.Iterator<Tuple2<String, String>> iterator = options.iterator();
    while (iterator.hasNext()) {
      Tuple2<String, String> option = iterator.next();
      json.add(Json.quoted(option._1()) + ":" + Json.quoted(String.valueOf(option._2())));
    }
    return json.toString();
  }

  /**
   * What a scan of files reads: {format: the kind of its format, roots: the first paths, count: of all paths, options,
   * is_bucketed, folders: the columns that are names of folders, index: the kind of what lists its files, version: of
   * the table of Delta Lake that has them, else null}.
   */
  private String files(HadoopFsRelation relation) {
    if (relation == null) {
      return "null";
    }
    List<Object> roots = ScalaLists.get(relation.location(), "rootPaths");
    return "{\"format\":" + Json.quoted(kind(relation.fileFormat()))
        + ",\"roots\":" + texts(roots.subList(0, Math.min(roots.size(), MAX_ROOTS)), Object::toString)
        + ",\"count\":" + roots.size()
        + ",\"options\":" + options(relation.options())
        + ",\"index\":" + Json.quoted(kind(relation.location()))
        + ",\"version\":" + version(relation)
        + ",\"is_bucketed\":" + relation.bucketSpec().isDefined()
        + ",\"folders\":" + texts(List.of(relation.partitionSchema().fieldNames()), Function.identity())
        + "}";
  }

  private String version(HadoopFsRelation relation) {
    if (!isOfDelta(relation) || kind(relation.location()).equals("TahoeLogFileIndex")) {
      return "null"; // the latter reads whatever is the newest when it lists its files
    }
    try {
      return Json.quoted(call(relation.location(), "version").toString());
    } catch (IllegalStateException error) {
      return "null"; // what lists them is of no version
    }
  }

  /** Do two plans with the same leaves read the same files? Spark itself only compares their folders. */
  public boolean readSameFiles(LogicalPlan plan, LogicalPlan other) {
    List<LogicalPlan> leaves = ScalaLists.get(plan, "collectLeaves");
    List<LogicalPlan> otherLeaves = ScalaLists.get(other, "collectLeaves");
    boolean areSame = leaves.size() == otherLeaves.size();
    for (int i = 0; areSame && i < leaves.size(); i++) {
      areSame = readsSameFiles(relation(leaves.get(i)), relation(otherLeaves.get(i)));
    }
    return areSame;
  }

  private static boolean readsSameFiles(HadoopFsRelation relation, HadoopFsRelation other) {
    return relation == null || other == null
        || relation.sizeInBytes() == other.sizeInBytes()
            && Arrays.equals(relation.location().inputFiles(), other.location().inputFiles());
  }

  private static boolean isOfDelta(HadoopFsRelation relation) {
    return relation.fileFormat().getClass().getSimpleName().equals("DeltaParquetFileFormat");
  }

  /** Of a scan of files; null of other plans, and of a subclass but Delta Lake's, which may read in another way. */
  static HadoopFsRelation relation(LogicalPlan leaf) {
    if (leaf.getClass() != LogicalRelation.class) {
      return null;
    }
    Object relation = ((LogicalRelation) leaf).relation();
    if (!(relation instanceof HadoopFsRelation)) {
      return null;
    }
    HadoopFsRelation files = (HadoopFsRelation) relation;
    return files.getClass() == HadoopFsRelation.class || isOfDelta(files) ? files : null;
  }

  /** What a method without parameters returns that is not there in each version, or of each object. */
  static Object call(Object target, String method) {
    try {
      return target.getClass().getMethod(method).invoke(target);
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException(error);
    }
  }

  static List<Attribute> output(LogicalPlan plan) {
    return ScalaLists.get(plan, "output");
  }

  private static <T> String texts(List<T> items, Function<T, String> text) {
    StringJoiner json = new StringJoiner(",", "[", "]");
    items.forEach(item -> json.add(Json.quoted(text.apply(item))));
    return json.toString();
  }
}
