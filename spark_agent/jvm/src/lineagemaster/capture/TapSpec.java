package lineagemaster.capture;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import lineagemaster.delivery.AgentConfig;

/** What a tap is: its nodes, and whose ids its columns hold. */
public final class TapSpec implements Serializable {
  private static final long serialVersionUID = 1;

  public final AgentConfig config;
  public final int node;
  public final int codeNode;
  public final int keyNode;
  public final int[] sourceNodes;
  public final ArrayList<String> folderColumns;
  public final boolean isBucketed;
  public final int writers;
  public final int textCount;
  public final boolean isOnlyColumn;
  public final boolean isPersisted;
  private int stepSize;
  private int[] winnerNodes;
  private boolean hasDigests;
  private boolean hasOperations;
  private ArrayList<String> recordKeyColumns = new ArrayList<>();

  /**
   * @param codeNode the node of the rows' keys by their codes, or -1: this is an output, whose rows have no key
   * @param keyNode the node of the keys themselves, or -1
   * @param sourceNodes the node of each column of ids
   * @param folderColumns the columns that name the folder which a row of an output is written to
   * @param isBucketed do rows go into files by buckets, too
   * @param writers how many files a task may have open at a time, or 0: one, since its rows are sorted
   * @param textCount how many columns an output of lines has that may hold the end of a line
   * @param isOnlyColumn is the text the only column, so that a blank row is no row of the file
   * @param isPersisted are its rows, or what is made of them, persisted beyond the attempt that computes them
   */
  public TapSpec(
      AgentConfig config,
      int node,
      int codeNode,
      int keyNode,
      List<Integer> sourceNodes,
      List<String> folderColumns,
      boolean isBucketed,
      int writers,
      int textCount,
      boolean isOnlyColumn,
      boolean isPersisted) {
    this.config = config;
    this.node = node;
    this.codeNode = codeNode;
    this.keyNode = keyNode;
    this.sourceNodes = sourceNodes.stream().mapToInt(Integer::intValue).toArray();
    this.folderColumns = new ArrayList<>(folderColumns);
    this.isBucketed = isBucketed;
    this.writers = writers;
    this.textCount = textCount;
    this.isOnlyColumn = isOnlyColumn;
    this.isPersisted = isPersisted;
  }

  /** The same, but what has a key of this one are all rows that came until then, in steps of so many at first. */
  public TapSpec inSteps(int size) {
    stepSize = size;
    return this;
  }

  /**
   * The same, but of groups: of each column, the row that decides the group of the key. These are told of so many
   * nodes, one for each column.
   */
  public TapSpec ofWinners(List<Integer> nodes) {
    winnerNodes = nodes.stream().mapToInt(Integer::intValue).toArray();
    return this;
  }

  /** The same, but of an output whose rows have digests, where others have keys. */
  public TapSpec withDigests() {
    hasDigests = true;
    return this;
  }

  public boolean hasDigests() {
    return hasDigests;
  }

  /** The same, but of an output whose rows have what a statement did with them, where others have keys. */
  public TapSpec withOperations() {
    hasOperations = true;
    return this;
  }

  public boolean hasOperations() {
    return hasOperations;
  }

  /** The same, but of an output whose records are named by the values of these columns. */
  public TapSpec withRecordKeys(List<String> columns) {
    recordKeyColumns = new ArrayList<>(columns);
    return this;
  }

  public List<String> recordKeyColumns() {
    return recordKeyColumns;
  }

  boolean isOfWinners() {
    return winnerNodes != null;
  }

  /** The node of the winners in a column. */
  int winnerNode(int column) {
    return winnerNodes[column];
  }

  /** The steps of its rows; null if these have keys of their own. */
  ReadSteps steps() {
    return stepSize > 0 ? new ReadSteps(stepSize) : null;
  }

  /** Does the file that a row of an output goes into depend on what the row holds? */
  public boolean hasOutputFiles() {
    return isBucketed || !folderColumns.isEmpty();
  }

  public boolean hasKey() {
    return codeNode >= 0 || isOfWinners();
  }

  /** The nodes that its task runs have beside the input. */
  List<Integer> moreNodes() {
    if (isOfWinners()) {
      return Arrays.stream(winnerNodes).skip(1).boxed().collect(Collectors.toList());
    }
    return hasKey() ? List.of(codeNode, keyNode) : List.of();
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof TapSpec
        && ((TapSpec) other).node == node
        && ((TapSpec) other).config.applicationId.equals(config.applicationId);
  }

  @Override
  public int hashCode() {
    return 31 * config.applicationId.hashCode() + node;
  }

  @Override
  public String toString() {
    return Integer.toString(node);
  }
}
