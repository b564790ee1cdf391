package lineagemaster.delivery;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.zip.CRC32;

/** One message to Kafka, and whose it is. It is known by identity: two may have the same content. */
public final class Message {
  /** What becomes of messages that the broker did not take. */
  interface Keeper {
    void failed(Message message, String reason, boolean isOfMessage);
  }

  static final int HEAD = 8;
  static final int BODY_HEAD = 8;

  public final String topic;
  /** -1 leaves the choice to the key. */
  public final int partition;
  public final byte[] key;
  public final byte[] value;
  private final DeliveryTally tally;
  private final Keeper keeper;

  Message(String topic, int partition, byte[] key, byte[] value, DeliveryTally tally, Keeper keeper) {
    this.topic = topic;
    this.partition = partition;
    this.key = key;
    this.value = value;
    this.tally = tally;
    this.keeper = keeper;
  }

  DeliveryTally tally() {
    return tally;
  }

  /** It is on its way. */
  public void sent() {
    tally.sent(this);
  }

  /** It never left. */
  public void unsent() {
    tally.arrived(this);
  }

  /** The broker has it. */
  public void arrived() {
    tally.arrived(this);
  }

  /** The broker did not take it. `isOfMessage`: no broker ever will. */
  public void failed(String reason, boolean isOfMessage) {
    keeper.failed(this, reason, isOfMessage);
  }

  /** As a record of a spool file, see spark_agent/contract/spool_files.py. */
  byte[] asRecord() {
    byte[] topicName = topic.getBytes(StandardCharsets.UTF_8);
    int length = BODY_HEAD + topicName.length + key.length + value.length;
    ByteBuffer record = ByteBuffer.allocate(HEAD + length);
    record.position(HEAD);
    record.putInt(partition).putShort((short) topicName.length).putShort((short) key.length);
    record.put(topicName).put(key).put(value);
    CRC32 checksum = new CRC32();
    checksum.update(record.array(), HEAD, length);
    record.putInt(0, (int) checksum.getValue()).putInt(4, length);
    return record.array();
  }
}
