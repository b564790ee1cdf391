package lineagemaster.capture;

import java.util.List;

/**
 * The stages of capture that this JVM goes through. It is all of them, except where the benchmark measures what each
 * costs, with -Dlineagemaster.until=carried, captured or encoded.
 */
public final class CaptureStages {
  private static final int LAST = List.of("carried", "captured", "encoded").indexOf(
      System.getProperty("lineagemaster.until", ""));

  /** Do taps note the ids that rows carry? */
  public static final boolean IS_CAPTURED = LAST != 0;
  /** Do full arrays become blocks? */
  static final boolean IS_ENCODED = LAST < 0 || LAST > 1;
  /** Are blocks sent? */
  static final boolean IS_SENT = LAST < 0;

  private CaptureStages() {}
}
