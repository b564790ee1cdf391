package lineagemaster.capture;

import java.io.Serializable;
import java.nio.ByteBuffer;
import java.nio.LongBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.rdd.InputFileBlockHolder;

/**
 * Which rows of a scan a replay keeps: rows of the blocks of files that the original read. Of other rows nothing is
 * known. They are dropped if some rows are meant, and kept if all but some are.
 *
 * <p>Where further runs will keep other rows of the same candidates, the id of a candidate is its number among them if
 * it is kept, and -2 less that number if not. Other rows have the id -1, as ever.
 */
public final class KeptRows implements Serializable {
  private static final long serialVersionUID = 1;

  /** The id of a row that is no candidate. */
  static final long DROPPED = -1;

  private final boolean isWithout;
  private final String name;
  private final Map<String, List<Block>> blocks = new HashMap<>();

  /** Ranges of rows: from `firsts[i]` to before `ends[i]`, counted from the first row of a block. */
  private static final class Ranges implements Serializable {
    private static final long serialVersionUID = 1;

    private final long[] firsts;
    private final long[] ends;
    private final long[] before; // how many rows the ranges before it have
    private long count;

    Ranges(LongBuffer numbers) {
      firsts = new long[(int) numbers.get()];
      ends = new long[firsts.length];
      before = new long[firsts.length];
      for (int i = 0; i < firsts.length; i++) {
        before[i] = count;
        firsts[i] = numbers.get();
        ends[i] = firsts[i] + numbers.get();
        count += ends[i] - firsts[i];
      }
    }

    /** The number of a row among those of the ranges; -1 if it is none of them. */
    long numberOf(long offset) {
      int found = Arrays.binarySearch(firsts, offset);
      int at = found >= 0 ? found : -found - 2;
      return at >= 0 && offset < ends[at] ? before[at] + offset - firsts[at] : -1;
    }

    /** Marks the numbers that rows of other ranges have here, behind so many. */
    void mark(Ranges others, long behind, BitSet marked) {
      for (int i = 0; i < others.firsts.length; i++) {
        for (long offset = others.firsts[i]; offset < others.ends[i]; offset++) {
          long number = numberOf(offset);
          if (number >= 0) {
            marked.set(Math.toIntExact(behind + number));
          }
        }
      }
    }
  }

  /** A block of a file. */
  private static final class Block implements Serializable {
    private static final long serialVersionUID = 1;

    private final long start;
    private final long length;
    private final long row; // of its first row in the file; -1: not known
    private final Ranges rows;
    private final Ranges candidates;
    private final long before; // how many candidates the blocks before it have

    Block(LongBuffer numbers, long before) {
      start = numbers.get();
      length = numbers.get();
      row = numbers.get();
      rows = new Ranges(numbers);
      candidates = new Ranges(numbers);
      this.before = before;
    }
  }

  /**
   * @param isWithout are the named rows those to drop?
   * @param paths of files, as events name them
   * @param name of the candidates, other ones have another; empty where there are none
   * @param numbers longs, of each block: the number of its path, start and length in bytes, the row of its first row
   *     or -1; then of the named rows and of the candidates the count of ranges, and of each range its first row and
   *     its count
   */
  public KeptRows(boolean isWithout, String name, List<String> paths, byte[] numbers) {
    this.isWithout = isWithout;
    this.name = name;
    LongBuffer longs = ByteBuffer.wrap(numbers).asLongBuffer();
    long before = 0;
    while (longs.hasRemaining()) {
      String path = paths.get((int) longs.get());
      Block block = new Block(longs, before);
      blocks.computeIfAbsent(path, any -> new ArrayList<>()).add(block);
      before += block.candidates.count;
    }
  }

  /** The name of the candidates; empty where there are none. */
  public String name() {
    return name;
  }

  /** Are there candidates, of which further runs keep others? */
  public boolean hasCandidates() {
    return !name.isEmpty();
  }

  /** The numbers of the candidates that are kept. */
  public BitSet keptCandidates() {
    BitSet kept = new BitSet();
    blocks.values().forEach(ofFile ->
        ofFile.forEach(block -> block.candidates.mark(block.rows, block.before, kept)));
    return kept;
  }

  /** The number of a candidate among all, by its id, whether it is kept or not. */
  public static long candidate(long id) {
    return id >= 0 ? id : -2 - id;
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

    /**
     * The id of a row.
     *
     * @param offset of it, from the first one on that the task has read of the block
     * @param id by its place in the scan
     */
    long id(long offset, long id) {
      boolean isNamed = block != null && block.rows.numberOf(first + offset) >= 0;
      if (name.isEmpty()) {
        return isNamed != isWithout ? id : DROPPED;
      }
      long number = block == null ? -1 : block.candidates.numberOf(first + offset);
      if (number < 0) {
        return DROPPED;
      }
      return isNamed ? block.before + number : -2 - (block.before + number);
    }
  }
}
