package lineagemaster.plan;

/** The rewriting of a plan: what Python implements, over py4j. */
public interface PlanCallback {
  /** The plan to use instead, or null: this one stays. `entry` is what PlanStrategy says of the call. */
  Object rewrite(Object plan, String entry);
}
