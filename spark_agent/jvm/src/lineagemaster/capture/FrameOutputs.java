package lineagemaster.capture;

/**
 * One frame within one partition of a window: of each row, to which outputs it belongs. Outputs come in order, each with
 * the rows of its frame, from the first to the last. Both never fall from one output to the next, so the outputs of a
 * row are neighbours, and rows are done in their order. Rows and outputs are numbered from 1.
 */
public final class FrameOutputs {
  /** Takes (row, first output, number of outputs), in the order of rows. */
  public interface Sink {
    void put(long row, long output, long count);
  }

  private final Sink sink;
  private final int maxBeginnings;
  /** If it is not 0, rows belong to all outputs from their first one up to this one. */
  private final long end;
  private long firstOpen = 1; // rows before it are done
  private long lastOpen; // rows behind it have been in no frame
  // Rows up to `rows[i]`, from those of i - 1 on, are in frames since `outputs[i]`: a ring.
  private long[] rows = new long[16];
  private long[] outputs = new long[16];
  private int head;
  private int count;

  /**
   * @param isUnboundedBefore does each frame begin with the first row
   * @param size how many rows the partition has
   * @param maxBeginnings so many outputs are kept in memory; with more, rows are given in several parts
   */
  public FrameOutputs(boolean isUnboundedBefore, long size, int maxBeginnings, Sink sink) {
    this.end = isUnboundedBefore ? size : 0;
    this.maxBeginnings = maxBeginnings;
    this.sink = sink;
  }

  /** The frame of an output; it is empty if its last row is the one before its first one. */
  public void add(long output, long first, long last) {
    if (end > 0) {
      for (; lastOpen < last; lastOpen++) {
        sink.put(lastOpen + 1, output, end - output + 1);
      }
      return;
    }
    if (first < firstOpen || last < lastOpen || last < first - 1) {
      throw new IllegalStateException("a frame of rows " + first + " to " + last + " behind one from " + firstOpen);
    }
    if (last > lastOpen) {
      if (count == maxBeginnings) {
        beginAgain(output);
      }
      begin(last, output);
    }
    close(first - 1, output - 1);
  }

  /** No more outputs come: `output` was the last one. */
  public void end(long output) {
    if (end == 0) {
      close(lastOpen, output);
    }
  }

  private void begin(long row, long output) {
    if (count == rows.length) {
      grow();
    }
    int at = head + count++ & rows.length - 1;
    rows[at] = row;
    outputs[at] = output;
    lastOpen = row;
  }

  /** Gives all open rows with their outputs so far, as if they were in frames since `output` only. */
  private void beginAgain(long output) {
    long row = firstOpen;
    long last = lastOpen;
    close(last, output - 1);
    firstOpen = row;
    count = 0;
    begin(last, output);
  }

  /** Gives all open rows up to this one: `output` was their last one. */
  private void close(long row, long output) {
    for (; firstOpen <= row; firstOpen++) {
      while (rows[head] < firstOpen) {
        head = head + 1 & rows.length - 1;
        count--;
      }
      if (outputs[head] <= output) {
        sink.put(firstOpen, outputs[head], output - outputs[head] + 1);
      }
    }
  }

  private void grow() {
    int size = rows.length;
    long[] moreRows = new long[size * 2];
    long[] moreOutputs = new long[size * 2];
    for (int i = 0; i < count; i++) {
      moreRows[i] = rows[head + i & size - 1];
      moreOutputs[i] = outputs[head + i & size - 1];
    }
    rows = moreRows;
    outputs = moreOutputs;
    head = 0;
  }
}
