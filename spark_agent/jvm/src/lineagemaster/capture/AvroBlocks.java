package lineagemaster.capture;

import java.io.EOFException;
import java.io.IOException;
import java.net.URI;
import org.apache.avro.file.DataFileConstants;
import org.apache.avro.file.DataFileReader;
import org.apache.avro.file.SeekableInput;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.mapred.FsInput;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.deploy.SparkHadoopUtil;

/**
 * The rows of Avro files by their blocks. A split of a file has the blocks behind the first sync marker in it. Each
 * block begins with its number of rows and of bytes, so the rows before a split are counted without being read.
 */
final class AvroBlocks {
  /** How the names of such files end. */
  static final String ENDING = ".avro";

  private AvroBlocks() {}

  /**
   * How many rows of a file are before those of its split that begins at the byte `start`; -1 where this is not known.
   *
   * @param uri as Spark names the file to its tasks
   */
  static long rowsBefore(String uri, long start) {
    if (start == 0) {
      return 0;
    }
    Path path = new Path(URI.create(uri));
    Configuration configuration = SparkHadoopUtil.get().conf();
    try (DataFileReader<Object> file =
            new DataFileReader<>(new FsInput(path, configuration), new GenericDatumReader<>());
        SeekableInput input = new FsInput(path, configuration)) {
      long position = file.previousSync();
      file.sync(start);
      long end = file.previousSync();
      long rows = 0;
      while (position < end) {
        input.seek(position);
        rows += number(input);
        long size = number(input);
        position = input.tell() + size + DataFileConstants.SYNC_SIZE;
      }
      return position == end ? rows : -1;
    } catch (IOException | RuntimeException | LinkageError error) {
      return -1; // the rows are known by their positions in the split
    }
  }

  /** A long as Avro writes it: seven bits in each byte, the last one first, with the sign in the lowest bit. */
  private static long number(SeekableInput input) throws IOException {
    byte[] one = new byte[1];
    long bits = 0;
    for (int shift = 0; shift < Long.SIZE; shift += 7) {
      if (input.read(one, 0, 1) < 1) {
        throw new EOFException();
      }
      bits |= (one[0] & 0x7fL) << shift;
      if (one[0] >= 0) {
        break;
      }
    }
    return bits >>> 1 ^ -(bits & 1);
  }
}
