package lineagemaster.delivery;

/** A Kafka client as `Sender` sees it. What implements it lives in another class loader, so all here is public. */
public interface BrokerClient {
  /** Begin to ask the broker about a topic; takes `Sender.STEP_MS` at most. */
  void prepare(String topic);

  /**
   * Queue one message; takes `Sender.STEP_MS` at most.
   *
   * @param partition -1 leaves the choice to the key
   * @return why it cannot be queued now but may be later, or null: it was queued, or it is lost and reported
   */
  String send(String topic, int partition, byte[] key, byte[] message, DeliveryTally tally);
}
