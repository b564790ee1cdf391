package lineagemaster.plan;

import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import lineagemaster.expression.ScalaLists;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.optimizer.PushDownPredicates$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.sources.BaseRelation;
import scala.Option;

/**
 * Change data feeds of Delta Lake, which reads one as a union of scans: of files of changes, of data files that a
 * version added or removed, and of rows that a deletion vector marks. It makes them while a query is planned, where
 * nobody sees which file a row is of. Here the query gets the same scans instead.
 */
public final class ChangeFeeds {
  private static final String READER = "org.apache.spark.sql.delta.commands.cdc.CDCReader$";
  private static final String FEED = READER + "DeltaCDFRelation";
  private static final Object NIL = ScalaLists.of(List.of());

  /** Is it a leaf that reads a change data feed, whose versions are known? */
  public boolean isFeed(LogicalPlan leaf) {
    return leaf instanceof LogicalRelation && ((LogicalRelation) leaf).relation().getClass().getName().equals(FEED);
  }

  /**
   * The scans of files that Delta Lake makes of a feed, with the feed's columns; or what a Filter over a feed leaves of
   * them, where each scan has its conditions.
   */
  public LogicalPlan scans(LogicalPlan plan) throws ReflectiveOperationException {
    if (plan instanceof Filter) {
      Filter filter = (Filter) plan;
      return PushDownPredicates$.MODULE$.apply(new Filter(filter.condition(), scans(filter.child())));
    }
    BaseRelation feed = ((LogicalRelation) plan).relation();
    List<LogicalPlan> leaves = new ArrayList<>();
    addScans(changes(feed), feed.sizeInBytes(), leaves);
    List<Attribute> columns = PlanReader.output(plan);
    if (leaves.isEmpty()) {
      return (LogicalPlan) method(LocalRelation$.MODULE$, "apply", 1)
          .invoke(LocalRelation$.MODULE$, ScalaLists.of(columns));
    }
    LogicalPlan all = leaves.size() == 1
        ? leaves.get(0)
        : ScalaLists.construct(Union.class, ScalaLists.of(leaves), false, false);
    Map<String, Attribute> byName = new HashMap<>();
    PlanReader.output(all).forEach(column -> byName.put(column.name(), column));
    List<Object> named = new ArrayList<>();
    for (Attribute column : columns) {
      named.add(ScalaLists.construct(Alias.class, byName.get(column.name()), column.name(), column.exprId(), NIL,
          Option.empty(), NIL));
    }
    return ScalaLists.construct(Project.class, ScalaLists.of(named), all);
  }

  /** The plan that Delta Lake reads, as `buildScan` of the relation asks for it. */
  private static LogicalPlan changes(BaseRelation feed) throws ReflectiveOperationException {
    Object log = call(feed, "deltaLog");
    Option<?> table = (Option<?>) call(feed, "catalogTableOpt");
    Option<?> end = (Option<?>) call(feed, "endingVersion");
    Object last = end.isDefined() ? end.get() : call(updated(log, table), "version");
    Object reader = Class.forName(READER, true, feed.getClass().getClassLoader()).getField("MODULE$").get(null);
    Object frame = method(reader, "changesToBatchDF", 8).invoke(reader, log,
        ((Option<?>) call(feed, "startingVersion")).get(), last, feed.sqlContext().sparkSession(), table,
        Option.apply(call(feed, "snapshotForBatchSchema")), false, Option.empty());
    return (LogicalPlan) call(call(frame, "queryExecution"), "analyzed");
  }

  private static Object updated(Object log, Option<?> table) throws ReflectiveOperationException {
    return method(log, "update", 3).invoke(log, call(log, "update$default$1"), call(log, "update$default$2"), table);
  }

  /** All of them together are as large for Spark as the feed. */
  private static void addScans(LogicalPlan plan, long size, List<LogicalPlan> scans) {
    if (plan instanceof Union) {
      ScalaLists.<LogicalPlan>get(plan, "children").forEach(child -> addScans(child, size, scans));
    } else if (plan instanceof LogicalRelation) {
      Object[] fields = PlanBuilder.fields((LogicalRelation) plan);
      fields[0] = new FeedFiles(PlanReader.relation(plan), scans.isEmpty() ? size : 1);
      scans.add(ScalaLists.construct(LogicalRelation.class, fields));
    } else if (!(plan instanceof LogicalRDD)) { // which has no rows: it gives the columns where no version has changes
      throw new IllegalStateException("a change data feed is read by a " + plan.nodeName());
    }
  }

  private static Object call(Object target, String method) throws ReflectiveOperationException {
    return target.getClass().getMethod(method).invoke(target);
  }

  private static Method method(Object target, String name, int parameters) throws NoSuchMethodException {
    for (Method method : target.getClass().getMethods()) {
      if (method.getName().equals(name) && method.getParameterCount() == parameters) {
        return method;
      }
    }
    throw new NoSuchMethodException(target.getClass() + " has no " + name + " of " + parameters + " parameters");
  }
}
