package lineagemaster.delivery;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/** One block of columns as bytes, as docs/contract.md says: preamble, JSON header, the columns' bytes by planes. */
public final class FlowBlock {
  private static final byte[] MARK = {'L', 'M', 'F', 'B'};
  private static final byte MAJOR = 1;
  private static final byte MINOR = 4;
  private static final int PREAMBLE = 10;

  private final int node;
  private final String relation;
  private int source = -1;
  private long baseIn;
  private long baseOut;
  private final List<Part> columns = new ArrayList<>();

  public FlowBlock(int node, String relation) {
    this.node = node;
    this.relation = relation;
  }

  /** The node whose ids the inputs are. */
  public FlowBlock from(int node) {
    source = node;
    return this;
  }

  /** The number of the first input. */
  public FlowBlock inputs(long first) {
    baseIn = first;
    return this;
  }

  /** The number of the first output. */
  public FlowBlock outputs(long first) {
    baseOut = first;
    return this;
  }

  /** The first `count` of these values, which must stay until the block is encoded. None is negative. */
  public FlowBlock column(String name, long[] values, int count) {
    return column(name, values, count, 0);
  }

  /** The same, of the differences between these values and `base`. No value is smaller than it. */
  public FlowBlock column(String name, long[] values, int count, long base) {
    columns.add(new Column(name, values, count, base));
    return this;
  }

  /** The column of texts of one type, `str`: the first `count` lengths in bytes, and the texts in UTF-8. */
  public FlowBlock texts(long[] lengths, int count, byte[] utf8, int size) {
    columns.add(new Texts(new Column("text", lengths, count, 0), utf8, size));
    return this;
  }

  /** The message. */
  public byte[] encoded(String applicationId, long run, int partition, int sequence) {
    StringBuilder head = new StringBuilder(300);
    head.append("{\"application_id\":").append(Json.quoted(applicationId)).append(",\"node\":").append(node);
    head.append(",\"run\":").append(run).append(",\"split\":").append(partition).append(",\"seq\":").append(sequence);
    head.append(",\"relation\":\"").append(relation).append("\",\"base_in\":").append(baseIn);
    head.append(",\"base_out\":").append(baseOut);
    if (source >= 0) {
      head.append(",\"source\":").append(source);
    }
    head.append(",\"columns\":[");
    int size = 0;
    for (int i = 0; i < columns.size(); i++) {
      head.append(i == 0 ? "" : ",");
      columns.get(i).describe(head);
      size += columns.get(i).bytes();
    }
    byte[] header = head.append("]}").toString().getBytes(StandardCharsets.US_ASCII);
    byte[] message = new byte[PREAMBLE + header.length + size];
    ByteBuffer buffer = ByteBuffer.wrap(message).order(ByteOrder.LITTLE_ENDIAN);
    buffer.put(MARK).put(MAJOR).put(MINOR).putInt(header.length).put(header);
    int offset = buffer.position();
    for (Part column : columns) {
      column.write(message, offset);
      offset += column.bytes();
    }
    return message;
  }

  /** A column as the header describes it, and its bytes. */
  private interface Part {
    int bytes();

    void describe(StringBuilder head);

    void write(byte[] message, int begin);
  }

  /** Texts behind their lengths. */
  private static final class Texts implements Part {
    private final Column lengths;
    private final byte[] utf8;
    private final int size;

    Texts(Column lengths, byte[] utf8, int size) {
      this.lengths = lengths;
      this.utf8 = utf8;
      this.size = size;
    }

    @Override
    public int bytes() {
      return lengths.bytes() + size;
    }

    @Override
    public void describe(StringBuilder head) {
      head.append("{\"name\":\"text\",\"count\":").append(lengths.count).append(",\"bytes\":").append(bytes());
      head.append(",\"type\":\"plain\",\"types\":[\"str\"],\"width\":").append(lengths.width);
      head.append(",\"delta\":").append(lengths.isDelta).append('}');
    }

    @Override
    public void write(byte[] message, int begin) {
      lengths.write(message, begin);
      System.arraycopy(utf8, 0, message, begin + lengths.bytes(), size);
    }
  }

  /** A column in the narrowest width that holds it. One that never descends is written as differences. */
  private static final class Column implements Part {
    private final String name;
    private final long[] values;
    private final int count;
    private final long base;
    private final boolean isDelta;
    private final long laterBits; // those that are set in any number behind the first one
    private final int width;

    Column(String name, long[] values, int count, long base) {
      this.name = name;
      this.values = values;
      this.count = count;
      this.base = base;
      int end = 1;
      long bitsOfRest = 0;
      while (end < count && values[end] >= values[end - 1]) {
        bitsOfRest |= values[end] - values[end - 1];
        end++;
      }
      isDelta = count > 1 && end == count;
      if (!isDelta) {
        bitsOfRest = 0;
        for (int i = 1; i < count; i++) {
          bitsOfRest |= values[i] - base;
        }
      }
      laterBits = bitsOfRest;
      int bits = count == 0 ? 0 : 64 - Long.numberOfLeadingZeros(laterBits | values[0] - base);
      width = bits <= 8 ? 1 : bits <= 16 ? 2 : bits <= 32 ? 4 : 8;
    }

    @Override
    public int bytes() {
      return count * width;
    }

    @Override
    public void describe(StringBuilder head) {
      head.append("{\"name\":\"").append(name).append("\",\"count\":").append(count).append(",\"bytes\":");
      head.append(bytes()).append(",\"width\":").append(width).append(",\"delta\":").append(isDelta).append('}');
    }

    @Override
    public void write(byte[] message, int begin) {
      if (count == 0) {
        return;
      }
      for (int plane = 0, shift = 0; plane < width; plane++, shift += 8) {
        int offset = begin + plane * count;
        message[offset] = (byte) (values[0] - base >>> shift);
        if (laterBits >>> shift == 0) {
          continue; // the plane's other bytes are zero, as the message's are
        }
        if (isDelta) {
          for (int i = 1; i < count; i++) {
            message[offset + i] = (byte) (values[i] - values[i - 1] >>> shift);
          }
        } else {
          for (int i = 1; i < count; i++) {
            message[offset + i] = (byte) (values[i] - base >>> shift);
          }
        }
      }
    }
  }
}
