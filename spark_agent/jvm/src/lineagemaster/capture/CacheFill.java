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

/** The cached partitions that a task makes at one moment, and what becomes of them: one that it fails to make goes away. */
final class CacheFill {
  private final List<BlockId> blocks = new ArrayList<>();
  private boolean isUnknown;

  /** Those that the task which is running makes now. */
  CacheFill(TaskContext task) {
    try {
      Iterator<Tuple2<BlockId, BlockInfo>> all = held().entries();
      while (all.hasNext()) {
        Tuple2<BlockId, BlockInfo> each = all.next();
        if (each._2().writerTask() == task.taskAttemptId() && each._1().isRDD()) {
          blocks.add(each._1());
        }
      }
    } catch (Throwable error) { // another Spark than those that we know: what is told needlessly does no harm
      isUnknown = true;
    }
  }

  /** Is one of them there, when the task has ended? */
  boolean hasFilled() {
    return isUnknown || blocks.stream().anyMatch(each -> held().get(each).isDefined());
  }

  private static BlockInfoManager held() {
    return SparkEnv.get().blockManager().blockInfoManager();
  }
}
