package lineagemaster.plan;

import java.util.Set;
import java.util.TreeSet;
import lineagemaster.delivery.Json;
import lineagemaster.delivery.ManifestAccumulator;
import lineagemaster.expression.LineageTap;
import lineagemaster.expression.ScalaLists;
import org.apache.spark.sql.catalyst.QueryPlanningTracker;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;
import org.apache.spark.sql.execution.FilterExec;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.util.QueryExecutionListener;
import scala.Option;
import scala.runtime.BoxedUnit;

/**
 * Reports that a query has ended, behind the manifests of its tasks. It is a query with taps of an output, or one whose
 * plan stays as it is and is marked with the node that stands for it.
 */
public final class QueryEndListener implements QueryExecutionListener {
  /** Characters of a message. That of a Python worker holds a whole traceback, and ends with what matters. */
  private static final int MAX_MESSAGE = 20_000;

  /** On the root of a plan, and read only there: what is below may be part of other plans. */
  private static final TreeNodeTag<Integer> UNFOLLOWED = new TreeNodeTag<>("lineage.unfollowed");

  private final ManifestAccumulator manifests;

  public QueryEndListener(ManifestAccumulator manifests) {
    this.manifests = manifests;
  }

  /** This plan stays as it is; `node` stands for the rows of its query. */
  public static void mark(LogicalPlan plan, int node) {
    plan.setTagValue(UNFOLLOWED, node);
  }

  @Override
  public void onSuccess(String name, QueryExecution query, long nanoseconds) {
    end(name, query, null);
  }

  @Override
  public void onFailure(String name, QueryExecution query, Exception error) {
    end(name, query, error);
  }

  /** @param failure what the query failed with, or null */
  private void end(String name, QueryExecution query, Exception failure) {
    try {
      if (!query.tracker().phases().contains(QueryPlanningTracker.PLANNING())) {
        return; // it failed before it had a plan
      }
      Set<Integer> nodes = outputs(query);
      Option<Integer> unfollowed = query.sparkPlan().logicalLink().flatMap(plan -> plan.getTagValue(UNFOLLOWED));
      if (nodes.isEmpty() && unfollowed.isDefined()) {
        nodes.add(unfollowed.get());
      }
      if (!nodes.isEmpty()) {
        manifests.add("{\"type\":\"end\",\"nodes\":" + nodes + ",\"failed\":" + (failure != null)
            + ",\"name\":" + Json.quoted(name) + error(failure) + "}");
      }
    } catch (Throwable error) { // an agent bug, which must not fail the job
      manifests.gap("how a query ended is not known (" + error + ")");
    }
  }

  private static String error(Exception failure) {
    if (failure == null) {
      return "";
    }
    Throwable cause = failure; // Spark's own errors say less than what caused them
    while (cause.getCause() != null && cause.getCause() != cause && !isOfPython(cause)) {
      cause = cause.getCause();
    }
    String message = String.valueOf(cause.getMessage());
    return ",\"error\":{\"type\":" + Json.quoted(cause.getClass().getSimpleName()) + ",\"message\":"
        + Json.quoted(message.substring(0, Math.min(message.length(), MAX_MESSAGE))) + "}";
  }

  private static boolean isOfPython(Throwable error) {
    return error.getClass().getSimpleName().equals("PythonException");
  }

  /** The nodes of the taps of outputs in the plan of a query. */
  public static Set<Integer> outputs(QueryExecution query) {
    Set<Integer> nodes = new TreeSet<>();
    query.sparkPlan().foreach(plan -> collect(plan, nodes)); // its signature is the same in all versions of Scala
    return nodes;
  }

  private static BoxedUnit collect(SparkPlan plan, Set<Integer> nodes) {
    if (plan instanceof FilterExec) {
      collect(((FilterExec) plan).condition(), nodes);
    }
    return BoxedUnit.UNIT;
  }

  /** A tap may stand in a branch of a condition, of rows that are left out. */
  private static void collect(Expression condition, Set<Integer> nodes) {
    if (condition instanceof LineageTap) {
      if (((LineageTap) condition).isOutput()) {
        nodes.add(((LineageTap) condition).node());
      }
    } else {
      ScalaLists.<Expression>get(condition, "children").forEach(child -> collect(child, nodes));
    }
  }
}
