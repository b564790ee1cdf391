package lineagemaster.capture;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import lineagemaster.delivery.AgentConfig;

/** What a tap is: its nodes, and whose ids its columns hold. */
public final class TapSpec implements Serializable {
  private static final long serialVersionUID = 1;

  public final AgentConfig common;
  public final int node;
  public final int codes;
  public final int keys;
  public final int[] sources;
  public final ArrayList<String> columns;
  public final boolean isBucketed;
  public final int writers;
  public final int texts;
  public final boolean isAlone;
  public final boolean isKept;

  /**
   * @param codes the node of the rows' keys by their codes, or -1: this is an output, whose rows have no key
   * @param keys the node of the keys themselves, or -1
   * @param sources the node of each column of ids
   * @param columns the columns that name the folder which a row of an output is written to
   * @param isBucketed do rows go into files by buckets, too
   * @param writers how many files a task may have open at a time, or 0: one, since its rows are sorted
   * @param texts how many columns an output of lines has that may hold the end of a line
   * @param isAlone is it the only column, and a row that is blank none of the file's
   * @param isKept are its rows, or what is made of them, to be kept beyond the attempt that computes them
   */
  public TapSpec(
      AgentConfig common,
      int node,
      int codes,
      int keys,
      List<Integer> sources,
      List<String> columns,
      boolean isBucketed,
      int writers,
      int texts,
      boolean isAlone,
      boolean isKept) {
    this.common = common;
    this.node = node;
    this.codes = codes;
    this.keys = keys;
    this.sources = sources.stream().mapToInt(Integer::intValue).toArray();
    this.columns = new ArrayList<>(columns);
    this.isBucketed = isBucketed;
    this.writers = writers;
    this.texts = texts;
    this.isAlone = isAlone;
    this.isKept = isKept;
  }

  /** Does a row's place, which file it goes into, depend on what it holds? */
  public boolean hasPlaces() {
    return isBucketed || !columns.isEmpty();
  }

  public boolean hasKey() {
    return codes >= 0;
  }

  /** The nodes that its runs have beside the input. */
  public List<Integer> nodes() {
    return hasKey() ? List.of(codes, keys) : List.of();
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof TapSpec
        && ((TapSpec) other).node == node
        && ((TapSpec) other).common.applicationId.equals(common.applicationId);
  }

  @Override
  public int hashCode() {
    return 31 * common.applicationId.hashCode() + node;
  }

  @Override
  public String toString() {
    return Integer.toString(node);
  }
}
