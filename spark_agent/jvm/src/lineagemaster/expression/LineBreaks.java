package lineagemaster.expression;

import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/** Looks for what would make a record of a file of lines several of its lines, or none. Called once a row. */
public final class LineBreaks {
  private static final long LOW = 0x0101010101010101L;
  private static final long HIGH = 0x8080808080808080L;

  private LineBreaks() {}

  /** Does it hold the end of a line? */
  public static boolean in(UTF8String text) {
    Object base = text.getBaseObject();
    long offset = text.getBaseOffset();
    int size = text.numBytes();
    int at = 0;
    for (; at + 8 <= size; at += 8) { // eight bytes at a time: a zero byte where one is as wanted
      long eight = Platform.getLong(base, offset + at);
      long feed = eight ^ LOW * '\n';
      long carriage = eight ^ LOW * '\r';
      if (((feed - LOW & ~feed | carriage - LOW & ~carriage) & HIGH) != 0) {
        return true;
      }
    }
    for (; at < size; at++) {
      byte one = Platform.getByte(base, offset + at);
      if (one == '\n' || one == '\r') {
        return true;
      }
    }
    return false;
  }

  /** Is there nothing in it but what Java's trim() takes away? */
  public static boolean isBlank(UTF8String text) {
    return text.toString().trim().isEmpty();
  }
}
