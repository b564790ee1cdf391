package lineagemaster.capture;

import java.util.HashMap;
import java.util.Map;
import lineagemaster.delivery.FlowBlock;
import org.apache.spark.TaskContext;

/**
 * What goes through a window in one task attempt: the rows that come in, and the frame of each row that goes out, whose
 * key tells it from all others. A window reads all rows of a partition before it gives the first one, in the same order.
 * So a record of the frames has the position of its row.
 */
public final class WindowBuffer extends TapBuffer {
  /** Entries of a block of keys. */
  private static final int MAX_KEYS = 1 << 15;
  /** Entries of a block of two columns. */
  private static final int MAX_ENTRIES = 1 << 14;
  /** Outputs of a frame that are kept until its first row leaves the frames: 16 MiB. */
  private static final int MAX_BEGINNINGS = 1 << 20;

  /** Where the columns of the frames are written, before `frame` is called. */
  public final long[] columns;

  private final FrameSpec spec;
  private final Ranges[] ranges;
  /** Those that are being read, by the position of their last row: several, where a task reads a window twice. */
  private final Map<Long, Partition> partitions = new HashMap<>();
  private Partition current;
  private long lastOfBefore = -1; // the position of the last row of the partition that began last
  private final long[] rowKeys = new long[MAX_KEYS];
  private long firstPosition; // of the row that has the first of them
  private int keyCount;
  private long outputCount;

  private WindowBuffer(FrameSpec spec, int partition) {
    super(spec.tap, partition);
    this.spec = spec;
    columns = new long[spec.columnCount()];
    ranges = new Ranges[spec.frames.length];
    for (int i = 0; i < ranges.length; i++) {
      ranges[i] = new Ranges();
    }
  }

  /** The buffer of this window in the running task. */
  public static WindowBuffer open(FrameSpec spec) {
    TaskContext task = TaskContext.get();
    int partition = task == null ? 0 : task.partitionId();
    return TaskCapture.part(spec.tap.config, spec, () -> new WindowBuffer(spec, partition));
  }

  /**
   * A row goes out, the next one of its partition; where its frames are is in `columns`.
   *
   * @param last the position of the last row of its partition of the window
   * @param key tells it from all other rows; never negative
   */
  public synchronized void frame(long last, long key) {
    try {
      if (current == null || current.last != last) {
        current = partitions.computeIfAbsent(last, this::newPartition);
      }
      long number = current.next();
      long position = current.before + number;
      if (position == last) {
        current.end();
        current = null;
        partitions.remove(last);
      }
      putKey(position, key & Long.MAX_VALUE);
      outputCount++;
    } catch (Throwable error) {
      countBug(error);
    }
  }

  /** The one that was read last: a window gives a row of a partition as soon as it has read it. */
  private Partition newPartition(long last) {
    if (last <= lastOfBefore) {
      throw new IllegalStateException("rows up to " + last + " behind those up to " + lastOfBefore);
    }
    Partition partition = new Partition(lastOfBefore, last);
    lastOfBefore = last;
    return partition;
  }

  private void putKey(long position, long key) {
    if (keyCount == MAX_KEYS || position != firstPosition + keyCount) {
      sendKeys();
      firstPosition = position;
    }
    rowKeys[keyCount++] = key;
  }

  private void sendKeys() {
    int count = keyCount;
    keyCount = 0;
    if (count > 0 && isSending()) {
      send(new FlowBlock(spec.tap.keyNode, "codes").inputs(firstPosition).column("code", rowKeys, count));
    }
  }

  @Override
  public synchronized void finish() {
    super.finish();
    try {
      current = null;
      partitions.values().forEach(Partition::end); // the rest of these was not asked for
      partitions.clear();
      for (Ranges rangesOfFrame : ranges) {
        rangesOfFrame.send();
      }
      sendKeys();
    } catch (Throwable error) {
      countBug(error);
    }
  }

  @Override
  long outputCount() {
    return outputCount;
  }

  /** One partition of the window, of which some rows have gone out. */
  private final class Partition {
    private final long before; // the position of the row before its first one
    private final long last; // the position of its last row
    private final long size;
    private final FrameOutputs[] frames = new FrameOutputs[ranges.length];
    private long number;

    Partition(long before, long last) {
      this.before = before;
      this.last = last;
      size = last - before;
      for (int i = 0; i < frames.length; i++) {
        Ranges of = ranges[i];
        boolean isUnbounded = spec.frames[i].from == FrameSpec.UNBOUNDED;
        frames[i] = new FrameOutputs(isUnbounded, size, MAX_BEGINNINGS,
            (row, output, count) -> of.put(before + row, before + output, count));
      }
    }

    /** Takes the next row, and returns its number. */
    long next() {
      number++;
      int column = 0;
      for (int i = 0; i < frames.length; i++) {
        FrameSpec.Frame frame = spec.frames[i];
        boolean isFirst = frame.from == FrameSpec.UNBOUNDED;
        boolean isLast = frame.to == FrameSpec.UNBOUNDED;
        long first;
        long last;
        if (frame.isRows) {
          first = isFirst ? 1 : Math.min(Math.max(number + frame.from, 1), size + 1);
          last = isLast ? size : Math.max(Math.min(number + frame.to, size), 0);
        } else {
          last = spec.hasEndColumn(i) ? columns[column++] : size;
          first = spec.hasSizeColumn(i) ? last - columns[column++] + 1 : 1;
        }
        frames[i].add(number, first, last);
      }
      return number;
    }

    void end() {
      for (FrameOutputs frame : frames) {
        frame.end(number);
      }
    }
  }

  /** The outputs of rows by one of the frames, until they are sent. */
  private final class Ranges {
    private final long[] outputs = new long[MAX_ENTRIES];
    private final long[] counts = new long[MAX_ENTRIES];
    private int count;
    private long firstRow;

    void put(long row, long output, long outputCount) {
      if (count == MAX_ENTRIES || row != firstRow + count) {
        send();
        firstRow = row;
      }
      outputs[count] = output;
      counts[count++] = outputCount;
    }

    void send() {
      int size = count;
      count = 0;
      if (size > 0 && isSending()) {
        WindowBuffer.this.send(new FlowBlock(spec.tap.codeNode, "ranges").inputs(firstRow)
            .column("out", outputs, size).column("count", counts, size));
      }
    }
  }
}
