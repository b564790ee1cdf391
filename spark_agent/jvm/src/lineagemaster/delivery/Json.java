package lineagemaster.delivery;

/** Writes texts as JSON. */
public final class Json {
  private Json() {}

  /** A JSON string. Lone surrogates, which UTF-8 has no bytes for, are escaped too. */
  public static String quoted(String value) {
    StringBuilder quoted = new StringBuilder(value.length() + 2).append('"');
    for (int i = 0; i < value.length(); i++) {
      char c = value.charAt(i);
      if (c == '"' || c == '\\') {
        quoted.append('\\').append(c);
      } else if (c < ' ' || c > '~') {
        quoted.append(String.format("\\u%04x", (int) c));
      } else {
        quoted.append(c);
      }
    }
    return quoted.append('"').toString();
  }
}
