package lineagemaster.capture;

import java.io.IOException;
import java.net.URI;
import org.apache.hadoop.fs.Path;
import org.apache.orc.OrcFile;
import org.apache.orc.Reader;
import org.apache.orc.StripeInformation;
import org.apache.spark.deploy.SparkHadoopUtil;

/** The rows of ORC files by their stripes. A split of a file has the stripes that begin in it, all of each. */
final class OrcStripes {
  private OrcStripes() {}

  /**
   * How many rows of a file are before those of its split that begins at the byte `start`; -1 where this is not known.
   *
   * @param uri as Spark names the file to its tasks
   */
  static long rowsBefore(String uri, long start) {
    if (start == 0) {
      return 0;
    }
    try (Reader file = OrcFile.createReader(
        new Path(URI.create(uri)), OrcFile.readerOptions(SparkHadoopUtil.get().conf()))) {
      return file.getStripes().stream()
          .filter(stripe -> stripe.getOffset() < start)
          .mapToLong(StripeInformation::getNumberOfRows)
          .sum();
    } catch (IOException | RuntimeException | LinkageError error) {
      return -1; // the rows are known by their positions in the split
    }
  }
}
