package lineagemaster.capture;

import java.util.List;

/**
 * How far lineage goes in this JVM. All the way, but where the benchmark takes apart what it costs, with
 * -Dlineagemaster.until=carried, captured or encoded.
 */
public final class CaptureStages {
  private static final int STEP = List.of("carried", "captured", "encoded").indexOf(
      System.getProperty("lineagemaster.until", ""));

  /** Do taps note what the rows carry? */
  public static final boolean IS_CAPTURED = STEP != 0;
  /** Do full arrays become blocks? */
  static final boolean IS_ENCODED = STEP < 0 || STEP > 1;
  /** Do blocks leave? */
  static final boolean IS_SENT = STEP < 0;

  private CaptureStages() {}
}
