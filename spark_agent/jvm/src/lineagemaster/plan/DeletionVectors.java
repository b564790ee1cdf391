package lineagemaster.plan;

import java.lang.reflect.Constructor;
import java.util.StringJoiner;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import scala.Option;

/** Which rows of a data file of Delta Lake were deleted before, by its own classes. It is not compiled against. */
public final class DeletionVectors {
  private static final String DELTA = "org.apache.spark.sql.delta.";

  private DeletionVectors() {}

  /**
   * The rows of a deletion vector, as the log describes one. `offset` is negative where the log has none.
   *
   * @return `first-end,first-end`, ascending, each without its end; null where there are more than `most` of them
   */
  public static String rows(Configuration conf, String table, String storage, String place, int offset, int size,
      long cardinality, int most) throws ReflectiveOperationException {
    ClassLoader loader = Thread.currentThread().getContextClassLoader();
    Class<?> descriptors = Class.forName(DELTA + "actions.DeletionVectorDescriptor", true, loader);
    Option<Object> at = offset < 0 ? Option.empty() : Option.apply((Object) offset);
    Object descriptor = descriptors
        .getMethod("apply", String.class, String.class, Option.class, int.class, long.class, Option.class)
        .invoke(null, storage, place, at, size, cardinality, Option.empty());
    Class<?> bitmaps = Class.forName(DELTA + "deletionvectors.StoredBitmap", true, loader);
    Object stored = bitmaps.getMethod("create", descriptors, Path.class).invoke(null, descriptor, new Path(table));
    Constructor<?> stores = Class.forName(DELTA + "storage.dv.HadoopFileSystemDVStore", true, loader)
        .getConstructor(Configuration.class);
    Class<?> store = Class.forName(DELTA + "storage.dv.DeletionVectorStore", true, loader);
    Object bitmap = bitmaps.getMethod("load", store).invoke(stored, stores.newInstance(conf));
    return runs((long[]) bitmap.getClass().getMethod("toArray").invoke(bitmap), most);
  }

  /** Rows in ascending order as {@link #rows} gives them. */
  static String runs(long[] rows, int most) {
    StringJoiner runs = new StringJoiner(",");
    int count = 0;
    for (int at = 0; at < rows.length; count++) {
      int end = at + 1;
      while (end < rows.length && rows[end] == rows[end - 1] + 1) {
        end++;
      }
      if (count == most) {
        return null;
      }
      runs.add(rows[at] + "-" + (rows[end - 1] + 1));
      at = end;
    }
    return runs.toString();
  }
}
