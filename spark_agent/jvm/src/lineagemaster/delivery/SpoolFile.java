package lineagemaster.delivery;

import java.io.BufferedInputStream;
import java.io.Closeable;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.zip.CRC32;

/** A file of a spool that this JVM may send and remove: as `ClaimedFile` in spark_agent/contract/spool_files.py. */
final class SpoolFile implements Closeable {
  static final String SUFFIX = ".spool";
  static final byte[] MAGIC = "LMSPOOL1\n".getBytes(StandardCharsets.US_ASCII);
  /** Files that this JVM has open: a lock ends when any handle of its process is closed. */
  static final Set<Path> OWN = ConcurrentHashMap.newKeySet();

  private static final int MAX_BODY = 16_000_000;
  private static final long UNLOCKABLE_FREE_MS = 600_000;

  private final Path path;
  private final FileChannel channel;
  private final DataInputStream input;
  private final String head;
  private boolean isDamaged;

  private SpoolFile(Path path, FileChannel channel) throws IOException {
    this.path = path;
    this.channel = channel;
    input = new DataInputStream(new BufferedInputStream(Channels.newInputStream(channel), 1 << 16));
    head = readHead();
  }

  /** Claims a file; null where another process has it, or it is gone. Never waits. */
  static SpoolFile claim(Path path) throws IOException {
    if (!OWN.add(path)) {
      return null;
    }
    FileChannel channel = null;
    boolean isClaimed = false;
    try {
      channel = FileChannel.open(path, StandardOpenOption.READ, StandardOpenOption.WRITE);
      // It may have been sent and removed between `open` and the lock.
      isClaimed = isFree(path, channel) && Files.exists(path);
      return isClaimed ? new SpoolFile(path, channel) : null;
    } catch (NoSuchFileException gone) {
      return null;
    } finally {
      if (!isClaimed) {
        if (channel != null) {
          channel.close();
        }
        OWN.remove(path);
      }
    }
  }

  private static boolean isFree(Path path, FileChannel channel) throws IOException {
    try {
      FileLock lock = channel.tryLock();
      return lock != null;
    } catch (OverlappingFileLockException ours) {
      return false;
    } catch (IOException noLocks) { // a folder that knows no locks
      return System.currentTimeMillis() - Files.getLastModifiedTime(path).toMillis() > UNLOCKABLE_FREE_MS;
    }
  }

  private String readHead() throws IOException {
    byte[] magic = input.readNBytes(MAGIC.length);
    if (!Arrays.equals(magic, MAGIC)) {
      isDamaged = magic.length > 0;
      return "";
    }
    StringBuilder line = new StringBuilder();
    for (int next = input.read(); next >= 0 && next != '\n'; next = input.read()) {
      line.append((char) next);
    }
    return line.toString();
  }

  /** Is it for these brokers? Writers of all languages escape a text in the same way. */
  boolean isFor(String servers) {
    return head.isEmpty() || head.contains("\"servers\": " + Json.quoted(servers) + ",");
  }

  /** The next message; null behind the last one. A record that is not whole, or was changed, is none. */
  Message next(DeliveryTally tally, Message.Keeper keeper) throws IOException {
    while (!head.isEmpty()) {
      byte[] body;
      int checksum;
      try {
        checksum = input.readInt();
        int length = input.readInt();
        if (length < Message.BODY_HEAD || length > MAX_BODY) {
          isDamaged = true;
          return null;
        }
        body = new byte[length];
        input.readFully(body);
      } catch (EOFException end) {
        return null;
      }
      CRC32 actual = new CRC32();
      actual.update(body);
      if ((int) actual.getValue() == checksum) {
        return message(ByteBuffer.wrap(body), tally, keeper);
      }
      isDamaged = true;
    }
    return null;
  }

  private static Message message(ByteBuffer body, DeliveryTally tally, Message.Keeper keeper) {
    int partition = body.getInt();
    byte[] topic = new byte[body.getShort() & 0xFFFF];
    byte[] key = new byte[body.getShort() & 0xFFFF];
    body.get(topic).get(key);
    byte[] value = new byte[body.remaining()];
    body.get(value);
    return new Message(new String(topic, StandardCharsets.UTF_8), partition, key, value, tally, keeper);
  }

  /** Its messages were delivered: removes it, or keeps what is damaged under another name. */
  void remove() throws IOException {
    if (isDamaged) {
      String name = path.getFileName().toString();
      String damaged = name.substring(0, name.length() - SUFFIX.length()) + ".damaged";
      Files.move(path, path.resolveSibling(damaged), StandardCopyOption.REPLACE_EXISTING);
    } else {
      Files.delete(path);
    }
  }

  @Override
  public void close() throws IOException {
    channel.close();
    OWN.remove(path);
  }
}
