package lineagemaster.guard;

import java.io.IOException;
import java.net.URI;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.ServiceConfigurationError;
import java.util.ServiceLoader;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;

/** Puts the guarded file systems into Hadoop's configuration, for each scheme that this JVM knows. */
public final class FileSystems {
  /** Before a key: the class that stood there. */
  static final String ORIGINAL = "lineage.replay.";

  private static final String LOCAL = "file";
  private static final Pattern KEY = Pattern.compile("fs\\.(AbstractFileSystem\\.)?([A-Za-z0-9+.-]+)\\.impl");
  private static final List<String> WELL_KNOWN = Arrays.asList(LOCAL, "hdfs", "viewfs", "webhdfs", "swebhdfs", "s3",
      "s3a",
      "s3n", "gs", "abfs", "abfss", "wasb", "wasbs", "adl", "oss", "cosn", "obs", "ofs", "o3fs", "ftp", "sftp", "dbfs");
  private static final URI LOCAL_ROOT = URI.create("file:///");

  private FileSystems() {}

  /** The key that names the class of a scheme. */
  static String key(String scheme) {
    return "fs." + scheme + ".impl";
  }

  /** From now on this JVM changes the sandbox only. File systems that are open are closed. */
  public static void begin(String sandbox, List<String> outputs) throws IOException {
    Territory.begin(sandbox, outputs);
    FileSystem.closeAll();
  }

  /** The settings of Hadoop, of the driver and of executors, given those that there are (key, value, key, value). */
  public static Map<String, String> settings(List<String> present) {
    Map<String, String> before = new TreeMap<>();
    for (Map.Entry<String, String> entry : new Configuration()) {
      before.put(entry.getKey(), entry.getValue());
    }
    for (Iterator<String> items = present.iterator(); items.hasNext();) {
      before.put(items.next(), items.next());
    }
    TreeSet<String> schemes = new TreeSet<>(WELL_KNOWN);
    for (String name : before.keySet()) {
      Matcher matcher = KEY.matcher(name);
      if (matcher.matches() && !matcher.group(2).equals("AbstractFileSystem")) {
        schemes.add(matcher.group(2));
      }
    }
    addLoaded(schemes);
    Map<String, String> settings = new TreeMap<>();
    for (String scheme : schemes) {
      String key = key(scheme);
      String original = before.get(key);
      if (original != null && !original.startsWith("lineagemaster.")) {
        settings.put(ORIGINAL + key, original);
      }
      Class<?> type = scheme.equals(LOCAL) ? GuardedLocalFileSystem.class : GuardedFileSystem.class;
      settings.put(key, type.getName());
      settings.put("fs.AbstractFileSystem." + scheme + ".impl", GuardedFileContext.class.getName());
    }
    return settings;
  }

  private static void addLoaded(TreeSet<String> schemes) {
    Iterator<FileSystem> loaded = ServiceLoader.load(FileSystem.class).iterator();
    while (true) {
      try {
        if (!loaded.hasNext()) {
          return;
        }
        schemes.add(loaded.next().getScheme());
      } catch (ServiceConfigurationError | RuntimeException | LinkageError unusable) {
        continue; // it has no scheme, or does not load
      }
    }
  }

  /** Why a running application is not guarded; empty if it is. */
  public static String problem(Configuration conf) throws IOException {
    Class<?> type = FileSystem.get(LOCAL_ROOT, conf).getClass();
    if (type != GuardedLocalFileSystem.class) {
      return LOCAL_ROOT + " is " + type.getName();
    }
    return Territory.sandbox() == null ? "there is no sandbox" : "";
  }
}
