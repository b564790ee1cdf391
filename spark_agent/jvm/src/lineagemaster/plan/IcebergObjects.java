package lineagemaster.plan;

import java.lang.reflect.Field;

/** Objects of Iceberg's own classes, which the agent is not compiled against. */
final class IcebergObjects {
  private static final String ROOT = "org.apache.iceberg.";

  private IcebergObjects() {}

  /** What a method without parameters of a public type of Iceberg returns. Implementations are not public. */
  static Object call(String type, Object target, String method) throws ReflectiveOperationException {
    return type(type, target).getMethod(method).invoke(target);
  }

  /** A public type of Iceberg, as the class loader of the object has it. */
  static Class<?> type(String name, Object target) throws ReflectiveOperationException {
    return Class.forName(ROOT + name, true, target.getClass().getClassLoader());
  }

  /** The value of a field, of whatever class above the object's declares it. */
  static Object field(Object target, String name) throws ReflectiveOperationException {
    return declared(target, name).get(target);
  }

  static void set(Object target, String name, Object value) throws ReflectiveOperationException {
    declared(target, name).set(target, value);
  }

  static boolean hasField(Object target, String name) {
    try {
      declared(target, name);
      return true;
    } catch (NoSuchFieldException none) {
      return false;
    }
  }

  private static Field declared(Object target, String name) throws NoSuchFieldException {
    for (Class<?> type = target.getClass(); type != null; type = type.getSuperclass()) {
      for (Field field : type.getDeclaredFields()) {
        if (field.getName().equals(name)) {
          field.setAccessible(true);
          return field;
        }
      }
    }
    throw new NoSuchFieldException(target.getClass() + " has no " + name);
  }

  /** Is the class of the object, or one above it, called so? */
  static boolean isA(Object target, String name) {
    for (Class<?> type = target.getClass(); type != null; type = type.getSuperclass()) {
      if (type.getName().equals(name)) {
        return true;
      }
    }
    return false;
  }
}
