package lineagemaster.expression;

import org.apache.spark.sql.catalyst.expressions.Nondeterministic;

/**
 * Is told its partition before its first row, also outside of generated code. What the trait keeps for its own `eval`
 * is of no use: each of them has one.
 */
interface InitializedPerPartition extends Nondeterministic {
  @Override
  default boolean org$apache$spark$sql$catalyst$expressions$Nondeterministic$$initialized() {
    return true;
  }

  @Override
  default void org$apache$spark$sql$catalyst$expressions$Nondeterministic$$initialized_$eq(boolean value) {}
}
