package lineagemaster.guard;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.hadoop.security.AccessControlException;

/**
 * What the replay of this JVM may change: the sandbox. Symbolic links are followed before a path is judged; of a name
 * that is removed or renamed only the folder is.
 *
 * <p>Without a sandbox nothing may be changed. Removing an old output of the original application is pretended, since
 * the replay writes elsewhere.
 */
final class Territory {
  private static final String SPEC = "LINEAGE_REPLAY";
  private static volatile Path sandbox = fromEnvironment();
  private static volatile List<Path> outputs = List.of();
  private static final Set<Path> removed = ConcurrentHashMap.newKeySet();

  private Territory() {}

  static void begin(String folder, List<String> ofOriginal) throws IOException {
    sandbox = Paths.get(folder).toRealPath();
    outputs = ofOriginal.stream().map(Paths::get).collect(java.util.stream.Collectors.toUnmodifiableList());
  }

  private static Path fromEnvironment() {
    String spec = System.getenv(SPEC);
    try {
      return spec == null || spec.isEmpty() ? null : Paths.get(spec).toRealPath().getParent();
    } catch (IOException | RuntimeException unreadable) {
      return null;
    }
  }

  /** Null where this JVM is of no replay. */
  static Path sandbox() {
    return sandbox;
  }

  /** Judges what is written, or changed as a file. */
  static void changing(String what, File file) throws AccessControlException {
    if (!isOwn(file.toPath(), true) || !isOwn(file.toPath(), false)) {
      throw refused(what, file.getPath());
    }
  }

  /** Judges what is done with a name: it is removed or renamed. */
  static void naming(String what, File file) throws AccessControlException {
    if (!isOwn(file.toPath(), false)) {
      throw refused(what, file.getPath());
    }
  }

  static AccessControlException refused(String what, String path) {
    return new AccessControlException(Refusal.note(what, path));
  }

  /** Is it an old output of the original application, which may be removed in pretence? */
  static boolean isOutput(File file) {
    Path path = resolved(file.toPath(), false);
    return path != null && outputs.stream().anyMatch(path::startsWith);
  }

  static void pretendRemoved(File file) {
    removed.add(resolved(file.toPath(), false));
    Refusal.pretended("remove", file.getPath());
  }

  /** Is it below what was removed in pretence? */
  static boolean isRemoved(File file) {
    Path path = resolved(file.toPath(), false);
    return path != null && removed.stream().anyMatch(path::startsWith);
  }

  private static boolean isOwn(Path path, boolean follows) {
    Path root = sandbox;
    Path real = resolved(path, follows);
    return root != null && real != null && real.startsWith(root);
  }

  /** The path without symbolic links; null where it cannot be told. Parts that do not exist stay as they are. */
  private static Path resolved(Path path, boolean follows) {
    Path at = path.toAbsolutePath();
    Deque<Path> rest = new ArrayDeque<>();
    if (!follows && at.getFileName() != null) {
      rest.push(at.getFileName());
      at = at.getParent();
    }
    while (at != null && !Files.exists(at, LinkOption.NOFOLLOW_LINKS)) {
      rest.push(at.getFileName());
      at = at.getParent();
    }
    try {
      Path real = at == null ? null : at.toRealPath();
      for (Path part : rest) {
        if (real == null || part.toString().equals("..")) {
          return null;
        }
        real = real.resolve(part);
      }
      return real;
    } catch (IOException brokenLink) {
      return null;
    }
  }
}
