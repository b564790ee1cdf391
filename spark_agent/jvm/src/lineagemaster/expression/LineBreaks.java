package lineagemaster.expression;

import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/** Finds texts that would make of one record several lines of a file, or none. Called once a row. */
public final class LineBreaks {
  private static final long LOW = 0x0101010101010101L;
  private static final long HIGH = 0x8080808080808080L;

  private LineBreaks() {}

  /** Does it hold the end of a line? */
  public static boolean in(UTF8String text) {
    Object base = text.getBaseObject();
    long offset = text.getBaseOffset();
    int size = text.numBytes();
    int i = 0;
    for (; i + 8 <= size; i += 8) { // eight bytes at a time: a byte of the result is zero where one matches
      long bytes = Platform.getLong(base, offset + i);
      long feed = bytes ^ LOW * '\n';
      long carriage = bytes ^ LOW * '\r';
      if (((feed - LOW & ~feed | carriage - LOW & ~carriage) & HIGH) != 0) {
        return true;
      }
    }
    for (; i < size; i++) {
      byte last = Platform.getByte(base, offset + i);
      if (last == '\n' || last == '\r') {
        return true;
      }
    }
    return false;
  }

  /** Does Java's trim() leave nothing of it? */
  public static boolean isBlank(UTF8String text) {
    return text.toString().trim().isEmpty();
  }
}
