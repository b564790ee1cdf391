package lineagemaster.delivery;

import java.io.Serializable;
import java.util.HashMap;
import java.util.Map;

/**
 * What every expression of one application shares. It travels with the tasks, so executors need no settings of
 * their own. The options may hold passwords: they are never part of a text.
 */
public final class AgentConfig implements Serializable {
  private static final long serialVersionUID = 1;

  public final String applicationId;
  public final HashMap<String, String> clientOptions;
  public final String contractVersion;
  public final String nodeTopic;
  public final String flowTopic;
  public final int flowPartitions;
  public final ManifestAccumulator manifests;
  public final ManifestAccumulator failures;
  public final double waitBudgetSeconds;
  public final String compression;
  public final boolean failsOnLoss;
  public final String spoolFolder;
  public final long spoolMaxBytes;
  public final boolean isSpoolSynced;
  public final boolean isSilent;
  private volatile boolean attendsCalls;

  /**
   * @param clientOptions of Kafka's Java client, bootstrap.servers among them
   * @param contractVersion of events, see docs/contract.md
   * @param nodeTopic where events go
   * @param flowTopic where blocks go
   * @param flowPartitions of that topic, from which a block's topic partition follows
   * @param manifests of attempts that succeeded
   * @param failures what attempts that failed have to say
   * @param waitBudgetSeconds how long all waits of one JVM for the broker may take together
   * @param compression of messages, as Kafka names it
   * @param failsOnLoss does a task fail that lost lineage (spark.lineage.onError=fail)
   * @param spoolFolder of messages that no broker took in time; empty: beside Spark's local folders
   * @param spoolMaxBytes how much it may take; 0: there is none
   * @param isSpoolSynced does a write wait for the disk
   * @param isSilent is nothing sent, since nobody asks for the lineage of this run
   */
  public AgentConfig(
      String applicationId,
      Map<String, String> clientOptions,
      String contractVersion,
      String nodeTopic,
      String flowTopic,
      int flowPartitions,
      ManifestAccumulator manifests,
      ManifestAccumulator failures,
      double waitBudgetSeconds,
      String compression,
      boolean failsOnLoss,
      String spoolFolder,
      long spoolMaxBytes,
      boolean isSpoolSynced,
      boolean isSilent) {
    this.applicationId = applicationId;
    this.clientOptions = new HashMap<>(clientOptions);
    this.contractVersion = contractVersion;
    this.nodeTopic = nodeTopic;
    this.flowTopic = flowTopic;
    this.flowPartitions = flowPartitions;
    this.manifests = manifests;
    this.failures = failures;
    this.waitBudgetSeconds = waitBudgetSeconds;
    this.compression = compression;
    this.failsOnLoss = failsOnLoss;
    this.spoolFolder = spoolFolder;
    this.spoolMaxBytes = spoolMaxBytes;
    this.isSpoolSynced = isSpoolSynced;
    this.isSilent = isSilent;
  }

  /** From now on, tasks let workers of Python say on which row a function fails. */
  public void attendCalls() {
    attendsCalls = true;
  }

  public boolean attendsCalls() {
    return attendsCalls;
  }
}
