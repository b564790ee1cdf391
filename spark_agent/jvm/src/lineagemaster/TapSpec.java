package lineagemaster;

import java.io.Serializable;
import java.util.List;

/** What a tap is: its nodes, and whose ids its columns hold. */
public final class TapSpec implements Serializable {
  private static final long serialVersionUID = 1;

  final Common common;
  final int node;
  final int codes;
  final int keys;
  final int[] sources;

  /**
   * @param codes the node of the rows' keys by their codes, or -1: this is an output, whose rows have no key
   * @param keys the node of the keys themselves, or -1
   * @param sources the node of each column of ids
   */
  public TapSpec(Common common, int node, int codes, int keys, List<Integer> sources) {
    this.common = common;
    this.node = node;
    this.codes = codes;
    this.keys = keys;
    this.sources = sources.stream().mapToInt(Integer::intValue).toArray();
  }

  boolean hasKey() {
    return codes >= 0;
  }

  /** The nodes that its runs have beside the input. */
  List<Integer> nodes() {
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
