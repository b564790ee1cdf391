/**
 * The expressions that a rewritten plan has beside the user's: ids of scanned rows, keys, taps, round-robin numbers.
 *
 * <p>They are made on the driver, in Python's thread, and travel inside plans. Executors evaluate them in the thread
 * of a task, once a row: mostly as code that Spark generates from `doGenCode`, else by `eval`. What such code calls
 * without noting anything is here, too (KeyHash, LineBreaks, RoundRobin).
 *
 * <p>Knows nothing of whole plans, of the rewriting, or of Kafka: what they read of a row goes to `capture`.
 */
package lineagemaster.expression;
