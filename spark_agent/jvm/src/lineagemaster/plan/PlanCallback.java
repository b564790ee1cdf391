package lineagemaster.plan;

/** What Python implements, over py4j: the rewriting of a plan. */
public interface PlanCallback {
  /** The plan to take instead, or null: this one stays. `entry` is what PlanRule says of the call. */
  Object rewrite(Object plan, String entry);
}
