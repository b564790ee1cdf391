package lineagemaster.delivery;

/** A Kafka client as `Sender` sees it. What implements it lives in another class loader, so all here is public. */
public interface BrokerClient {
  /** How many partitions a topic has; 0 while that is not known. Takes `Sender.STEP_MS` at most, a patient one longer. */
  int partitions(String topic);

  /**
   * Queue one message; takes `Sender.STEP_MS` at most, a patient one longer. The message is told what becomes of it.
   *
   * @param partition in place of the message's own; -1 leaves the choice to the key
   * @return why it cannot be queued now but may be later, or null: it was queued, or it is lost and reported
   */
  String send(Message message, int partition);
}
