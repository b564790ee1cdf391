/**
 * The Kafka client of the agent. KafkaLoader loads this package, `org.apache.kafka` and `org.slf4j.LoggerFactory` from
 * a part of the jar that no other class loader reads: a job may have another Kafka client, and sees nothing of this
 * one.
 *
 * <p>Runs wherever a Sender is: in the threads of tasks, and in the client's own thread, which reports deliveries.
 *
 * <p>Knows messages as bytes, and nothing of what is in them. No class of another package may name one of this.
 */
package lineagemaster.delivery.kafka;
