package lineagemaster.capture;

import lineagemaster.delivery.FlowBlock;

/**
 * The ids of a tap's rows as a block. Where they repeat (what a row was exploded into) or are consecutive (a scan whose
 * rows all come through), a few spans say what a number for each row would.
 */
final class IdSpans {
  /** Spans are worth their three columns where there are at least this many rows for each. */
  private static final int MIN_ROWS = 4;

  private long[] counts = {};
  private long[] ids = {};
  private long[] steps = {};

  /** A block that says where the rows of a column come from. None is missing. */
  FlowBlock block(int node, int source, long[] column, int count) {
    FlowBlock block = new FlowBlock(node, "ids").from(source);
    int spans = divide(column, count);
    if (spans < 0) {
      long base = least(column, count);
      return block.inputs(base).column("in", column, count, base);
    }
    long base = least(ids, spans);
    block.inputs(base).column("in", ids, spans, base);
    return block.column("count", counts, spans).column("step", steps, spans);
  }

  /** How many spans the column is; -1: too many. */
  private int divide(long[] column, int count) {
    int most = count / MIN_ROWS + 1;
    if (counts.length < most) {
      counts = new long[most];
      ids = new long[most];
      steps = new long[most];
    }
    int spans = 0;
    for (int begin = 0, end; begin < count; begin = end) {
      if (spans == most) {
        return -1;
      }
      long step = 0;
      end = begin + 1;
      if (end < count) {
        step = column[end] - column[begin];
        if (step == 0 || step == 1) {
          do {
            end++;
          } while (end < count && column[end] - column[end - 1] == step);
        } else {
          step = 0;
        }
      }
      counts[spans] = end - begin;
      ids[spans] = column[begin];
      steps[spans++] = step;
    }
    return spans;
  }

  private static long least(long[] values, int count) {
    long least = values[0];
    for (int i = 1; i < count; i++) {
      least = Math.min(least, values[i]);
    }
    return least;
  }
}
