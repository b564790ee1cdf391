package lineagemaster.capture;

import java.util.Arrays;

/**
 * A task's dictionary: gives each key a small number, in the order in which keys come. When it holds a million keys it
 * forgets them and counts on. So a key may have several codes, and memory is bounded. Open addressing by the key
 * itself, which is a hash.
 */
final class KeyCodes {
  private static final int MAX_KEYS = 1 << 20;

  private long[] keys = new long[1 << 10];
  private int[] codes = new int[keys.length]; // 1 + code - base; 0: free
  private long base;
  private int keyCount;
  private final long[] newKeys;
  private int newCount;

  /** @param maxNew new keys that it can hold until they are taken */
  KeyCodes(int maxNew) {
    newKeys = new long[maxNew];
  }

  /** The code of a key. */
  long of(long key) {
    int mask = keys.length - 1;
    int slot = (int) key & mask;
    while (codes[slot] != 0) {
      if (keys[slot] == key) {
        return base + codes[slot] - 1;
      }
      slot = slot + 1 & mask;
    }
    keys[slot] = key;
    codes[slot] = ++keyCount;
    newKeys[newCount++] = key;
    long code = base + keyCount - 1;
    if (keyCount == MAX_KEYS) {
      Arrays.fill(codes, 0);
      base += keyCount;
      keyCount = 0;
    } else if (keyCount * 2 > mask) {
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
        int slot = (int) oldKeys[i] & mask;
        while (codes[slot] != 0) {
          slot = slot + 1 & mask;
        }
        keys[slot] = oldKeys[i];
        codes[slot] = oldCodes[i];
      }
    }
  }

  /** How many codes there are. */
  long size() {
    return base + keyCount;
  }

  /** How many new keys wait to be taken: those of the last codes. */
  int newCount() {
    return newCount;
  }

  /** Takes the new keys: to be read before the next call of `of`. */
  long[] takeNew() {
    newCount = 0;
    return newKeys;
  }
}
