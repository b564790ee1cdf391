package lineagemaster.guard;

import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.DelegateToFileSystem;
import org.apache.hadoop.fs.FileSystem;

/** What Hadoop's other interface (FileContext) gets in a replay: the same guarded file systems. */
public final class GuardedFileContext extends DelegateToFileSystem {
  private static final String LOCAL = "file";

  public GuardedFileContext(URI uri, Configuration conf) throws IOException, URISyntaxException {
    super(uri, guarded(uri), conf, uri.getScheme(), false);
  }

  private static FileSystem guarded(URI uri) {
    return LOCAL.equals(uri.getScheme()) ? new GuardedLocalFileSystem() : new GuardedFileSystem();
  }
}
