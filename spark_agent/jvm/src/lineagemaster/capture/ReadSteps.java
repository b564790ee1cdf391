package lineagemaster.capture;

import java.io.Serializable;

/**
 * The rows of a task in steps, so that all rows up to one can be named by one number. A step has a fixed number of rows
 * at first and twice as many each time that {@link #STEPS_OF_A_SIZE} more have passed. So there are few steps, however
 * many rows there are.
 */
public final class ReadSteps implements Serializable {
  private static final long serialVersionUID = 1;

  /** Bits of the steps' numbers in their keys. */
  private static final int BITS = 13;
  /** A power of two. */
  private static final int STEPS_OF_A_SIZE = 128;

  private final long size;

  /** @param size the rows of the first steps */
  ReadSteps(int size) {
    this.size = size;
  }

  /** The step of a row. */
  long of(long position) {
    long unit = position / size;
    if (unit < 2 * STEPS_OF_A_SIZE) {
      return unit;
    }
    int doublings = 64 - Long.numberOfLeadingZeros(unit / (2 * STEPS_OF_A_SIZE));
    return STEPS_OF_A_SIZE * doublings + (unit >> doublings);
  }

  /** What stands for all steps up to this one. */
  static long key(int partition, long step) {
    return (long) partition << BITS | step;
  }
}
