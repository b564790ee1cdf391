package lineagemaster.capture;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.storage.BlockId;
import org.apache.spark.storage.BlockInfo;
import org.apache.spark.storage.BlockInfoManager;
import scala.Tuple2;
import scala.collection.Iterator;

/**
 * The cached partitions that a task was writing at one moment, and what became of them. Spark removes one that the task
 * could not write to its end.
 */
final class CacheFill {
  private final List<BlockId> writtenBlocks = new ArrayList<>();
  private boolean isUnknown;

  /** Those that the running task writes now. */
  CacheFill(TaskContext task) {
    try {
      Iterator<Tuple2<BlockId, BlockInfo>> entries = blockManager().entries();
      while (entries.hasNext()) {
        Tuple2<BlockId, BlockInfo> entry = entries.next();
        if (entry._2().writerTask() == task.taskAttemptId() && entry._1().isRDD()) {
          writtenBlocks.add(entry._1());
        }
      }
    } catch (Throwable error) { // a Spark that we do not know: a run that is reported needlessly does no harm
      isUnknown = true;
    }
  }

  /** Is one of them in the cache, when the task has ended? */
  boolean isCached() {
    return isUnknown || writtenBlocks.stream().anyMatch(block -> blockManager().get(block).isDefined());
  }

  private static BlockInfoManager blockManager() {
    return SparkEnv.get().blockManager().blockInfoManager();
  }
}
