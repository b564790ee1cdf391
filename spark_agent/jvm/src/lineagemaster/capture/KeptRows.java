package lineagemaster.capture;

import java.io.Serializable;
import java.nio.ByteBuffer;
import java.nio.LongBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.rdd.InputFileBlockHolder;

/**
 * Which rows of a scan a replay keeps: rows of the blocks of files that the original read. Of other rows nothing is
 * known. They are dropped if some rows are meant, and kept if all but some are.
 */
public final class KeptRows implements Serializable {
  private static final long serialVersionUID = 1;

  private final boolean isWithout;
  private final Map<String, List<Block>> blocks = new HashMap<>();

  /** A block of a file, with ranges of rows: from `firsts[i]` to before `ends[i]`, counted from its first row. */
  private static final class Block implements Serializable {
    private static final long serialVersionUID = 1;

    private final long start;
    private final long length;
    private final long row; // of its first row in the file; -1: not known
    private final long[] firsts;
    private final long[] ends;

    Block(LongBuffer numbers) {
      start = numbers.get();
      length = numbers.get();
      row = numbers.get();
      firsts = new long[(int) numbers.get()];
      ends = new long[firsts.length];
      for (int i = 0; i < firsts.length; i++) {
        firsts[i] = numbers.get();
        ends[i] = firsts[i] + numbers.get();
      }
    }

    boolean names(long offset) {
      int at = Arrays.binarySearch(firsts, offset);
      return at >= 0 || at < -1 && offset < ends[-at - 2];
    }
  }

  /**
   * @param isWithout are the named rows those to drop?
   * @param paths of files, as events name them
   * @param numbers longs, of each block: the number of its path, start and length in bytes, the row of its first row
   *     or -1, the count of ranges, and of each range its first row and its count
   */
  public KeptRows(boolean isWithout, List<String> paths, byte[] numbers) {
    this.isWithout = isWithout;
    LongBuffer longs = ByteBuffer.wrap(numbers).asLongBuffer();
    while (longs.hasRemaining()) {
      String path = paths.get((int) longs.get());
      blocks.computeIfAbsent(path, any -> new ArrayList<>()).add(new Block(longs));
    }
  }

  /**
   * The rows of the block that the task has begun to read. `row` is the index of its first row in the file, -1 if rows
   * are known by their order.
   */
  Cursor ofBlock(long row) {
    String path = InputFile.of(InputFileBlockHolder.getInputFilePath().toString()).path;
    long start = InputFileBlockHolder.getStartOffset();
    long length = InputFileBlockHolder.getLength();
    for (Block block : blocks.getOrDefault(path, List.of())) {
      if (block.start == start && block.length == length && (row < 0 || block.row >= 0)) {
        return new Cursor(block, row < 0 ? 0 : row - block.row);
      }
      if (start < block.start + block.length && block.start < start + length) {
        throw new IllegalStateException("the replay reads " + path + " in other pieces than the original (" + length
            + " bytes from " + start + " on, and not " + block.length + " from " + block.start + " on), so which of "
            + "its rows are meant is not known: run it with the configuration of the original");
      }
    }
    return new Cursor(null, 0);
  }

  /** Rows of one block. */
  final class Cursor {
    private final Block block; // null: not known
    private final long first; // what the first row of the block counts as

    Cursor(Block block, long first) {
      this.block = block;
      this.first = first;
    }

    /** @param offset of a row, from the first one on that the task has read of the block */
    boolean keeps(long offset) {
      return (block != null && block.names(first + offset)) != isWithout;
    }
  }
}
