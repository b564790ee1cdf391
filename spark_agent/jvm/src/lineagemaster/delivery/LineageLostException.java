package lineagemaster.delivery;

/** Fails a task whose lineage could not be delivered, where the user asked for that. */
public final class LineageLostException extends RuntimeException {
  private static final long serialVersionUID = 1;

  public LineageLostException(String message) {
    super(message, null, false, false); // a user has no use for our stack
  }
}
