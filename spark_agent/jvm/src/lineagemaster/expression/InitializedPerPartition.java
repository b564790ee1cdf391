package lineagemaster.expression;

import org.apache.spark.sql.catalyst.expressions.Nondeterministic;

/**
 * An expression that Spark initialises with its partition before the first row, also outside of generated code. The
 * state that the trait has for its own `eval` is not used: each of these expressions has its own `eval`.
 */
interface InitializedPerPartition extends Nondeterministic {
  @Override
  default boolean org$apache$spark$sql$catalyst$expressions$Nondeterministic$$initialized() {
    return true;
  }

  @Override
  default void org$apache$spark$sql$catalyst$expressions$Nondeterministic$$initialized_$eq(boolean value) {}
}
