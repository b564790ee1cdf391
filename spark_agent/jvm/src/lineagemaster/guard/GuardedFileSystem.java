package lineagemaster.guard;

import java.io.IOException;
import java.net.URI;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.CreateFlag;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.FilterFileSystem;
import org.apache.hadoop.fs.MultipartUploaderBuilder;
import org.apache.hadoop.fs.Options;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.XAttrSetFlag;
import org.apache.hadoop.fs.permission.AclEntry;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.util.Progressable;
import org.apache.hadoop.util.ReflectionUtils;

/**
 * Any file system but that of this machine, in a replay: it is read, and nothing in it is changed but what Spark stages
 * for this application on YARN.
 */
@SuppressWarnings("rawtypes") // as Hadoop's own
public final class GuardedFileSystem extends FilterFileSystem {
  private static final String STAGING = ".sparkStaging";
  private static final Set<String> staged = ConcurrentHashMap.newKeySet();

  @Override
  public void initialize(URI name, Configuration conf) throws IOException {
    String key = FileSystems.key(name.getScheme());
    String original = conf.get(FileSystems.ORIGINAL + key);
    Configuration plain = new Configuration(conf);
    if (original == null || original.isEmpty()) {
      plain.unset(key);
    } else {
      plain.set(key, original);
    }
    fs = ReflectionUtils.newInstance(FileSystem.getFileSystemClass(name.getScheme(), plain), plain);
    fs.initialize(name, plain);
    super.initialize(name, conf); // which leaves alone what is initialised
  }

  @Override
  public String getScheme() {
    return fs.getScheme();
  }

  private void judge(String what, Path path) throws IOException {
    if (!isStaged(path)) {
      throw Territory.refused(what, fs.makeQualified(path).toString());
    }
  }

  /** Is it below the folder that Spark has made for this application? */
  private boolean isStaged(Path path) throws IOException {
    for (Path at = fs.makeQualified(path); at.getParent() != null; at = at.getParent()) {
      boolean isStaging = at.getParent().getName().equals(STAGING) && at.getName().startsWith("application_");
      if (isStaging && (staged.contains(at.toString()) || !fs.exists(at))) {
        staged.add(at.toString());
        return true;
      }
    }
    return false;
  }

  @Override
  public FSDataOutputStream append(Path path, int size, Progressable progress) throws IOException {
    judge("append to", path);
    return super.append(path, size, progress);
  }

  @Override
  public void concat(Path path, Path[] others) throws IOException {
    judge("append to", path);
    super.concat(path, others);
  }

  @Override
  public FSDataOutputStream create(Path path, FsPermission permission, boolean overwrite, int size, short replication,
      long block, Progressable progress) throws IOException {
    judge("write", path);
    return super.create(path, permission, overwrite, size, replication, block, progress);
  }

  @Override
  public FSDataOutputStream create(Path path, FsPermission permission, EnumSet<CreateFlag> flags, int size,
      short replication, long block, Progressable progress, Options.ChecksumOpt sums) throws IOException {
    judge("write", path);
    return super.create(path, permission, flags, size, replication, block, progress, sums);
  }

  @Override
  public FSDataOutputStream createNonRecursive(Path path, FsPermission permission, EnumSet<CreateFlag> flags, int size,
      short replication, long block, Progressable progress) throws IOException {
    judge("write", path);
    return super.createNonRecursive(path, permission, flags, size, replication, block, progress);
  }

  @Override
  protected FSDataOutputStream primitiveCreate(Path path, FsPermission permission, EnumSet<CreateFlag> flags, int size,
      short replication, long block, Progressable progress, Options.ChecksumOpt sums) throws IOException {
    judge("write", path);
    return super.primitiveCreate(path, permission, flags, size, replication, block, progress, sums);
  }

  @Override
  public FSDataOutputStreamBuilder createFile(Path path) {
    return allowed("write", path) ? super.createFile(path) : null;
  }

  @Override
  public FSDataOutputStreamBuilder appendFile(Path path) {
    return allowed("append to", path) ? super.appendFile(path) : null;
  }

  /** The same where no IOException may be thrown. */
  private boolean allowed(String what, Path path) {
    try {
      judge(what, path);
    } catch (IOException error) {
      throw new java.io.UncheckedIOException(error);
    }
    return true;
  }

  @Override
  public MultipartUploaderBuilder createMultipartUploader(Path path) throws IOException {
    judge("write", path);
    return super.createMultipartUploader(path);
  }

  @Override
  public boolean setReplication(Path path, short replication) throws IOException {
    judge("change the replication of", path);
    return super.setReplication(path, replication);
  }

  @Override
  public boolean rename(Path source, Path target) throws IOException {
    judge("rename", source);
    judge("rename to", target);
    return super.rename(source, target);
  }

  @Override
  protected void rename(Path source, Path target, Options.Rename... options) throws IOException {
    judge("rename", source);
    judge("rename to", target);
    super.rename(source, target, options);
  }

  @Override
  public boolean truncate(Path path, long length) throws IOException {
    judge("truncate", path);
    return super.truncate(path, length);
  }

  @Override
  public boolean delete(Path path, boolean recursive) throws IOException {
    if (!fs.exists(path)) {
      return false;
    }
    judge("remove", path);
    return super.delete(path, recursive);
  }

  @Override
  public boolean mkdirs(Path path, FsPermission permission) throws IOException {
    return isThere(path) || super.mkdirs(path, permission);
  }

  @Override
  public boolean mkdirs(Path path) throws IOException {
    return isThere(path) || super.mkdirs(path);
  }

  private boolean isThere(Path path) throws IOException {
    if (fs.exists(path) && fs.getFileStatus(path).isDirectory()) {
      return true;
    }
    judge("make the folder", path);
    return false;
  }

  @Override
  protected boolean primitiveMkdir(Path path, FsPermission permission) throws IOException {
    judge("make the folder", path);
    return super.primitiveMkdir(path, permission);
  }

  @Override
  public void copyFromLocalFile(boolean removes, Path source, Path target) throws IOException {
    copying(removes, target);
    super.copyFromLocalFile(removes, source, target);
  }

  @Override
  public void copyFromLocalFile(boolean removes, boolean overwrite, Path[] sources, Path target) throws IOException {
    copying(removes, target);
    super.copyFromLocalFile(removes, overwrite, sources, target);
  }

  @Override
  public void copyFromLocalFile(boolean removes, boolean overwrite, Path source, Path target) throws IOException {
    copying(removes, target);
    super.copyFromLocalFile(removes, overwrite, source, target);
  }

  private void copying(boolean removes, Path target) throws IOException {
    judge("write", target);
    if (removes) {
      throw Territory.refused("move local files to", target.toString());
    }
  }

  @Override
  public void copyToLocalFile(boolean removes, Path source, Path target) throws IOException {
    if (removes) {
      judge("remove", source);
    }
    super.copyToLocalFile(removes, source, target);
  }

  @Override
  public void copyToLocalFile(boolean removes, Path source, Path target, boolean isRaw) throws IOException {
    copyToLocalFile(removes, source, target);
  }

  @Override
  public Path startLocalOutput(Path target, Path local) throws IOException {
    judge("write", target);
    return super.startLocalOutput(target, local);
  }

  @Override
  public void completeLocalOutput(Path target, Path local) throws IOException {
    judge("write", target);
    super.completeLocalOutput(target, local);
  }

  @Override
  public void createSymlink(Path target, Path link, boolean createParent) throws IOException {
    judge("make the symbolic link", link);
    super.createSymlink(target, link, createParent);
  }

  @Override
  public void setOwner(Path path, String user, String group) throws IOException {
    judge("change the owner of", path);
    super.setOwner(path, user, group);
  }

  @Override
  public void setTimes(Path path, long modified, long accessed) throws IOException {
    judge("change the times of", path);
    super.setTimes(path, modified, accessed);
  }

  @Override
  public void setPermission(Path path, FsPermission permission) throws IOException {
    judge("change the mode of", path);
    super.setPermission(path, permission);
  }

  @Override
  public void setQuota(Path path, long names, long space) throws IOException {
    judge("change the quota of", path);
    super.setQuota(path, names, space);
  }

  @Override
  public Path createSnapshot(Path path, String name) throws IOException {
    judge("make a snapshot of", path);
    return super.createSnapshot(path, name);
  }

  @Override
  public void renameSnapshot(Path path, String from, String to) throws IOException {
    judge("rename a snapshot of", path);
    super.renameSnapshot(path, from, to);
  }

  @Override
  public void deleteSnapshot(Path path, String name) throws IOException {
    judge("remove a snapshot of", path);
    super.deleteSnapshot(path, name);
  }

  private void rights(Path path) throws IOException {
    judge("change the rights of", path);
  }

  @Override
  public void modifyAclEntries(Path path, List<AclEntry> entries) throws IOException {
    rights(path);
    super.modifyAclEntries(path, entries);
  }

  @Override
  public void removeAclEntries(Path path, List<AclEntry> entries) throws IOException {
    rights(path);
    super.removeAclEntries(path, entries);
  }

  @Override
  public void removeDefaultAcl(Path path) throws IOException {
    rights(path);
    super.removeDefaultAcl(path);
  }

  @Override
  public void removeAcl(Path path) throws IOException {
    rights(path);
    super.removeAcl(path);
  }

  @Override
  public void setAcl(Path path, List<AclEntry> entries) throws IOException {
    rights(path);
    super.setAcl(path, entries);
  }

  private void attributes(Path path) throws IOException {
    judge("change the attributes of", path);
  }

  @Override
  public void setXAttr(Path path, String name, byte[] value) throws IOException {
    attributes(path);
    super.setXAttr(path, name, value);
  }

  @Override
  public void setXAttr(Path path, String name, byte[] value, EnumSet<XAttrSetFlag> flags) throws IOException {
    attributes(path);
    super.setXAttr(path, name, value, flags);
  }

  @Override
  public void removeXAttr(Path path, String name) throws IOException {
    attributes(path);
    super.removeXAttr(path, name);
  }

  @Override
  public void satisfyStoragePolicy(Path path) throws IOException {
    attributes(path);
    super.satisfyStoragePolicy(path);
  }

  @Override
  public void setStoragePolicy(Path path, String name) throws IOException {
    attributes(path);
    super.setStoragePolicy(path, name);
  }

  @Override
  public void unsetStoragePolicy(Path path) throws IOException {
    attributes(path);
    super.unsetStoragePolicy(path);
  }

  /** The one below would not ask. */
  @Override
  public FileSystem getRawFileSystem() {
    return this;
  }

  @Override
  public FileSystem[] getChildFileSystems() {
    return new FileSystem[] {this};
  }
}
