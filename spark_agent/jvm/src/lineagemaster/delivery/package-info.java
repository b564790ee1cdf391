/**
 * Blocks and manifests as bytes, and their way out of this JVM: blocks to Kafka, manifests to the driver.
 *
 * <p>Runs on executors, in the threads of tasks, and on the driver: AgentConfig is made there, and ManifestAccumulator
 * queues what arrives for a thread of Python. Kafka's client reports deliveries from a thread of its own, and Sender
 * connects in another. All waits of a JVM share one WaitBudget. No call to Sender throws.
 *
 * <p>Knows nothing of rows, taps and plans. Kafka's classes are known to `delivery.kafka` only.
 */
package lineagemaster.delivery;
