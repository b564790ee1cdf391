package lineagemaster.plan;

import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.StringJoiner;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import lineagemaster.delivery.Json;
import lineagemaster.expression.ScalaLists;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.execution.datasources.jdbc.JDBCOptions;
import org.apache.spark.sql.jdbc.JdbcDialects;

/**
 * The primary keys of the tables of databases. Asks a database by a connection of its own, as Spark makes its own
 * ones, within bounded time. No text of an error of the database is repeated, since it may quote what is secret.
 */
public final class TableKeys {
  /** A part of the name of a table: between quotes, or as SQL writes names. */
  private static final Pattern PART =
      Pattern.compile("\\s*(?:\"((?:[^\"]|\"\")+)\"|`([^`]+)`|\\[([^\\]]+)\\]|([\\p{L}_][\\p{L}\\w$#]*))\\s*(\\.|$)");

  /** The columns of a table's primary key: {"columns": [name, ...]}, or {"reason": why they are not known}. */
  public String of(JDBCOptions options, long withinMs) {
    FutureTask<String> answer = new FutureTask<>(() -> ask(options));
    Thread thread = new Thread(answer, "lineage-asks-database");
    thread.setDaemon(true);
    thread.setContextClassLoader(Thread.currentThread().getContextClassLoader()); // which has the driver
    thread.start();
    try {
      return answer.get(withinMs, TimeUnit.MILLISECONDS);
    } catch (TimeoutException late) {
      thread.interrupt();
      return reason("the database did not say within " + withinMs / 1000 + " s what its primary key is");
    } catch (ExecutionException error) {
      String kind = error.getCause().getClass().getSimpleName();
      return reason("the database could not be asked for its primary key (" + kind + ")");
    } catch (InterruptedException interrupt) {
      Thread.currentThread().interrupt(); // the user's, who hears of it in Spark
      return reason("the query was cancelled");
    }
  }

  private static String reason(String text) {
    return "{\"reason\":" + Json.quoted(text) + "}";
  }

  private static String ask(JDBCOptions options) throws SQLException {
    Connection connection = JdbcDialects.get(options.url()).createConnectionFactory(options).apply(-1);
    try {
      return primaryKey(connection, options.tableOrQuery());
    } finally {
      connection.close();
    }
  }

  private static String primaryKey(Connection connection, String table) throws SQLException {
    DatabaseMetaData metaData = connection.getMetaData();
    List<String> name = parts(table, metaData);
    if (name.isEmpty() || name.size() > 3) {
      return reason("its name is none of a table");
    }
    boolean isOfCatalog = name.size() == 2 && !metaData.supportsSchemasInTableDefinitions();
    String catalog = name.size() == 3 || isOfCatalog ? name.get(0) : connection.getCatalog();
    String schema = isOfCatalog || name.size() == 1 ? connection.getSchema() : name.get(name.size() - 2);
    TreeMap<Integer, String> columns = new TreeMap<>();
    Set<String> tables = new HashSet<>();
    try (ResultSet rows = metaData.getPrimaryKeys(catalog, schema, name.get(name.size() - 1))) {
      while (rows.next()) {
        tables.add(rows.getString("TABLE_CAT") + "." + rows.getString("TABLE_SCHEM"));
        columns.put((int) rows.getShort("KEY_SEQ"), rows.getString("COLUMN_NAME"));
      }
    }
    if (columns.isEmpty()) {
      return reason("it is a table without a primary key, or a view");
    }
    if (tables.size() > 1) {
      return reason("several schemas have a table of that name");
    }
    StringJoiner json = new StringJoiner(",", "{\"columns\":[", "]}");
    columns.values().forEach(column -> json.add(Json.quoted(column)));
    return json.toString();
  }

  /** The parts of a name as the database stores them; none where it is no name. */
  private static List<String> parts(String table, DatabaseMetaData metaData) throws SQLException {
    List<String> parts = new ArrayList<>();
    Matcher matcher = PART.matcher(table);
    int end = 0;
    while (end < table.length()) {
      if (!matcher.find(end) || matcher.start() != end || (matcher.group(5).isEmpty() != (matcher.end() == table.length()))) {
        return List.of();
      }
      end = matcher.end();
      if (matcher.group(1) != null) {
        parts.add(matcher.group(1).replace("\"\"", "\""));
      } else if (matcher.group(4) != null) {
        parts.add(stored(matcher.group(4), metaData));
      } else {
        parts.add(matcher.group(2) != null ? matcher.group(2) : matcher.group(3));
      }
    }
    return parts;
  }

  private static String stored(String name, DatabaseMetaData metaData) throws SQLException {
    if (metaData.storesUpperCaseIdentifiers()) {
      return name.toUpperCase(Locale.ROOT);
    }
    return metaData.storesLowerCaseIdentifiers() ? name.toLowerCase(Locale.ROOT) : name;
  }

  /**
   * Does a query read these columns of one of its scans? What it does not read is not asked of the database, which may
   * refuse it.
   */
  public boolean areRead(LogicalPlan query, List<Attribute> columns) {
    Set<Long> read = new HashSet<>();
    PlanReader.output(query).forEach(column -> read.add(column.exprId().id()));
    addRead(query, read);
    return columns.stream().allMatch(column -> read.contains(column.exprId().id()));
  }

  private static void addRead(LogicalPlan plan, Set<Long> read) {
    scala.collection.Iterator<Attribute> references = plan.references().iterator();
    while (references.hasNext()) {
      read.add(references.next().exprId().id());
    }
    for (LogicalPlan child : ScalaLists.<LogicalPlan>get(plan, "children")) {
      if (plan instanceof Union) { // which takes columns by their places
        PlanReader.output(child).forEach(column -> read.add(column.exprId().id()));
      }
      addRead(child, read);
    }
  }
}
