package lineagemaster.plan;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import scala.runtime.BoxedUnit;

/**
 * Checks whether a rewritten plan can run. Behind its optimiser Spark checks nothing: a mistake would show in the code
 * that it generates, as an error of the user's query.
 */
public final class PlanCheck {
  private PlanCheck() {}

  /** What is wrong with `after`, which is to replace `before`; empty where nothing is. */
  public static String problem(LogicalPlan before, LogicalPlan after) {
    if (!after.resolved()) {
      return "it is not resolved";
    }
    if (!before.sameOutput(after)) {
      return "its columns are not those of the query";
    }
    return missing(before).isEmpty() ? missing(after) : ""; // else Spark itself has such operators in the query
  }

  private static String missing(LogicalPlan plan) {
    String[] problem = {""};
    plan.foreach(operator -> check(operator, problem)); // its signature is the same in all versions of Scala
    return problem[0];
  }

  private static BoxedUnit check(LogicalPlan operator, String[] problem) {
    if (problem[0].isEmpty() && !operator.missingInput().isEmpty()) {
      problem[0] = operator.nodeName() + " reads columns that it does not get: " + operator.missingInput();
    }
    return BoxedUnit.UNIT;
  }
}
