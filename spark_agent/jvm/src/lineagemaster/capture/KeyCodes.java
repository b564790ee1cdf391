package lineagemaster.capture;

import java.util.Arrays;

/**
 * A task's dictionary: gives each key a small number, in the order in which keys come. When it holds a million it
 * forgets them and counts on, so a key may have several codes; memory is bounded. Open addressing by the key itself,
 * which is a hash.
 */
final class KeyCodes {
  private static final int MOST = 1 << 20;

  private long[] keys = new long[1 << 10];
  private int[] codes = new int[keys.length]; // 1 + code - base; 0: free
  private long base;
  private int held;
  private final long[] fresh;
  private int waiting;

  /** @param mostWaiting new keys that it can hold until they are taken */
  KeyCodes(int mostWaiting) {
    fresh = new long[mostWaiting];
  }

  /** The code of a key. */
  long of(long key) {
    int mask = keys.length - 1;
    int place = (int) key & mask;
    while (codes[place] != 0) {
      if (keys[place] == key) {
        return base + codes[place] - 1;
      }
      place = place + 1 & mask;
    }
    keys[place] = key;
    codes[place] = ++held;
    fresh[waiting++] = key;
    long code = base + held - 1;
    if (held == MOST) {
      Arrays.fill(codes, 0);
      base += held;
      held = 0;
    } else if (held * 2 > mask) {
      grow();
    }
    return code;
  }

  private void grow() {
    long[] oldKeys = keys;
    int[] oldCodes = codes;
    keys = new long[oldKeys.length * 2];
    codes = new int[keys.length];
    int mask = keys.length - 1;
    for (int i = 0; i < oldKeys.length; i++) {
      if (oldCodes[i] != 0) {
        int place = (int) oldKeys[i] & mask;
        while (codes[place] != 0) {
          place = place + 1 & mask;
        }
        keys[place] = oldKeys[i];
        codes[place] = oldCodes[i];
      }
    }
  }

  /** How many codes were given. */
  long size() {
    return base + held;
  }

  /** How many new keys wait: those of the last codes. */
  int waiting() {
    return waiting;
  }

  /** The keys that wait, which wait no longer: to be read before the next call of `of`. */
  long[] taken() {
    waiting = 0;
    return fresh;
  }
}
