package lineagemaster.capture;

import java.io.IOException;
import java.net.URI;
import org.apache.hadoop.fs.Path;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.hadoop.metadata.BlockMetaData;
import org.apache.parquet.hadoop.util.HadoopInputFile;
import org.apache.spark.deploy.SparkHadoopUtil;

/**
 * The rows of Parquet files by their row groups, for scans that do not give the index of a row. A split of a file has
 * the row groups whose middle is in it.
 */
final class ParquetGroups {
  /** How the names of such files end. */
  static final String ENDING = ".parquet";

  private ParquetGroups() {}

  /**
   * How many rows of a file are before those of its split that begins at the byte `start`; -1 where this is not known.
   *
   * @param uri as Spark names the file to its tasks
   */
  static long rowsBefore(String uri, long start) {
    if (start == 0) {
      return 0;
    }
    try (ParquetFileReader file = ParquetFileReader.open(
        HadoopInputFile.fromPath(new Path(URI.create(uri)), SparkHadoopUtil.get().conf()))) {
      return file.getFooter().getBlocks().stream()
          .filter(group -> group.getStartingPos() + group.getCompressedSize() / 2 < start)
          .mapToLong(BlockMetaData::getRowCount)
          .sum();
    } catch (IOException | RuntimeException | LinkageError error) {
      return -1; // the rows are known by their positions in the split
    }
  }
}
