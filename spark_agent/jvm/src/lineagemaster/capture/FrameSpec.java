package lineagemaster.capture;

import java.io.Serializable;
import java.util.List;

/**
 * A window whose frames are followed: its nodes, and what is known of its frames before the first row. The nodes are
 * those of the rows that come in, of the frames (the `codeNode` of the tap), and of the keys of the rows.
 */
public final class FrameSpec implements Serializable {
  private static final long serialVersionUID = 1;

  /** Stands for a bound that is none. */
  static final int UNBOUNDED = Integer.MIN_VALUE;

  /** One frame: rows by the distances of the first and the last one, or a range whose ends Spark counts. */
  static final class Frame implements Serializable {
    private static final long serialVersionUID = 1;

    final boolean isRows;
    final int from;
    final int to;

    Frame(boolean isRows, int from, int to) {
      this.isRows = isRows;
      this.from = from;
      this.to = to;
    }
  }

  public final TapSpec tap;
  final Frame[] frames;

  /**
   * @param numbers three for each frame: 1 for rows or 0 for a range, and where it begins and ends, which is UNBOUNDED or
   *     a distance; of a range, any other number
   */
  public FrameSpec(TapSpec tap, List<Integer> numbers) {
    this.tap = tap;
    frames = new Frame[numbers.size() / 3];
    for (int i = 0; i < frames.length; i++) {
      frames[i] = new Frame(numbers.get(3 * i) == 1, numbers.get(3 * i + 1), numbers.get(3 * i + 2));
    }
  }

  /** Is there a column with the number of the last row of a frame? */
  public boolean hasEndColumn(int frame) {
    return !frames[frame].isRows && frames[frame].to != UNBOUNDED;
  }

  /** Is there a column, behind the other one, with the number of rows of a frame? */
  public boolean hasSizeColumn(int frame) {
    return !frames[frame].isRows && frames[frame].from != UNBOUNDED;
  }

  /** How many columns all frames have. */
  int columnCount() {
    int count = 0;
    for (int i = 0; i < frames.length; i++) {
      count += (hasEndColumn(i) ? 1 : 0) + (hasSizeColumn(i) ? 1 : 0);
    }
    return count;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof FrameSpec && ((FrameSpec) other).tap.equals(tap);
  }

  @Override
  public int hashCode() {
    return tap.hashCode();
  }

  @Override
  public String toString() {
    return tap.toString();
  }
}
