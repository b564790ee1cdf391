package lineagemaster.expression;

import java.lang.reflect.Constructor;
import java.util.ArrayList;
import java.util.List;
import scala.collection.JavaConverters;
import scala.collection.Seq;

/**
 * Scala's lists. Spark's signatures with lists differ between versions of Scala, so methods and constructors that have
 * one are called by reflection here.
 */
@SuppressWarnings({"deprecation", "unchecked"}) // the only converters of both versions of Scala; items are not checked
public final class ScalaLists {
  private ScalaLists() {}

  public static Seq<Object> of(List<?> items) {
    return JavaConverters.asScalaBuffer(new ArrayList<Object>(items)).toList();
  }

  public static <T> List<T> asJava(Seq<T> items) {
    return new ArrayList<>(JavaConverters.seqAsJavaList(items));
  }

  /** The list that a method without parameters returns. */
  public static <T> List<T> get(Object target, String method) {
    try {
      return asJava((Seq<T>) target.getClass().getMethod(method).invoke(target));
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException(error);
    }
  }

  /** A new object, by the constructor that has as many parameters. */
  public static <T> T construct(Class<? extends T> type, Object... arguments) {
    try {
      for (Constructor<?> constructor : type.getConstructors()) {
        if (constructor.getParameterCount() == arguments.length) {
          return (T) constructor.newInstance(arguments);
        }
      }
    } catch (ReflectiveOperationException error) {
      throw new IllegalStateException(error);
    }
    throw new IllegalStateException(type + " has no constructor of " + arguments.length + " parameters");
  }
}
