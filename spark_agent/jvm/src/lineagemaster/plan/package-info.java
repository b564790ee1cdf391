/**
 * Logical plans of Spark: what the rewriting in Python asks of them and makes of them, each in one call over py4j.
 *
 * <p>Runs on the driver: in the thread that plans a query, which PlanStrategy takes to Python and back, in Python's own
 * threads, and, where a query ends, in the thread of Spark's listeners. What fails leaves the plan as it is.
 *
 * <p>Knows nothing of Kafka, and nothing of what is done with rows: it puts expressions of `expression` into plans.
 */
package lineagemaster.plan;
