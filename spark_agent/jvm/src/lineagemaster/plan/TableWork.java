package lineagemaster.plan;

import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import lineagemaster.delivery.Json;
import lineagemaster.expression.ScalaLists;
import scala.Option;

/**
 * What a library of tables (Delta Lake, Iceberg) does while it has a plan made: most of these plans read its own log.
 * Known by the stack of the planner, and of a transaction of Delta Lake by the library itself.
 */
final class TableWork {
  private static final List<String> LIBRARIES = List.of("org.apache.spark.sql.delta.", "org.apache.iceberg.");
  private static final String TRANSACTION = "org.apache.spark.sql.delta.OptimisticTransaction";

  private String method; // of the library that runs now
  private Class<?> library;
  private final Set<String> classes = new LinkedHashSet<>();

  /** Frames come from the newest on. */
  void look(StackWalker.StackFrame frame) {
    String name = frame.getClassName();
    if (LIBRARIES.stream().noneMatch(name::startsWith)) {
      return;
    }
    if (method == null) {
      method = frame.getMethodName();
      library = frame.getDeclaringClass();
    }
    String simple = name.substring(name.lastIndexOf('.') + 1);
    classes.add(simple.indexOf('$') < 0 ? simple : simple.substring(0, simple.indexOf('$')));
  }

  /**
   * {method, classes: [the newest first], transaction, table, version, partitions, names_in_log, catalog}; empty where no
   * library has the plan made. What is behind the classes is of an open transaction of Delta Lake: its id, its table's
   * folder, the version that it reads, the columns that the table is partitioned by, what its log calls these, and the
   * name of the table, if it is in a catalog.
   */
  String json() {
    if (method == null) {
      return "";
    }
    return "{\"method\":" + Json.quoted(method) + ",\"classes\":" + texts(List.copyOf(classes)) + transaction() + "}";
  }

  private String transaction() {
    try {
      Class<?> transactions = Class.forName(TRANSACTION, false, library.getClassLoader());
      Option<?> active = (Option<?>) transactions.getMethod("getActive").invoke(null);
      if (active.isEmpty()) {
        return "";
      }
      Object transaction = active.get();
      return ",\"transaction\":" + Json.quoted(asked(transaction, "txnId"))
          + ",\"table\":" + Json.quoted(asked(call(transaction, "deltaLog"), "dataPath"))
          + ",\"version\":" + asked(transaction, "readVersion")
          + partitions(call(transaction, "metadata"))
          + ",\"catalog\":" + texts(catalogNames((Option<?>) call(transaction, "catalogTable")));
    } catch (ReflectiveOperationException | LinkageError other) {
      return ""; // another library, or a version of Delta Lake that has no such thing
    }
  }

  private static String partitions(Object metadata) throws ReflectiveOperationException {
    return ",\"partitions\":" + texts(ScalaLists.get(metadata, "partitionColumns"))
        + ",\"names_in_log\":" + texts(ScalaLists.get(metadata, "physicalPartitionColumns"));
  }

  /** The name of a table of a catalog, in one text; none of a table that is only a folder. */
  private static List<String> catalogNames(Option<?> table) throws ReflectiveOperationException {
    return table.isEmpty() ? List.of() : List.of(asked(call(table.get(), "identifier"), "unquotedString"));
  }

  private static String texts(List<?> items) {
    return items.stream().map(item -> Json.quoted(String.valueOf(item))).collect(Collectors.joining(",", "[", "]"));
  }

  private static String asked(Object of, String name) throws ReflectiveOperationException {
    return String.valueOf(call(of, name));
  }

  private static Object call(Object of, String name) throws ReflectiveOperationException {
    return of.getClass().getMethod(name).invoke(of);
  }
}
