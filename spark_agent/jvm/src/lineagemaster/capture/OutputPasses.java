package lineagemaster.capture;

import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The partitions of an output that one task attempt computes: mostly one; several where their RDD was coalesced, and one
 * of them more than once where it is zipped or multiplied with itself. Each pass counts its rows from 0, and of one
 * partition the pass that went furthest counts.
 */
final class OutputPasses implements TaskCapture.Part {
  /** So many partitions have large arrays; others send smaller blocks. */
  private static final int LARGE = 8;

  private final Map<Integer, List<TapBuffer>> passes = new LinkedHashMap<>();

  private final List<TapBuffer> counting = new ArrayList<>(); // none until the attempt has ended

  synchronized TapBuffer open(TapSpec spec, int partition) {
    List<TapBuffer> known = passes.computeIfAbsent(partition, none -> new ArrayList<>());
    TapBuffer pass = TapBuffer.ofOutput(spec, partition, passes.size() > LARGE, this);
    if (known.isEmpty()) { // else it may be one that gets no rows: of a branch of a union that this task does not read
      known.add(pass);
    }
    return pass;
  }

  /** A pass gets its first row. */
  synchronized void enter(TapBuffer pass, int partition) {
    List<TapBuffer> known = passes.get(partition);
    if (!known.contains(pass)) {
      if (known.size() > 2) { // what a product reads once for each batch of its other side must not pile up
        known.remove(Collections.min(known, Comparator.comparingLong(TapBuffer::seen)));
      }
      known.add(pass);
    }
  }

  @Override
  public synchronized boolean hasFilled() {
    return passes.values().stream().flatMap(List::stream).anyMatch(TapBuffer::hasFilled);
  }

  @Override
  public synchronized void keep() {
    choose();
    counting.forEach(TapBuffer::keep);
  }

  @Override
  public synchronized void finish() {
    choose();
    counting.forEach(TapBuffer::finish);
  }

  private void choose() {
    if (counting.isEmpty()) {
      passes.values().forEach(each -> counting.add(Collections.max(each, Comparator.comparingLong(TapBuffer::seen))));
    }
  }

  @Override
  public synchronized void tell() {
    counting.forEach(TapBuffer::tell);
  }
}
