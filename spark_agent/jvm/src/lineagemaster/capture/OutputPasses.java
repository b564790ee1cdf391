package lineagemaster.capture;

import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The partitions of an output that one task attempt computes. Mostly it is one. There are several where their RDD was
 * coalesced, and one is computed more than once where it is zipped or multiplied with itself. Each pass counts its rows
 * from 0. Of the passes over one partition, the one that went furthest counts.
 */
final class OutputPasses implements TaskCapture.Part {
  /** So many partitions have large arrays; more of them send smaller blocks. */
  private static final int LARGE = 8;
  /** So many passes over one partition are remembered. */
  private static final int MAX_PASSES = 3;

  private final Map<Integer, List<TapBuffer>> passesByPartition = new LinkedHashMap<>();

  private final List<TapBuffer> furthest = new ArrayList<>(); // of each partition; empty until the attempt has ended

  synchronized TapBuffer open(TapSpec spec, int partition) {
    List<TapBuffer> passes = passesByPartition.computeIfAbsent(partition, missing -> new ArrayList<>());
    TapBuffer pass = TapBuffer.ofOutput(spec, partition, passesByPartition.size() > LARGE, this);
    if (passes.isEmpty()) { // else it may get no rows: it may be of a branch of a union that this task does not read
      passes.add(pass);
    }
    return pass;
  }

  /** A pass gets its first row. */
  synchronized void enter(TapBuffer pass, int partition) {
    List<TapBuffer> passes = passesByPartition.get(partition);
    if (!passes.contains(pass)) {
      if (passes.size() == MAX_PASSES) { // a cartesian product reads it once for each batch of its other side
        passes.remove(Collections.min(passes, Comparator.comparingLong(TapBuffer::rowCount)));
      }
      passes.add(pass);
    }
  }

  @Override
  public synchronized boolean hasFilledCache() {
    return passesByPartition.values().stream().flatMap(List::stream).anyMatch(TapBuffer::hasFilledCache);
  }

  @Override
  public synchronized boolean isReadInPython() {
    return passesByPartition.values().stream().flatMap(List::stream).anyMatch(TapBuffer::isReadInPython);
  }

  @Override
  public synchronized void report() {
    choose();
    furthest.forEach(TapBuffer::report);
  }

  @Override
  public synchronized void reportCached() {
    choose();
    furthest.forEach(TapBuffer::reportCached);
  }

  @Override
  public synchronized void finish() {
    choose();
    furthest.forEach(TapBuffer::finish);
  }

  @Override
  public synchronized void describe(FailureReport report) {
    passesByPartition.values().forEach(passes -> passes.forEach(pass -> pass.describe(report)));
  }

  private void choose() {
    if (furthest.isEmpty()) {
      for (List<TapBuffer> passes : passesByPartition.values()) {
        furthest.add(Collections.max(passes, Comparator.comparingLong(TapBuffer::rowCount)));
      }
    }
  }

  @Override
  public synchronized void commit() {
    furthest.forEach(TapBuffer::commit);
  }
}
