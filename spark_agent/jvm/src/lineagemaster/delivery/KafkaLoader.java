package lineagemaster.delivery;

import java.io.IOException;
import java.io.InputStream;
import java.util.Map;

/**
 * Loads the Kafka client that the agent's jar carries, below `kafka-client/`, apart from any other that the job has.
 * What the client needs beside itself (compression, the interfaces of slf4j) is Spark's.
 */
final class KafkaLoader extends ClassLoader {
  private static final String ROOT = "kafka-client/";
  private static final String PACKAGE = "lineagemaster.delivery.kafka.";

  private KafkaLoader(ClassLoader parent) {
    super(parent);
  }

  /**
   * A new client.
   *
   * @param acknowledged called when the broker has taken a message
   * @param isPatient may it wait for answers as long as they take, since nobody waits for it
   */
  static BrokerClient client(AgentConfig config, Runnable acknowledged, boolean isPatient)
      throws ReflectiveOperationException {
    Thread thread = Thread.currentThread();
    ClassLoader context = thread.getContextClassLoader();
    KafkaLoader loader = new KafkaLoader(KafkaLoader.class.getClassLoader());
    try {
      thread.setContextClassLoader(loader); // Kafka looks there for classes that options name
      return (BrokerClient) loader.loadClass(PACKAGE + "KafkaClient")
          .getConstructor(Map.class, String.class, Runnable.class, boolean.class)
          .newInstance(config.clientOptions, config.compression, acknowledged, isPatient);
    } finally {
      thread.setContextClassLoader(context);
    }
  }

  @Override
  protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
    if (!name.startsWith("org.apache.kafka.")
        && !name.startsWith(PACKAGE)
        && !name.equals("org.slf4j.LoggerFactory")) {
      return super.loadClass(name, resolve);
    }
    synchronized (getClassLoadingLock(name)) {
      Class<?> loaded = findLoadedClass(name);
      return loaded == null ? findClass(name) : loaded;
    }
  }

  @Override
  protected Class<?> findClass(String name) throws ClassNotFoundException {
    try (InputStream file = getParent().getResourceAsStream(ROOT + name.replace('.', '/') + ".class")) {
      if (file == null) {
        throw new ClassNotFoundException(name);
      }
      byte[] code = file.readAllBytes();
      return defineClass(name, code, 0, code.length);
    } catch (IOException error) {
      throw new ClassNotFoundException(name, error);
    }
  }
}
