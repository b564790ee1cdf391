package lineagemaster.plan;

import java.lang.ref.SoftReference;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import lineagemaster.expression.ScalaLists;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import scala.Product;

/**
 * A query that can be asked again later, and the files that its scans read, as they were when it was planned. It keeps
 * no plan alive when memory runs short, and none that holds an RDD, which would not be cleaned up then.
 */
public final class RememberedQuery {
  private static final Set<String> WITHOUT_INPUTS =
      Set.of("LocalRelation", "Range", "OneRowRelation", "EmptyRelation", "CommandResult");
  private static final String OF_CATALOG = "CatalogFileIndex";
  private static final String CACHED = "InMemoryRelation";

  private final SoftReference<LogicalPlan> plan;
  private final List<HadoopFsRelation> relations = new ArrayList<>();
  private final List<Object> files = new ArrayList<>();
  private final String problem;

  RememberedQuery(LogicalPlan query) {
    problem = look(query);
    plan = new SoftReference<>(problem.isEmpty() ? query : null);
  }

  /** Why it cannot be asked again; empty where it can. */
  private String look(LogicalPlan query) {
    for (LogicalPlan leaf : ScalaLists.<LogicalPlan>get(query, "collectLeaves")) {
      HadoopFsRelation relation = PlanReader.relation(leaf);
      if (relation != null) {
        Object index = relation.location();
        if (index.getClass().getSimpleName().equals(OF_CATALOG)) {
          return "it reads a partitioned table, and whether that is still the same cannot be checked later";
        }
        relations.add(relation);
        files.add(call(index, "allFiles"));
      } else if (leaf.getClass().getSimpleName().equals(CACHED) && behindCache(leaf) != null) {
        String inner = look(behindCache(leaf));
        if (!inner.isEmpty()) {
          return inner;
        }
      } else if (leaf instanceof LogicalRelation || !WITHOUT_INPUTS.contains(leaf.getClass().getSimpleName())) {
        return "it reads " + leaf.nodeName() + ", and whether that is still the same cannot be checked later";
      }
    }
    for (LogicalPlan subquery : ScalaLists.<LogicalPlan>get(query, "subqueriesAll")) {
      String inner = look(subquery);
      if (!inner.isEmpty()) {
        return inner;
      }
    }
    return "";
  }

  /** Null before Spark 4.0, which forgets it. */
  private static LogicalPlan behindCache(LogicalPlan leaf) {
    Product builder = (Product) call(leaf, "cacheBuilder");
    return builder.productArity() > 4 ? (LogicalPlan) call(builder, "logicalPlan") : null;
  }

  private static Object call(Object target, String method) {
    try {
      return target.getClass().getMethod(method).invoke(target);
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException(error);
    }
  }

  /** Null where it is not kept any more. */
  public LogicalPlan plan() {
    return plan.get();
  }

  public String problem() {
    return problem;
  }

  public List<HadoopFsRelation> relations() {
    return relations;
  }

  /** A Seq of FileStatus for each of the relations. */
  public List<Object> files() {
    return files;
  }
}
