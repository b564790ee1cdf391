package lineagemaster.plan;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Predicate;
import lineagemaster.expression.ScalaLists;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Unevaluable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.types.DataTypes;
import scala.Product;
import scala.collection.Seq;

/**
 * The MergeRows of a MERGE: its instructions say what becomes of a row of the table, of the source, or of both. One that
 * keeps a row says first why, from Spark 4.1 on. One that splits a row makes two: what is deleted, and what is written
 * in its place. One that discards a row leaves it out.
 */
public final class MergeInstructions {
  /** The lists of instructions among the fields of a MergeRows: of pairs, of the source alone, of the table alone. */
  private static final int OF_PAIRS = 2;
  private static final int OF_SOURCE = 3;
  private static final int OF_TABLE = 4;
  private static final int OUTPUT = OF_TABLE + 2;
  private static final int CHILD = OF_TABLE + 3;

  private static final String CLASSES = "org.apache.spark.sql.catalyst.plans.logical.MergeRows$";
  private static final String OPERATION = "__row_operation";
  private static final Integer DELETION = 1;

  /**
   * A MergeRows over another child, whose `ids` each of its rows has, as its `output`. A row that is only copied has
   * `idsOfCopies` in their place.
   */
  public LogicalPlan withIds(LogicalPlan plan, List<?> ids, List<?> idsOfCopies, List<?> output, LogicalPlan child) {
    return rebuilt(plan, output, child,
        (instruction, list) -> extended(instruction, isKept(instruction, "Copy") ? idsOfCopies : ids, null, null));
  }

  /**
   * The same, and each row says behind its ids what is done with it, by the numbers of {@link RowOperations}. Rows that
   * are discarded come, too: whoever is above has to leave them out. Only of one whose operations `areKnown`.
   */
  public LogicalPlan withOperations(
      LogicalPlan plan, List<?> ids, List<?> idsOfCopies, List<?> output, LogicalPlan child) {
    int operation = operationColumn(plan);
    return rebuilt(plan, output, child, (instruction, list) -> {
      if (isDiscarding(instruction)) {
        return list == OF_SOURCE ? instruction : kept(instruction, plan, ids);
      }
      if (isKept(instruction, "Copy")) {
        return extended(instruction, idsOfCopies, RowOperations.COPY, null);
      }
      long kept = isKept(instruction, "Insert") ? RowOperations.INSERT
          : isKept(instruction, "Delete") ? RowOperations.DELETE : RowOperations.UPDATE;
      return extended(instruction, ids, kept, row -> isDeletion(row, operation) ? RowOperations.NONE : kept);
    });
  }

  /** Is it known what each instruction does? */
  public boolean areKnown(LogicalPlan plan) {
    return operationColumn(plan) >= 0 && all(plan, instruction -> isDiscarding(instruction) || isSplit(instruction)
        || List.of("Copy", "Insert", "Update", "Delete").stream().anyMatch(why -> isKept(instruction, why)));
  }

  /** May it delete rows? */
  public boolean mayDelete(LogicalPlan plan) {
    return !all(plan, instruction -> !isDiscarding(instruction) && !isKept(instruction, "Delete"));
  }

  /** Can a condition of a statement be evaluated again, over the rows of its plan, and is it the same each time? */
  public boolean isPlain(Expression condition) {
    return condition.deterministic() && isEvaluable(condition);
  }

  private static boolean isEvaluable(Expression expression) {
    boolean isAttribute = expression instanceof Attribute;
    return (isAttribute || !(expression instanceof Unevaluable))
        && !expression.getClass().getSimpleName().endsWith("Subquery")
        && ScalaLists.<Expression>get(expression, "children").stream().allMatch(MergeInstructions::isEvaluable);
  }

  private interface Change {
    Object of(Product instruction, int list);
  }

  private static LogicalPlan rebuilt(LogicalPlan plan, List<?> output, LogicalPlan child, Change change) {
    Object[] fields = PlanBuilder.fields((Product) plan);
    for (int list = OF_PAIRS; list <= OF_TABLE; list++) {
      List<Object> instructions = new ArrayList<>();
      for (Object instruction : ScalaLists.asJava((Seq<?>) fields[list])) {
        instructions.add(change.of((Product) instruction, list));
      }
      fields[list] = ScalaLists.of(instructions);
    }
    fields[OUTPUT] = PlanBuilder.joined(ScalaLists.of(PlanReader.output(plan)), output);
    fields[CHILD] = child;
    return ScalaLists.construct(plan.getClass(), fields);
  }

  private interface Numbers {
    long of(Seq<?> row);
  }

  /** An instruction whose rows have `ids` more, and a number, where there are numbers. */
  private static Object extended(Product instruction, List<?> ids, Long number, Numbers numbers) {
    Object[] parts = PlanBuilder.fields(instruction);
    for (int i = 0; i < parts.length; i++) {
      if (parts[i] instanceof Seq) {
        List<Object> more = new ArrayList<>(ids);
        if (number != null) {
          more.add(literal(numbers == null || !isSplit(instruction) ? number : numbers.of((Seq<?>) parts[i])));
        }
        parts[i] = PlanBuilder.joined((Seq<?>) parts[i], more);
      }
    }
    return ScalaLists.construct(instruction.getClass(), parts);
  }

  /** In the place of one that discards rows: it keeps them, as those that are deleted. Spark counts both alike. */
  private static Object kept(Product instruction, LogicalPlan plan, List<?> ids) {
    List<Object> row = new ArrayList<>();
    for (Attribute column : PlanReader.output(plan)) {
      row.add(new Literal(null, column.dataType()));
    }
    row.addAll(ids);
    row.add(literal(RowOperations.DELETE));
    try {
      ClassLoader loader = instruction.getClass().getClassLoader();
      Object why = Class.forName(CLASSES + "Delete$", true, loader).getField("MODULE$").get(null);
      Class<?> keep = Class.forName(CLASSES + "Keep", true, loader);
      return ScalaLists.construct(keep, why, instruction.productElement(0), ScalaLists.of(row));
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException(error);
    }
  }

  private static boolean all(LogicalPlan plan, Predicate<Product> condition) {
    for (int list = OF_PAIRS; list <= OF_TABLE; list++) {
      for (Object instruction : ScalaLists.asJava((Seq<?>) ((Product) plan).productElement(list))) {
        if (!condition.test((Product) instruction)) {
          return false;
        }
      }
    }
    return true;
  }

  private static boolean isDiscarding(Product instruction) {
    return instruction.getClass().getSimpleName().equals("Discard");
  }

  private static boolean isSplit(Product instruction) {
    return instruction.getClass().getSimpleName().equals("Split");
  }

  private static boolean isKept(Product instruction, String why) {
    return String.valueOf(instruction.productElement(0)).equals(why);
  }

  /** Which column of its rows says whether a row only names another one that is deleted; -1: none. */
  private static int operationColumn(LogicalPlan plan) {
    List<Attribute> columns = PlanReader.output(plan);
    for (int i = 0; i < columns.size(); i++) {
      if (columns.get(i).name().equals(OPERATION)) {
        return i;
      }
    }
    return -1;
  }

  private static boolean isDeletion(Seq<?> row, int operation) {
    Object value = ScalaLists.asJava(row).get(operation);
    return value instanceof Literal && DELETION.equals(((Literal) value).value());
  }

  private static Literal literal(long number) {
    return new Literal(number, DataTypes.LongType);
  }
}
