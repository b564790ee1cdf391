package lineagemaster.plan;

import lineagemaster.expression.ScalaLists;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.SparkPlan;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.List;

/**
 * The physical plan of a rewritten plan, as the planner returns it. The planner links a physical plan to the logical
 * plan that it was asked for, here the one before the rewriting. Adaptive execution needs the link of the child, to the
 * plan behind it. Spark executes a copy of what the planner returned, and `clone` leaves this operator out of it.
 */
public final class RewrittenPlan extends SparkPlan implements Scala212PhysicalPlan {
  private static final long serialVersionUID = 1;

  private final SparkPlan child;

  public RewrittenPlan(SparkPlan child) {
    this.child = child;
  }

  @Override
  @SuppressWarnings("unchecked") // items are not checked
  public List<SparkPlan> children() {
    return (List<SparkPlan>) (Object) ScalaLists.of(java.util.List.of(child));
  }

  @Override
  @SuppressWarnings("unchecked")
  public List<Attribute> output() {
    return (List<Attribute>) (Object) ScalaLists.of(ScalaLists.get(child, "output"));
  }

  @Override
  public SparkPlan clone() {
    return child.clone();
  }

  @Override
  public RDD<InternalRow> doExecute() {
    return child.execute();
  }

  @Override
  public SparkPlan withNewChildrenInternal(IndexedSeq<SparkPlan> children) {
    return new RewrittenPlan(children.head());
  }

  @SuppressWarnings({"unchecked", "rawtypes"}) // the same method as Scala 2.12 names it
  public TreeNode withNewChildrenInternal(scala.collection.IndexedSeq children) {
    return new RewrittenPlan((SparkPlan) children.head());
  }

  @Override
  public int productArity() {
    return 1;
  }

  @Override
  public Object productElement(int index) {
    return child;
  }

  @Override
  public boolean canEqual(Object other) {
    return other instanceof RewrittenPlan;
  }

  @Override
  public boolean equals(Object other) {
    return canEqual(other) && ((RewrittenPlan) other).child.equals(child);
  }

  @Override
  public int hashCode() {
    return 31 * child.hashCode();
  }
}
