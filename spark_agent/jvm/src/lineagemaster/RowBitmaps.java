package lineagemaster;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.util.Base64;
import java.util.zip.Deflater;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;

/** The bitmaps of an output's rows in one task, in their order: 8 bytes a row, compressed. */
final class RowBitmaps {
  /** The most bytes of a task, and of all tasks of a stage: the driver keeps them. */
  private static final long MOST = 8 << 20;
  private static final long MOST_OF_ALL = 128 << 20;
  /** Of what tasks may send to the driver in all (spark.driver.maxResultSize), a job fails that sends more. */
  private static final int SHARE = 8;
  /** Rows that are compressed at a time. */
  private static final int CHUNK = 1 << 12;

  private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
  private final Deflater deflater = new Deflater(Deflater.BEST_SPEED);
  private final byte[] compressed = new byte[1 << 15];
  private final long most;
  private boolean isLost;

  /** @param task the running one, or null */
  RowBitmaps(TaskContext task) {
    long results = SparkEnv.get().conf().getSizeAsBytes("spark.driver.maxResultSize", "1g");
    long all = results > 0 ? Math.min(MOST_OF_ALL, results / SHARE) : MOST_OF_ALL;
    most = task == null ? 0 : Math.min(MOST, all / Math.max(1, task.numPartitions()));
  }

  void add(long[] column, int count) {
    for (int from = 0; from < count && !isLost; from += CHUNK) {
      int rows = Math.min(CHUNK, count - from);
      ByteBuffer raw = ByteBuffer.allocate(rows * Long.BYTES);
      raw.asLongBuffer().put(column, from, rows);
      deflater.setInput(raw.array());
      while (!deflater.needsInput()) {
        bytes.write(compressed, 0, deflater.deflate(compressed));
      }
      isLost = bytes.size() > most;
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
