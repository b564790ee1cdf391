package lineagemaster.capture;

import java.util.List;

/** Where in Spark an error was raised: which rows it may be about depends on it. */
enum ErrorOrigin {
  /** In code that is evaluated for one row, by an operator that takes rows one by one. */
  ROW,
  /** Where files or other sources are read: what was read is not a row yet. */
  SCAN,
  /** In a worker of Python that a query has called, or in what Spark exchanges with Python. */
  PYTHON,
  /** In a worker of Python that runs functions of an RDD: what they raise, it reports itself. */
  RDD,
  /** Not known. */
  ELSEWHERE;

  /** What evaluates an expression: who called it says more. */
  private static final List<String> EVALUATING = List.of(
      "java.lang.", "java.math.", "java.text.", "java.time.", "java.util.", "jdk.internal.", "scala.",
      "org.apache.spark.SparkException", "org.apache.spark.sql.catalyst.", "org.apache.spark.sql.errors.",
      "org.apache.spark.sql.types.", "org.apache.spark.unsafe.");
  /** The code that Spark generates for a chain of operators, and operators that it may run without that. */
  private static final List<String> BY_ROW = List.of(
      "org.apache.spark.sql.catalyst.expressions.GeneratedClass$GeneratedIterator",
      "org.apache.spark.sql.execution.ProjectExec", "org.apache.spark.sql.execution.ProjectEvaluatorFactory",
      "org.apache.spark.sql.execution.FilterExec", "org.apache.spark.sql.execution.FilterEvaluatorFactory",
      "org.apache.spark.sql.execution.GenerateExec", "org.apache.spark.sql.execution.ExpandExec");
  private static final List<String> BY_PYTHON = List.of(
      "org.apache.spark.api.python.", "org.apache.spark.sql.execution.python.");
  private static final String ANY_RUNNER = "org.apache.spark.api.python.BasePythonRunner";
  private static final String RDD_RUNNER = "org.apache.spark.api.python.PythonRunner";
  private static final List<String> SCANS = List.of(
      "org.apache.spark.sql.execution.datasources.FileScanRDD",
      "org.apache.spark.sql.execution.datasources.jdbc.JDBCRDD",
      "org.apache.spark.sql.execution.datasources.v2.DataSourceRDD",
      "org.apache.spark.rdd.HadoopRDD", "org.apache.spark.rdd.NewHadoopRDD");

  private static final String SOURCES = "org.apache.spark.sql.execution.datasources.";
  private static final String WRITERS = SOURCES + "FileFormat";

  /** Of this error, without what caused it. */
  static ErrorOrigin of(Throwable error) {
    boolean isOfRow = true; // has nothing but the evaluation of expressions been met
    boolean isProjected = false;
    boolean isMapped = false; // a projection is called by an iterator, so by an operator without a frame of its own
    for (StackTraceElement frame : error.getStackTrace()) {
      String name = frame.getClassName();
      if (isMapped && !name.startsWith("scala.")) {
        return name.startsWith(SOURCES) && !name.startsWith(WRITERS) ? ELSEWHERE : ROW;
      }
      isMapped = isOfRow && (isMapped || isProjected && name.startsWith("scala.collection.Iterator"));
      isProjected = name.endsWith("UnsafeProjection");
      if (isOf(BY_ROW, name)) {
        return isOfRow ? ROW : ELSEWHERE;
      }
      if (isOf(BY_PYTHON, name)) {
        return ofPython(error);
      }
      if (isOf(SCANS, name)) {
        return SCAN;
      }
      isOfRow = isOfRow && isOf(EVALUATING, name);
    }
    return ELSEWHERE;
  }

  /** A task may have workers of both kinds, one behind the other. The innermost runner has met the error. */
  private static ErrorOrigin ofPython(Throwable error) {
    for (StackTraceElement frame : error.getStackTrace()) {
      String name = frame.getClassName();
      if (isOf(BY_PYTHON, name) && !name.startsWith(ANY_RUNNER)) {
        return name.startsWith(RDD_RUNNER) ? RDD : PYTHON;
      }
    }
    return PYTHON;
  }

  private static boolean isOf(List<String> prefixes, String name) {
    return prefixes.stream().anyMatch(name::startsWith);
  }
}
