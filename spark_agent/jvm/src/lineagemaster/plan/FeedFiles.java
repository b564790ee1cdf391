package lineagemaster.plan;

import org.apache.spark.sql.execution.datasources.HadoopFsRelation;

/**
 * The files that one scan of a change data feed reads. Spark takes them to be of another size: it does not know that of
 * a feed, and chooses by it how to join, on which the order of rows depends.
 */
final class FeedFiles extends HadoopFsRelation {
  private static final long serialVersionUID = 1;

  private final long size;

  FeedFiles(HadoopFsRelation files, long size) {
    super(files.location(), files.partitionSchema(), files.dataSchema(), files.bucketSpec(), files.fileFormat(),
        files.options(), files.sparkSession());
    this.size = size;
  }

  @Override
  public long sizeInBytes() {
    return size;
  }
}
