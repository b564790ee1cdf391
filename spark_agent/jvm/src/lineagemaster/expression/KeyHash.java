package lineagemaster.expression;

import org.apache.spark.sql.types.Decimal;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.CalendarInterval;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * The hash of a key, column by column: the hash of the columns before and a value give the hash of both. Values are
 * read eight bytes at a time and mixed by folding a product of 128 bits, as in wyhash (Wang Yi, 2019): a short text
 * costs two multiplications. Called from generated code once a row and column.
 */
public final class KeyHash {
  /** Of no columns. */
  public static final long START = 0x243f6a8885a308d3L;

  private static final long WORD_FACTOR = 0x9e3779b97f4a7c15L;
  private static final long END_FACTOR = 0xd1342543de82ef95L;
  private static final int NULL_SIZE = -1;

  private KeyHash() {}

  /** Behind a null. No value of the column is hashed like this, whether the column may have nulls or not. */
  public static long ofNull(long before) {
    return ended(before, NULL_SIZE);
  }

  public static long of(long before, boolean value) {
    return of(before, value ? 1L : 0L);
  }

  public static long of(long before, int value) {
    return of(before, (long) value);
  }

  public static long of(long before, long value) {
    return ended(mixed(before ^ value, WORD_FACTOR), Long.BYTES);
  }

  /** Zeros and NaNs that count as equal have been normalised before. */
  public static long of(long before, float value) {
    return of(before, Float.floatToIntBits(value));
  }

  public static long of(long before, double value) {
    return of(before, Double.doubleToLongBits(value));
  }

  /** All values of a column have one scale. */
  public static long of(long before, Decimal value) {
    return value.precision() <= Decimal.MAX_LONG_DIGITS()
        ? of(before, value.toUnscaledLong())
        : of(before, value.toJavaBigDecimal().unscaledValue().toByteArray());
  }

  public static long of(long before, CalendarInterval value) {
    return of(of(of(before, value.months), value.days), value.microseconds);
  }

  public static long of(long before, byte[] value) {
    return of(before, value, Platform.BYTE_ARRAY_OFFSET, value.length);
  }

  public static long of(long before, UTF8String value) {
    return of(before, value.getBaseObject(), value.getBaseOffset(), value.numBytes());
  }

  /** A value of any of these classes, or null. */
  static long ofAny(long before, Object value) {
    if (value == null) {
      return ofNull(before);
    } else if (value instanceof UTF8String) {
      return of(before, (UTF8String) value);
    } else if (value instanceof byte[]) {
      return of(before, (byte[]) value);
    } else if (value instanceof Decimal) {
      return of(before, (Decimal) value);
    } else if (value instanceof CalendarInterval) {
      return of(before, (CalendarInterval) value);
    } else if (value instanceof Double) {
      return of(before, (double) value);
    } else if (value instanceof Float) {
      return of(before, (float) value);
    } else if (value instanceof Boolean) {
      return of(before, (boolean) value);
    }
    return of(before, ((Number) value).longValue());
  }

  private static long of(long before, Object base, long offset, int size) {
    long hash = before;
    for (int i = 0; i + 8 < size; i += 8) {
      hash = mixed(hash ^ Platform.getLong(base, offset + i), WORD_FACTOR);
    }
    // The last bytes, eight at most; some may be read twice.
    long rest;
    if (size >= 8) {
      rest = Platform.getLong(base, offset + size - 8);
    } else if (size >= 4) {
      long high = Platform.getInt(base, offset + size - 4);
      rest = high << 32 | Platform.getInt(base, offset) & 0xffffffffL;
    } else if (size > 0) {
      long middle = Platform.getByte(base, offset + (size >> 1)) & 0xff;
      long last = Platform.getByte(base, offset + size - 1) & 0xff;
      rest = Platform.getByte(base, offset) & 0xff | middle << 8 | last << 16;
    } else {
      rest = 0;
    }
    return ended(mixed(hash ^ rest, WORD_FACTOR), size);
  }

  private static long ended(long hash, int size) {
    return mixed(hash ^ size, END_FACTOR);
  }

  /** The halves of the product of two numbers without signs, one upon the other. */
  private static long mixed(long value, long factor) {
    long high = Math.multiplyHigh(value, factor) + (value >> 63 & factor) + (factor >> 63 & value);
    return high ^ value * factor;
  }
}
