/**
 * The fences of a replay in a JVM: file systems that change the sandbox only, and a planner that refuses commands.
 *
 * <p>Runs on the driver and on executors, in whatever thread works with files, and on the driver where queries are
 * planned. Of Hadoop's configuration it needs class names only; the sandbox is the folder of the spec that the
 * environment names. Reading goes through. What the operating system does for other classes is not seen here.
 */
package lineagemaster.guard;
