package lineagemaster.plan;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import scala.runtime.BoxedUnit;

/**
 * Looks whether a rewritten plan can run. Spark looks no more behind its last rule: what is wrong would show in the
 * code that it generates, and be an error of the user's query.
 */
public final class PlanCheck {
  private PlanCheck() {}

  /** What is wrong with `after`, which is to stand for `before`; empty where nothing is. */
  public static String problem(LogicalPlan before, LogicalPlan after) {
    if (!after.resolved()) {
      return "it is not resolved";
    }
    if (!before.sameOutput(after)) {
      return "its columns are not those of the query";
    }
    return missing(before).isEmpty() ? missing(after) : ""; // an operator that Spark itself reads in another way
  }

  private static String missing(LogicalPlan plan) {
    String[] found = {""};
    plan.foreach(each -> look(each, found)); // whose signature all Scalas share
    return found[0];
  }

  private static BoxedUnit look(LogicalPlan plan, String[] found) {
    if (found[0].isEmpty() && !plan.missingInput().isEmpty()) {
      found[0] = plan.nodeName() + " reads columns that it is not given: " + plan.missingInput();
    }
    return BoxedUnit.UNIT;
  }
}
