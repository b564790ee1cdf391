/**
 * What one task attempt gathers of the rows that pass its taps and scans, until it has blocks and a commit manifest.
 *
 * <p>Runs on executors, in the threads of tasks: generated code writes into the arrays of TapBuffer, and Spark calls
 * TaskCapture when the attempt has ended. On the driver only TapSpec is made. What fails here is counted, with the
 * reason, and never fails the job, except where the user asked for that (`spark.lineage.onError=fail`).
 *
 * <p>Knows nothing of expressions and plans, and not how messages travel: they go to `delivery`.
 */
package lineagemaster.capture;
