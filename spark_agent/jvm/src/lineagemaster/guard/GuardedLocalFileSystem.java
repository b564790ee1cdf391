package lineagemaster.guard;

import java.io.IOException;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;

/** `file:` in a replay: Hadoop's own, with checksums, over the guarded files of this machine. */
public final class GuardedLocalFileSystem extends LocalFileSystem {
  public GuardedLocalFileSystem() {
    super(new GuardedRawFileSystem());
  }

  // What Hadoop does here with java.io, past the file system below.

  @Override
  public void copyFromLocalFile(boolean removes, Path source, Path target) throws IOException {
    if (removes) {
      Territory.naming("remove", pathToFile(source));
    }
    super.copyFromLocalFile(removes, source, target);
  }

  @Override
  public void copyToLocalFile(boolean removes, Path source, Path target) throws IOException {
    Territory.changing("write", pathToFile(target));
    if (removes) {
      Territory.naming("remove", pathToFile(source));
    }
    super.copyToLocalFile(removes, source, target);
  }

  /** Hadoop would move a file with a wrong checksum aside. */
  @Override
  public boolean reportChecksumFailure(Path path, FSDataInputStream in, long at, FSDataInputStream sums, long of) {
    return false;
  }
}
