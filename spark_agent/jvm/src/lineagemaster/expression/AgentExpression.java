package lineagemaster.expression;

import java.io.Serializable;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.codegen.Block;
import org.apache.spark.sql.catalyst.expressions.codegen.CodeBlock;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import scala.collection.JavaConverters;
import scala.collection.Seq;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.List;
import scala.collection.immutable.Nil$;

/** What the agent's expressions are to Catalyst: of any number of children, equal where identity and children are. */
abstract class AgentExpression extends Expression implements Serializable, Scala212Expression {
  private static final long serialVersionUID = 1;

  final List<Expression> children;

  AgentExpression(Seq<Expression> children) {
    this.children = children.toList();
  }

  /** This expression over other children. */
  abstract Expression withChildren(Seq<Expression> children);

  /** What distinguishes it from others of its class, beside the children. */
  abstract Object identity();

  @Override
  public List<Expression> children() {
    return children;
  }

  @Override
  public Expression withNewChildrenInternal(IndexedSeq<Expression> children) {
    return withChildren(children);
  }

  @SuppressWarnings({"unchecked", "rawtypes"}) // the same method as Scala 2.12 names it
  public TreeNode withNewChildrenInternal(scala.collection.IndexedSeq children) {
    return withChildren((Seq<Expression>) children);
  }

  @Override
  public int productArity() {
    return 2;
  }

  @Override
  public Object productElement(int index) {
    return index == 0 ? identity() : children;
  }

  @Override
  public boolean nullable() {
    return false;
  }

  // Exchanges with the same result are reused where their expressions are equal.

  @Override
  public boolean canEqual(Object other) {
    return other != null && other.getClass() == getClass();
  }

  @Override
  public boolean equals(Object other) {
    return canEqual(other)
        && ((AgentExpression) other).identity().equals(identity())
        && ((AgentExpression) other).children.equals(children);
  }

  @Override
  public int hashCode() {
    return 31 * identity().hashCode() + children.hashCode();
  }

  /** Java text as a block of generated code. By reflection: the constructor's Seq differs between Scalas. */
  @SuppressWarnings("deprecation") // the only converter that both Scalas have
  static Block code(String text) {
    try {
      List<String> parts = JavaConverters.asScalaBuffer(java.util.List.of(text)).toList();
      return (Block) CodeBlock.class.getConstructors()[0].newInstance(parts, Nil$.MODULE$);
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException(error);
    }
  }
}
