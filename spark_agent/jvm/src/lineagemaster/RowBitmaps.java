package lineagemaster;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.util.Base64;
import java.util.zip.Deflater;

/** The bitmaps of an output's rows in one task, in their order: 8 bytes a row, compressed. */
final class RowBitmaps {
  /** The most bytes of a task: the driver keeps them. */
  private static final int MOST = 8 << 20;
  /** Rows that are compressed at a time. */
  private static final int CHUNK = 1 << 12;

  private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
  private final Deflater deflater = new Deflater(Deflater.BEST_SPEED);
  private final byte[] compressed = new byte[1 << 15];
  private boolean isLost;

  void add(long[] column, int count) {
    for (int from = 0; from < count && !isLost; from += CHUNK) {
      int rows = Math.min(CHUNK, count - from);
      ByteBuffer raw = ByteBuffer.allocate(rows * Long.BYTES);
      raw.asLongBuffer().put(column, from, rows);
      deflater.setInput(raw.array());
      while (!deflater.needsInput()) {
        bytes.write(compressed, 0, deflater.deflate(compressed));
      }
      isLost = bytes.size() > MOST;
    }
  }

  /** The rows' big-endian longs in zlib's format, in Base64; empty where they are too many. */
  String text() {
    try {
      deflater.finish();
      while (!isLost && !deflater.finished()) {
        bytes.write(compressed, 0, deflater.deflate(compressed));
      }
      return isLost ? "" : Base64.getEncoder().encodeToString(bytes.toByteArray());
    } finally {
      deflater.end(); // what it holds is no memory of the JVM's heap
    }
  }
}
