package lineagemaster.capture;

import java.io.ByteArrayOutputStream;
import java.io.File;
import java.nio.charset.StandardCharsets;

/** A file that a task has read, as events name it: what spark_agent/driver/partitions.py does on the driver. */
final class InputFile {
  final String path;

  private InputFile(String path) {
    this.path = path;
  }

  /** @param uri as Spark names the file to its tasks */
  static InputFile of(String uri) {
    String path = decoded(uri);
    if (!path.startsWith("file:")) {
      return new InputFile(path);
    }
    path = path.substring("file:".length());
    if (path.startsWith("//")) { // a host, mostly none
      int slash = path.indexOf('/', 2);
      path = slash < 0 ? "/" : path.substring(slash);
    }
    return new InputFile(path);
  }

  /** Its size and time, where it is one of this machine. */
  String sizeAndTime() {
    File file = new File(path);
    return file.isFile() ? ",\"size\":" + file.length() + ",\"modified\":" + file.lastModified() : "";
  }

  /** Each %XX is a byte of UTF-8; all else stays as it is. */
  private static String decoded(String text) {
    if (text.indexOf('%') < 0) {
      return text;
    }
    byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
    ByteArrayOutputStream decoded = new ByteArrayOutputStream(bytes.length);
    for (int i = 0; i < bytes.length; i++) {
      int high = i + 2 < bytes.length && bytes[i] == '%' ? Character.digit(bytes[i + 1], 16) : -1;
      int low = high < 0 ? -1 : Character.digit(bytes[i + 2], 16);
      if (low < 0) {
        decoded.write(bytes[i]);
      } else {
        decoded.write(high << 4 | low);
        i += 2;
      }
    }
    return new String(decoded.toByteArray(), StandardCharsets.UTF_8);
  }
}
