package lineagemaster.plan;

import java.util.List;
import lineagemaster.capture.KeptRows;
import lineagemaster.expression.ScalaLists;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.SparkPlan;
import scala.collection.immutable.IndexedSeq;

/** The physical plan of a scan whose candidates are kept for further runs: see {@link KeptScan}. */
public final class KeptScanPlan extends SparkPlan implements Scala212PhysicalPlan {
  private static final long serialVersionUID = 1;

  private final SparkPlan child;
  private final transient KeptRows kept;
  private final transient List<Object> key;
  private final Integer idColumn;

  /** @param idColumn which column of `child` has the ids */
  public KeptScanPlan(SparkPlan child, KeptRows kept, List<Object> key, Integer idColumn) {
    this.child = child;
    this.kept = kept;
    this.key = key;
    this.idColumn = idColumn;
  }

  @Override
  public RDD<InternalRow> doExecute() {
    return KeptScan.rows(key, child, idColumn, kept, sparkContext());
  }

  private KeptScanPlan over(SparkPlan other) {
    return new KeptScanPlan(other, kept, key, idColumn);
  }

  @Override
  @SuppressWarnings("unchecked") // items are not checked
  public scala.collection.immutable.List<SparkPlan> children() {
    return (scala.collection.immutable.List<SparkPlan>) (Object) ScalaLists.of(List.of(child));
  }

  @Override
  @SuppressWarnings("unchecked")
  public scala.collection.immutable.List<Attribute> output() {
    return (scala.collection.immutable.List<Attribute>) (Object) ScalaLists.of(ScalaLists.get(child, "output"));
  }

  @Override
  public SparkPlan clone() {
    SparkPlan copy = child.clone();
    copy.copyTagsFrom(child);
    return over(copy);
  }

  @Override
  public SparkPlan withNewChildrenInternal(IndexedSeq<SparkPlan> children) {
    return over(children.head());
  }

  @SuppressWarnings({"unchecked", "rawtypes"}) // the same method as Scala 2.12 names it
  public TreeNode withNewChildrenInternal(scala.collection.IndexedSeq children) {
    return over((SparkPlan) children.head());
  }

  @Override
  public int productArity() {
    return 4;
  }

  @Override
  public Object productElement(int index) {
    return index == 0 ? child : index == 1 ? kept : index == 2 ? key : idColumn;
  }

  @Override
  public boolean canEqual(Object other) {
    return other instanceof KeptScanPlan;
  }

  @Override
  public boolean equals(Object other) {
    return canEqual(other) && ((KeptScanPlan) other).key.equals(key) && ((KeptScanPlan) other).child.equals(child);
  }

  @Override
  public int hashCode() {
    return 31 * child.hashCode() + key.hashCode();
  }

  @Override
  public String simpleString(int maxFields) {
    return "KeptScan";
  }
}
