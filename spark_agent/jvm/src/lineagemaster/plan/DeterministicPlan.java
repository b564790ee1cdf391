package lineagemaster.plan;

import lineagemaster.expression.ScalaLists;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.List;

/**
 * Declares the plan of a subquery deterministic: its rows are the same each time, though it has taps, which Spark takes
 * for not deterministic. Else Spark would neither push a condition on the subquery's value into a scan nor use it to
 * choose partitions. Spark runs a copy of a subquery's plan, and `clone` leaves this operator out of it.
 */
public final class DeterministicPlan extends LogicalPlan implements Scala212Plan {
  private static final long serialVersionUID = 1;

  private final LogicalPlan child;

  public DeterministicPlan(LogicalPlan child) {
    this.child = child;
  }

  @Override
  public boolean deterministic() {
    return true;
  }

  @Override
  @SuppressWarnings("unchecked") // items are not checked
  public List<LogicalPlan> children() {
    return (List<LogicalPlan>) (Object) ScalaLists.of(java.util.List.of(child));
  }

  @Override
  @SuppressWarnings("unchecked")
  public List<Attribute> output() {
    return (List<Attribute>) (Object) ScalaLists.of(ScalaLists.get(child, "output"));
  }

  @Override
  public LogicalPlan clone() {
    return child.clone();
  }

  @Override
  public LogicalPlan withNewChildrenInternal(IndexedSeq<LogicalPlan> children) {
    return new DeterministicPlan(children.head());
  }

  @SuppressWarnings({"unchecked", "rawtypes"}) // the same method as Scala 2.12 names it
  public TreeNode withNewChildrenInternal(scala.collection.IndexedSeq children) {
    return new DeterministicPlan((LogicalPlan) children.head());
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
    return other instanceof DeterministicPlan;
  }

  @Override
  public boolean equals(Object other) {
    return canEqual(other) && ((DeterministicPlan) other).child.equals(child);
  }

  @Override
  public int hashCode() {
    return 31 * child.hashCode();
  }
}
