package lineagemaster.expression;

import java.util.Arrays;
import org.apache.spark.TaskContext;
import org.apache.spark.unsafe.hash.Murmur3_x86_32;
import org.apache.spark.util.random.XORShiftRandom;

/**
 * Deals the rows of a task out as Spark does for `repartition(n)`: to one partition after the other, beginning at a
 * random one that the task's partition decides. Spark takes a row where the hash of its number says: so the numbers
 * are those whose hashes are the partitions.
 */
public final class RoundRobin {
  /** Of the hash by which Spark spreads rows. */
  private static final int SEED = 42;
  private static final long NONE = -1;

  private final long[] numbers;
  private int position;

  public RoundRobin(int count) {
    this(numbers(count), new XORShiftRandom(TaskContext.get().partitionId()).nextInt(count));
  }

  private RoundRobin(long[] numbers, int position) {
    this.numbers = numbers;
    this.position = position;
  }

  public long next() {
    position++;
    return numbers[Math.floorMod(position, numbers.length)];
  }

  /** For each partition a number that Spark takes there. */
  static long[] numbers(int count) {
    long[] numbers = new long[count];
    Arrays.fill(numbers, NONE);
    int missing = count;
    for (long number = 0; missing > 0; number++) {
      int partition = Math.floorMod(Murmur3_x86_32.hashLong(number, SEED), count);
      if (numbers[partition] == NONE) {
        numbers[partition] = number;
        missing--;
      }
    }
    return numbers;
  }
}
