package lineagemaster.expression;

import java.lang.reflect.Constructor;
import java.util.ArrayList;
import java.util.List;
import scala.collection.JavaConverters;
import scala.collection.Seq;

/**
 * Scala's lists. Signatures of Spark that hold them are not the same in all Scalas, so what has one is called by
 * reflection here.
 */
@SuppressWarnings({"deprecation", "unchecked"}) // the only converters that both Scalas have; whose items nobody checks
public final class ScalaLists {
  private ScalaLists() {}

  public static Seq<Object> of(List<?> items) {
    return JavaConverters.asScalaBuffer(new ArrayList<Object>(items)).toList();
  }

  public static <T> List<T> asJava(Seq<T> items) {
    return new ArrayList<>(JavaConverters.seqAsJavaList(items));
  }

  /** The list that a method without parameters gives. */
  public static <T> List<T> asked(Object target, String method) {
    try {
      return asJava((Seq<T>) target.getClass().getMethod(method).invoke(target));
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException(error);
    }
  }

  /** A new one, by the constructor that has as many parameters. */
  public static <T> T made(Class<? extends T> type, Object... arguments) {
    try {
      for (Constructor<?> each : type.getConstructors()) {
        if (each.getParameterCount() == arguments.length) {
          return (T) each.newInstance(arguments);
        }
      }
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException(error);
    }
    throw new IllegalStateException(type + " has no constructor of " + arguments.length + " parameters");
  }
}
