package lineagemaster.guard;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import lineagemaster.delivery.Json;

/** What is refused, as one sentence, and as a line of the sandbox's notes. */
final class Refusal {
  private static final String NOTES = "notes.jsonl";
  private static final String BEGIN = "replay refused: ";
  private static final String END = "; nothing was changed; "
      + "write below the temporary folder instead, or leave this step out of the script that is replayed";
  private static final Set<String> noted = ConcurrentHashMap.newKeySet();

  private Refusal() {}

  /** The sentence. It is noted, once for each. */
  static String note(String what, String path) {
    write("refused", what, path);
    return BEGIN + what + (path.isEmpty() ? "" : " " + path) + END;
  }

  /** That nothing was done, though the program goes on as if it had been. */
  static void pretended(String what, String path) {
    write("pretended", what, path);
  }

  private static void write(String kind, String what, String path) {
    String line = "{\"" + kind + "\": {\"what\": " + Json.quoted(what) + ", \"path\": " + Json.quoted(path)
        + ", \"where\": \"\"}}\n";
    Path sandbox = Territory.sandbox();
    if (sandbox == null || !noted.add(line)) {
      return;
    }
    try {
      Files.write(sandbox.resolve(NOTES), line.getBytes(StandardCharsets.UTF_8),
          StandardOpenOption.CREATE, StandardOpenOption.APPEND);
    } catch (java.io.IOException full) {
      noted.remove(line); // it is refused all the same
    }
  }
}
