package lineagemaster.guard;

import java.io.File;
import java.io.IOException;
import java.io.OutputStream;
import java.util.EnumSet;
import org.apache.hadoop.fs.CreateFlag;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.util.Progressable;

/** The files of this machine, of which only those of the sandbox are changed. All else of `file:` goes through it. */
public final class GuardedRawFileSystem extends RawLocalFileSystem {
  private static final String WRITE = "write";

  private void changing(String what, Path path) throws IOException {
    Territory.changing(what, pathToFile(path));
  }

  @Override
  public FSDataOutputStream append(Path path, int size, Progressable progress) throws IOException {
    changing("append to", path);
    return super.append(path, size, progress);
  }

  @Override
  public FSDataOutputStream create(Path path, boolean overwrite, int size, short replication, long block,
      Progressable progress) throws IOException {
    changing(WRITE, path);
    return super.create(path, overwrite, size, replication, block, progress);
  }

  @Override
  public FSDataOutputStream create(Path path, FsPermission permission, boolean overwrite, int size, short replication,
      long block, Progressable progress) throws IOException {
    changing(WRITE, path);
    return super.create(path, permission, overwrite, size, replication, block, progress);
  }

  @Override
  public FSDataOutputStream createNonRecursive(Path path, FsPermission permission, EnumSet<CreateFlag> flags, int size,
      short replication, long block, Progressable progress) throws IOException {
    changing(WRITE, path);
    return super.createNonRecursive(path, permission, flags, size, replication, block, progress);
  }

  @Override
  public FSDataOutputStream createNonRecursive(Path path, FsPermission permission, boolean overwrite, int size,
      short replication, long block, Progressable progress) throws IOException {
    changing(WRITE, path);
    return super.createNonRecursive(path, permission, overwrite, size, replication, block, progress);
  }

  @Override
  protected OutputStream createOutputStream(Path path, boolean append) throws IOException {
    changing(WRITE, path);
    return super.createOutputStream(path, append);
  }

  @Override
  protected OutputStream createOutputStreamWithMode(Path path, boolean append, FsPermission permission)
      throws IOException {
    changing(WRITE, path);
    return super.createOutputStreamWithMode(path, append, permission);
  }

  @Override
  public boolean rename(Path source, Path target) throws IOException {
    File from = pathToFile(source);
    if (exists(source)) {
      Territory.naming("rename", from);
      Territory.naming("rename to", pathToFile(target));
    }
    return super.rename(source, target);
  }

  @Override
  public boolean truncate(Path path, long length) throws IOException {
    changing("truncate", path);
    return super.truncate(path, length);
  }

  @Override
  public boolean delete(Path path, boolean recursive) throws IOException {
    File file = pathToFile(path);
    if (!java.nio.file.Files.exists(file.toPath(), java.nio.file.LinkOption.NOFOLLOW_LINKS)) {
      return false;
    }
    if (Territory.isOutput(file)) {
      Territory.pretendRemoved(file);
      return true;
    }
    Territory.naming("remove", file);
    return super.delete(path, recursive);
  }

  @Override
  public boolean mkdirs(Path path) throws IOException {
    return isThere(path) || super.mkdirs(path);
  }

  @Override
  public boolean mkdirs(Path path, FsPermission permission) throws IOException {
    return isThere(path) || super.mkdirs(path, permission);
  }

  private boolean isThere(Path path) throws IOException {
    File file = pathToFile(path);
    if (file.isDirectory() || Territory.isRemoved(file)) {
      return true;
    }
    Territory.changing("make the folder", file);
    return false;
  }

  @Override
  protected boolean mkOneDirWithMode(Path path, File file, FsPermission permission) throws IOException {
    Territory.changing("make the folder", file);
    return super.mkOneDirWithMode(path, file, permission);
  }

  @Override
  public void setOwner(Path path, String user, String group) throws IOException {
    changing("change the owner of", path);
    super.setOwner(path, user, group);
  }

  @Override
  public void setPermission(Path path, FsPermission permission) throws IOException {
    changing("change the mode of", path);
    super.setPermission(path, permission);
  }

  @Override
  public void setTimes(Path path, long modified, long accessed) throws IOException {
    changing("change the times of", path);
    super.setTimes(path, modified, accessed);
  }

  @Override
  public void createSymlink(Path target, Path link, boolean createParent) throws IOException {
    Territory.naming("make the symbolic link", pathToFile(link));
    super.createSymlink(target, link, createParent);
  }
}
