package lineagemaster.delivery;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Arrays;
import java.util.regex.Pattern;
import org.apache.spark.SparkEnv;

/** Which folder is the spool of this JVM. spark_agent/delivery/spool_folder.py decides the same, and says why. */
final class SpoolFolder {
  private static final String UUID = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}";
  private static final Pattern OF_APPLICATION = Pattern.compile(
      "(spark|pyspark|executor|blockmgr)-" + UUID
          + "|app-[0-9]+-[0-9]+|appcache|(application|container)_[e0-9].*");

  final Path path;
  final boolean isOwn;

  SpoolFolder(String configured) throws IOException {
    isOwn = configured.isEmpty();
    if (!isOwn) {
      String plain = configured.startsWith("file://") ? configured.substring("file://".length()) : configured;
      path = Path.of(plain.startsWith("~/") ? System.getProperty("user.home") + plain.substring(1) : plain)
          .toAbsolutePath();
      return;
    }
    File[] localFolders = SparkEnv.get().blockManager().diskBlockManager().localDirs();
    Path local = Arrays.stream(localFolders).sorted().findFirst().get().toPath().toAbsolutePath();
    path = lasting(local).resolve("lineage-spool-" + owner(local));
  }

  /** The nearest folder above this one that is not of one application; itself, if it is such a one. */
  static Path lasting(Path folder) {
    Path lasting = folder.getRoot();
    for (Path part : folder) {
      if (OF_APPLICATION.matcher(part.toString()).matches()) {
        break;
      }
      lasting = lasting.resolve(part);
    }
    return lasting;
  }

  private static Object owner(Path folder) throws IOException {
    return Files.getAttribute(folder, "unix:uid", LinkOption.NOFOLLOW_LINKS);
  }

  /** Makes the folder if it is not there. Throws where it cannot be used. */
  void make() throws IOException {
    if (!isOwn) {
      Files.createDirectories(path);
      return;
    }
    if (!Files.isDirectory(path, LinkOption.NOFOLLOW_LINKS)) {
      Files.createDirectories(
          path, PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
    }
    String expected = path.getFileName().toString();
    if (!expected.equals("lineage-spool-" + owner(path))) {
      throw new IOException("it belongs to somebody else: name one with spark.lineage.spool.dir");
    }
  }
}
