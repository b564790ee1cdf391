package lineagemaster.plan;

import java.lang.ref.SoftReference;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import lineagemaster.expression.ScalaLists;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import scala.Product;
import scala.collection.Seq;

/**
 * A query that can be asked again later, and the files that its scans read, as they were when it was planned. It keeps
 * nothing of it alive when memory runs short, and none that holds an RDD, which would not be cleaned up then.
 */
public final class RememberedQuery {
  private static final Set<String> WITHOUT_INPUTS =
      Set.of("LocalRelation", "Range", "OneRowRelation", "EmptyRelation", "CommandResult");
  private static final String OF_CATALOG = "CatalogFileIndex";
  private static final String CACHED = "InMemoryRelation";
  private static final String UNCHECKED = ", and whether that is still the same cannot be checked later";
  /** Of more files, the lists themselves would weigh. */
  private static final int MAX_FILES = 100_000;

  private final SoftReference<Query> query;
  private final String problem;

  RememberedQuery(LogicalPlan plan) {
    Query looked = new Query();
    looked.look(plan);
    problem = looked.problem;
    looked.plan = problem.isEmpty() ? plan : null;
    query = new SoftReference<>(looked);
  }

  /** Null where it is not kept any more. */
  public LogicalPlan plan() {
    Query kept = query.get();
    return kept == null ? null : kept.plan;
  }

  /** Why it cannot be asked again; empty where it can. */
  public String problem() {
    return problem;
  }

  public List<HadoopFsRelation> relations() {
    Query kept = query.get();
    return kept == null ? List.of() : kept.relations;
  }

  /** A Seq of FileStatus for each of the relations. */
  public List<Object> files() {
    Query kept = query.get();
    return kept == null ? List.of() : kept.files;
  }

  private static final class Query {
    private final List<HadoopFsRelation> relations = new ArrayList<>();
    private final List<Object> files = new ArrayList<>();
    private LogicalPlan plan;
    private String problem = "";
    private int count;

    private void look(LogicalPlan part) {
      List<LogicalPlan> children = ScalaLists.get(part, "children");
      if (children.isEmpty()) {
        lookAtLeaf(part);
      }
      children.forEach(this::look);
      ScalaLists.<LogicalPlan>get(part, "subqueries").forEach(this::look);
    }

    private void lookAtLeaf(LogicalPlan leaf) {
      HadoopFsRelation relation = PlanReader.relation(leaf);
      String kind = leaf.getClass().getSimpleName();
      if (relation != null) {
        add(relation);
      } else if (kind.equals(CACHED) && behindCache(leaf) != null) {
        look(behindCache(leaf));
      } else if (!WITHOUT_INPUTS.contains(kind)) {
        problem = "it reads " + leaf.nodeName() + UNCHECKED;
      }
    }

    private void add(HadoopFsRelation relation) {
      Object index = relation.location();
      if (index.getClass().getSimpleName().equals(OF_CATALOG)) {
        problem = "it reads a partitioned table" + UNCHECKED;
        return;
      }
      Object listed = PlanReader.call(index, "allFiles");
      count += ((Seq<?>) listed).size();
      if (count > MAX_FILES) {
        problem = "it reads more than " + MAX_FILES + " files";
        return;
      }
      relations.add(relation);
      files.add(listed);
    }

    /** Null before Spark 4.0, which forgets it. */
    private static LogicalPlan behindCache(LogicalPlan leaf) {
      Product builder = (Product) PlanReader.call(leaf, "cacheBuilder");
      return builder.productArity() > 4 ? (LogicalPlan) PlanReader.call(builder, "logicalPlan") : null;
    }
  }
}
