package lineagemaster.delivery;

import java.io.IOException;
import java.net.InetAddress;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Instant;
import java.util.Comparator;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * The spool of one JVM: files with the messages that Kafka did not take in time. spark_agent/delivery/spool.py is that
 * of a Python process; both write the same files. No call throws.
 */
final class Spool {
  private static final long FILE_BYTES = 8_000_000;
  private static final long FILE_NANOS = 60_000_000_000L;
  private static final Set<OpenOption> NEW =
      Set.of(StandardOpenOption.WRITE, StandardOpenOption.CREATE_NEW);

  private final AgentConfig config;
  private final String host = hostName();
  private SpoolFolder folder;
  private FileChannel file;
  private Path path;
  private long openedAt;

  Spool(AgentConfig config) {
    this.config = config;
  }

  String servers() {
    return config.clientOptions.get("bootstrap.servers");
  }

  /** Appends all of the messages. Returns why none of them is there; empty where all are. */
  synchronized String write(List<Message> messages) {
    try {
      String refusal = refusal(messages.stream().mapToLong(message -> message.value.length).sum());
      if (refusal.isEmpty()) {
        append(messages);
      }
      return refusal;
    } catch (Throwable error) {
      close();
      String reason = error.getMessage() == null ? error.toString() : error.getMessage();
      return "the spool in " + (folder == null ? config.spoolFolder : folder.path) + " cannot be written ("
          + reason + ")";
    }
  }

  /** Can something be written now? */
  synchronized boolean takes() {
    try {
      return refusal(0).isEmpty();
    } catch (Throwable error) {
      return false;
    }
  }

  /** Why so many bytes more have no place here; empty where they have one. */
  private String refusal(long size) throws IOException {
    if (config.spoolMaxBytes == 0) {
      return "the spool is off (spark.lineage.spool.maxBytes=0)";
    }
    folder().make();
    long used = usedBytes();
    if (used + size <= config.spoolMaxBytes) {
      return "";
    }
    return String.format("the spool in %s is full, with %,d bytes: send them with `lineage spool deliver`, or raise "
        + "spark.lineage.spool.maxBytes", folder.path, used);
  }

  /** Leaves the file to whoever sends it. The next message opens another one. */
  synchronized void close() {
    if (file != null) {
      try {
        file.close();
      } catch (IOException late) {
        // What was written is written.
      }
      file = null;
      SpoolFile.OWN.remove(path);
    }
  }

  /** All files here, oldest first, also those of other processes. */
  List<Path> waiting() {
    try (Stream<Path> files = Files.list(folder().path)) {
      return files.filter(one -> one.toString().endsWith(SpoolFile.SUFFIX))
          .sorted(Comparator.comparing(Spool::age)).collect(Collectors.toList());
    } catch (Throwable none) {
      return List.of();
    }
  }

  private static String age(Path file) {
    String name = file.getFileName().toString();
    return name.substring(name.indexOf('_') + 1);
  }

  private synchronized SpoolFolder folder() throws IOException {
    if (folder == null) {
      folder = new SpoolFolder(config.spoolFolder);
    }
    return folder;
  }

  private long usedBytes() throws IOException {
    long used = 0;
    try (Stream<Path> files = Files.list(folder.path)) {
      for (Path one : (Iterable<Path>) files::iterator) {
        used += one.getFileName().toString().startsWith(host + "_") ? one.toFile().length() : 0;
      }
    }
    return used;
  }

  private void append(List<Message> messages) throws IOException {
    FileChannel open = open();
    long begin = open.position();
    try {
      for (Message message : messages) {
        writeAll(open, message.asRecord());
      }
      if (config.isSpoolSynced) {
        open.force(false);
      }
    } catch (IOException error) {
      open.truncate(begin);
      throw error;
    }
    if (!Files.exists(path)) { // somebody has removed it: begin another one
      close();
      append(messages);
    }
  }

  private FileChannel open() throws IOException {
    if (file != null && (file.position() >= FILE_BYTES || System.nanoTime() - openedAt > FILE_NANOS)) {
      close();
    }
    if (file == null) {
      newFile();
    }
    return file;
  }

  private void newFile() throws IOException {
    long pid = ProcessHandle.current().pid();
    Instant now = Instant.now();
    long micros = now.getEpochSecond() * 1_000_000 + now.getNano() / 1_000;
    String random = UUID.randomUUID().toString().substring(0, 8);
    String name = String.format("%s_%016d_%d_%s%s", host, micros, pid, random, SpoolFile.SUFFIX);
    path = folder.path.resolve(name);
    // Others see it once it is locked: else one of them could take it for empty, and remove it.
    Path unfinished = folder.path.resolve(name + ".new");
    String mode = folder.isOwn ? "rw-------" : "rw-rw----";
    try {
      file = FileChannel.open(
          unfinished, NEW, PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString(mode)));
    } catch (UnsupportedOperationException noModes) {
      file = FileChannel.open(unfinished, NEW);
    } catch (FileAlreadyExistsException twice) {
      throw new IOException("a file of the same name is there");
    }
    openedAt = System.nanoTime();
    try {
      file.tryLock();
    } catch (IOException noLocks) {
      // Nobody can, then: the file's age decides.
    }
    writeAll(file, SpoolFile.MAGIC);
    String head = "{\"servers\": " + Json.quoted(servers()) + ", \"host\": " + Json.quoted(host) + ", \"pid\": " + pid
        + ", \"time\": " + now.toEpochMilli() + "}\n";
    writeAll(file, head.getBytes(StandardCharsets.US_ASCII));
    SpoolFile.OWN.add(path);
    Files.move(unfinished, path, StandardCopyOption.ATOMIC_MOVE);
  }

  private static void writeAll(FileChannel file, byte[] data) throws IOException {
    ByteBuffer rest = ByteBuffer.wrap(data);
    while (rest.hasRemaining()) {
      file.write(rest);
    }
  }

  /** The name of this machine, as it stands in names of files. */
  static String hostName() {
    String name = System.getenv("HOSTNAME");
    try {
      name = Files.readString(Path.of("/proc/sys/kernel/hostname")).trim();
    } catch (IOException noLinux) {
      try {
        name = name == null || name.isEmpty() ? InetAddress.getLocalHost().getHostName() : name;
      } catch (IOException unknown) {
        name = "host";
      }
    }
    String safe = name.replaceAll("[^\\p{L}\\p{N}.-]", "-");
    return safe.isEmpty() ? "host" : safe;
  }
}
