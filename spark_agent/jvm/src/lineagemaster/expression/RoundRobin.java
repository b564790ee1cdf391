package lineagemaster.expression;

import java.util.Arrays;
import org.apache.spark.TaskContext;
import org.apache.spark.unsafe.hash.Murmur3_x86_32;
import org.apache.spark.util.random.XORShiftRandom;

/**
 * The round-robin partitioning of Spark's `repartition(n)`: a task's rows go to one partition after the other,
 * beginning at a random one that the task's partition decides. Spark takes a row to the partition that the hash of its
 * number says. So the numbers are those whose hashes are the partitions.
 */
public final class RoundRobin {
  /** Of the hash by which Spark partitions rows. */
  private static final int SEED = 42;
  private static final long NONE = -1;

  private final long[] numbers;
  private int position;

  public RoundRobin(int partitions) {
    this(numbers(partitions), new XORShiftRandom(TaskContext.get().partitionId()).nextInt(partitions));
  }

  private RoundRobin(long[] numbers, int position) {
    this.numbers = numbers;
    this.position = position;
  }

  /** For the next row. */
  public long next() {
    position++;
    return numbers[Math.floorMod(position, numbers.length)];
  }

  /** For each partition a number that Spark takes there. */
  private static long[] numbers(int partitions) {
    long[] numbers = new long[partitions];
    Arrays.fill(numbers, NONE);
    int missing = partitions;
    for (long number = 0; missing > 0; number++) {
      int partition = Math.floorMod(Murmur3_x86_32.hashLong(number, SEED), partitions);
      if (numbers[partition] == NONE) {
        numbers[partition] = number;
        missing--;
      }
    }
    return numbers;
  }
}
