package lineagemaster.guard;

/** A query that a replay does not run. PySpark shows its message alone. */
public final class CommandRefused extends UnsupportedOperationException {
  CommandRefused(String what, String of) {
    super(Refusal.note(what, of));
  }
}
