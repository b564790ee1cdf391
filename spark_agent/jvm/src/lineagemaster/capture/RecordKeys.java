package lineagemaster.capture;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import lineagemaster.delivery.AgentConfig;
import lineagemaster.delivery.DeliveryTally;
import lineagemaster.delivery.FlowBlock;
import lineagemaster.delivery.Sender;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * The keys that name the records of one partition of a scan, or of an output: `column=value` of each column of a primary key, joined by
 * commas. Where there are several columns, a comma or a backslash in a value stands behind a backslash. Sends them as
 * blocks of `keys`. Nothing here throws into the job.
 */
public final class RecordKeys {
  /** As a key may have characters in docs/contract.md. */
  private static final int MAX_CHARACTERS = 4096;
  private static final int MAX_ROWS = 1 << 16;
  private static final int MAX_BYTES = 1 << 19;
  private static final UTF8String CUT = UTF8String.fromString("…");
  private static final UTF8String NULL = UTF8String.fromString("null");

  private final AgentConfig config;
  private final int node;
  private final int partition;
  private final long run;
  private final byte[] messageKey;
  private final TapBuffer output; // whose records they name, and which sends them; null: of a scan
  private final DeliveryTally tally = new DeliveryTally();
  private long[] lengths = new long[0];
  private byte[] texts = new byte[0];
  private int count;
  private int size;
  private long first; // the position of the first one that is not sent
  private int blockCount;
  private int cutCount;

  /** Those of a scan. */
  RecordKeys(AgentConfig config, int node, int partition, long run) {
    this(config, node, partition, run, null);
  }

  /** Those of a run of an output, which sends them among its own blocks. */
  RecordKeys(AgentConfig config, int node, int partition, long run, TapBuffer output) {
    this.config = config;
    this.node = node;
    this.partition = partition;
    this.run = run;
    this.output = output;
    this.messageKey = (config.applicationId + "#" + run).getBytes(StandardCharsets.UTF_8);
  }

  /** Those of the partition that the record with this id is in, in the running task. */
  public static RecordKeys of(AgentConfig config, int node, long id) {
    return ScanPositions.keys(config, node, ScanPositions.partition(id));
  }

  /** Is the record with this id in its partition? */
  public boolean isOf(long id) {
    return ScanPositions.partition(id) == partition;
  }

  /** Notes the key of a record. A second pass over the partition gives the same records again. */
  public synchronized void note(long id, List<String> columns, UTF8String[] values) {
    long position = ScanPositions.position(id);
    if (position < first + count || config.isSilent || !CaptureStages.IS_SENT) {
      return;
    }
    try {
      if (count == MAX_ROWS || size > MAX_BYTES || position > first + count) {
        send();
        first = position;
      }
      add(text(columns, values));
    } catch (Throwable error) { // an agent bug, or memory is short: the record is known by its position
      countBug(error);
      first = position + 1;
      count = 0;
      size = 0;
    }
  }

  private UTF8String text(List<String> columns, UTF8String[] values) {
    UTF8String text = UTF8String.fromString(columns.get(0) + "=");
    text = UTF8String.concat(text, escaped(values[0], values.length));
    for (int i = 1; i < values.length; i++) {
      UTF8String name = UTF8String.fromString("," + columns.get(i) + "=");
      text = UTF8String.concat(text, name, escaped(values[i], values.length));
    }
    if (text.numBytes() > MAX_CHARACTERS && text.numChars() > MAX_CHARACTERS) {
      cutCount++;
      return UTF8String.concat(text.substring(0, MAX_CHARACTERS - 1), CUT);
    }
    return text;
  }

  private static UTF8String escaped(UTF8String value, int columns) {
    if (value == null) {
      return NULL;
    }
    String text = columns == 1 ? "" : value.toString();
    if (text.indexOf(',') < 0 && text.indexOf('\\') < 0) {
      return value;
    }
    return UTF8String.fromString(text.replace("\\", "\\\\").replace(",", "\\,"));
  }

  private void add(UTF8String text) {
    byte[] bytes = text.getBytes();
    if (count == lengths.length) {
      lengths = Arrays.copyOf(lengths, Math.max(1 << 8, count * 4));
    }
    if (size + bytes.length > texts.length) {
      texts = Arrays.copyOf(texts, Math.max(1 << 12, (size + bytes.length) * 2));
    }
    System.arraycopy(bytes, 0, texts, size, bytes.length);
    size += bytes.length;
    lengths[count++] = bytes.length;
  }

  /** Sends what is left. */
  synchronized void finish() {
    try {
      send();
    } catch (Throwable error) { // an agent bug, which must not fail the job
      countBug(error);
    }
  }

  private void countBug(Throwable error) {
    if (output != null) {
      output.countBug(error);
      return;
    }
    blockCount++;
    tally.failed("an agent bug: " + error);
  }

  private void send() {
    if (count > 0) {
      FlowBlock block = new FlowBlock(node, "keys").outputs(first).texts(lengths, count, texts, size);
      if (output == null) {
        byte[] message = block.encoded(config.applicationId, run, partition, blockCount++);
        Sender.of(config).send(config.flowTopic, partition % config.flowPartitions, messageKey, message, tally);
      } else {
        output.send(block);
      }
    }
    first += count;
    count = 0;
    size = 0;
  }

  int blockCount() {
    return blockCount;
  }

  int cutCount() {
    return cutCount;
  }

  DeliveryTally tally() {
    return tally;
  }
}
