package lineagemaster;

import java.io.Serializable;
import java.util.HashMap;
import java.util.Map;

/**
 * What every expression of one application shares. It travels with the tasks, so executors need no settings of
 * their own. The options may hold passwords: they are never part of a text.
 */
public final class Common implements Serializable {
  private static final long serialVersionUID = 1;

  final String applicationId;
  final HashMap<String, String> options;
  final String version;
  final String nodeTopic;
  final String topic;
  final int partitions;
  final Manifests manifests;
  final double patience;
  final String compression;
  final boolean failsOnLoss;

  /**
   * @param options of Kafka's Java client, bootstrap.servers among them
   * @param version of the contract
   * @param nodeTopic where events go
   * @param topic where blocks go
   * @param partitions of that topic, which a block's partition follows from
   * @param patience seconds that all waits of one JVM for the broker take together
   * @param failsOnLoss does a task fail that lost lineage (spark.lineage.onError=fail)
   */
  public Common(
      String applicationId,
      Map<String, String> options,
      String version,
      String nodeTopic,
      String topic,
      int partitions,
      Manifests manifests,
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
