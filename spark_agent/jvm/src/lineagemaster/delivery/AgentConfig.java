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
  public final HashMap<String, String> options;
  public final String version;
  public final String nodeTopic;
  public final String topic;
  public final int partitions;
  public final ManifestAccumulator manifests;
  public final double patience;
  public final String compression;
  public final boolean failsOnLoss;

  /**
   * @param options of Kafka's Java client, bootstrap.servers among them
   * @param version of the contract
   * @param nodeTopic where events go
   * @param topic where blocks go
   * @param partitions of that topic, which a block's partition follows from
   * @param patience seconds that all waits of one JVM for the broker take together
   * @param failsOnLoss does a task fail that lost lineage (spark.lineage.onError=fail)
   */
  public AgentConfig(
      String applicationId,
      Map<String, String> options,
      String version,
      String nodeTopic,
      String topic,
      int partitions,
      ManifestAccumulator manifests,
      double patience,
      String compression,
      boolean failsOnLoss) {
    this.applicationId = applicationId;
    this.options = new HashMap<>(options);
    this.version = version;
    this.nodeTopic = nodeTopic;
    this.topic = topic;
    this.partitions = partitions;
    this.manifests = manifests;
    this.patience = patience;
    this.compression = compression;
    this.failsOnLoss = failsOnLoss;
  }
}
