package lineagemaster.guard;

import java.util.List;
import java.util.Set;
import lineagemaster.expression.ScalaLists;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/**
 * Which commands a replay runs: those that only look, that are of the session alone, or that write into a folder, where
 * the guarded file systems judge. Whatever is not listed is refused: it may change a catalogue or a foreign store.
 */
final class Commands {
  private static final Set<String> LOOKING_OR_LOCAL = Set.of(
      "AddArchivesCommand", "AddFilesCommand", "AddJarsCommand", "CacheTable", "CacheTableAsSelect",
      "CacheTableCommand",
      "ClearCacheCommand", "ClearCacheCommand$", "CommandResult", "CreateTempViewUsing", "CreateVariable",
      "DropTempViewCommand", "DropVariable", "ExplainCommand", "InsertIntoDataSourceDirCommand",
      "InsertIntoHiveDirCommand", "ListArchivesCommand", "ListFilesCommand", "ListJarsCommand", "RefreshFunction",
      "RefreshFunctionCommand", "RefreshResource", "RefreshTable", "RefreshTableCommand", "ResetCommand",
      "SetCatalogAndNamespace", "SetCatalogCommand", "SetCommand", "SetNamespaceCommand", "SetVariable", "UncacheTable",
      "UncacheTableCommand");
  private static final List<String> LOOKING = List.of("Show", "Describe", "GetColumn", "GetTable");
  private static final Set<String> INTO_FILES = Set.of("InsertIntoHadoopFsRelationCommand");
  private static final Set<String> INTO_TABLES = Set.of(
      "AppendData", "OverwriteByExpression", "OverwritePartitionsDynamic");
  private static final Set<String> OF_FUNCTIONS = Set.of("CreateFunctionCommand", "DropFunctionCommand");
  private static final Set<String> REFLECTION = Set.of("CallMethodViaReflection", "TryReflect", "TryInvoke");
  private static final Set<String> HARMLESS_CLASSES = Set.of("java.util.UUID", "java.lang.Math", "java.lang.String",
      "java.lang.Integer", "java.lang.Long", "java.lang.Double");

  private Commands() {}

  /**
   * Throws CommandRefused for an analysed plan with an expression that calls any method of Java. Spark's optimiser may
   * evaluate expressions, so this is judged before it.
   */
  static void judgeExpressions(LogicalPlan plan) {
    for (Expression expression : ScalaLists.<Expression>get(plan, "expressions")) {
      judge(expression);
    }
    for (LogicalPlan child : ScalaLists.<LogicalPlan>get(plan, "children")) {
      judgeExpressions(child);
    }
  }

  /** Throws CommandRefused for a plan that is not to run, or has a part that is not. */
  static void judge(LogicalPlan plan) {
    if (plan instanceof Command && !isAllowed(plan)) {
      throw new CommandRefused("run the command", name(plan));
    }
    if (plan.getClass().getSimpleName().equals("ScriptTransformation")) {
      throw new CommandRefused("start the process", String.valueOf(of(plan, "script")));
    }
    for (LogicalPlan child : ScalaLists.<LogicalPlan>get(plan, "children")) {
      judge(child);
    }
  }

  private static void judge(Expression expression) {
    if (REFLECTION.contains(expression.getClass().getSimpleName())) {
      String text = expression.toString();
      if (HARMLESS_CLASSES.stream().noneMatch(text::contains)) {
        throw new CommandRefused("call Java from SQL", text);
      }
    }
    for (Expression child : ScalaLists.<Expression>get(expression, "children")) {
      judge(child);
    }
  }

  private static boolean isAllowed(LogicalPlan plan) {
    String name = plan.getClass().getSimpleName();
    if (LOOKING_OR_LOCAL.contains(name) || LOOKING.stream().anyMatch(name::startsWith)) {
      return true;
    }
    if (INTO_FILES.contains(name)) {
      return String.valueOf(of(plan, "catalogTable")).equals("None");
    }
    if (INTO_TABLES.contains(name)) {
      return className(of(of(plan, "table"), "table")).startsWith("NoopTable");
    }
    if (OF_FUNCTIONS.contains(name)) {
      return Boolean.TRUE.equals(of(plan, "isTemp"));
    }
    return name.equals("CreateViewCommand") && !className(of(plan, "viewType")).startsWith("PersistedView");
  }

  /** The command with what it names, without its query. */
  private static String name(LogicalPlan plan) {
    String line = plan.simpleString(100);
    return line.length() > 200 ? line.substring(0, 200) + "..." : line;
  }

  private static String className(Object value) {
    return value == null ? "" : value.getClass().getSimpleName();
  }

  /** What a method without parameters returns; null where there is none. */
  private static Object of(Object target, String method) {
    try {
      return target == null ? null : target.getClass().getMethod(method).invoke(target);
    } catch (ReflectiveOperationException other) {
      return null; // then it is refused
    }
  }
}
