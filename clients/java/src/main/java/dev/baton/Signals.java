package dev.baton;

import java.lang.System.Logger.Level;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;

/**
 * SIGTERM and SIGINT. A shutdown hook would come too late: by then other hooks are closing, at the
 * same time, what the handlers still work with. The signal class of the JDK has no supported name,
 * so it is looked up; a JVM without it ends as it always does.
 */
final class Signals {
  private static final System.Logger LOG = System.getLogger("baton");

  private Signals() {}

  /** Calls this for every signal that asks the process to end. */
  static void onEnd(Runnable action) {
    try {
      Class<?> signal = Class.forName("sun.misc.Signal");
      Class<?> handler = Class.forName("sun.misc.SignalHandler");
      Object told =
          Proxy.newProxyInstance(
              Signals.class.getClassLoader(),
              new Class<?>[] {handler},
              (self, method, arguments) -> {
                action.run();
                return null;
              });
      for (String name : new String[] {"TERM", "INT"}) {
        Object number = signal.getConstructor(String.class).newInstance(name);
        handle(name, signal.getMethod("handle", signal, handler), number, told);
      }
    } catch (ReflectiveOperationException error) {
      LOG.log(Level.WARNING, "signals cannot be handled: leadership is not handed over", error);
    }
  }

  /** A shell without job control starts background programs with INT ignored: so it stays then. */
  private static void handle(String name, Method handle, Object number, Object told)
      throws IllegalAccessException {
    try {
      handle.invoke(null, number, told);
    } catch (InvocationTargetException refused) {
      Level level = name.equals("TERM") ? Level.WARNING : Level.DEBUG;
      LOG.log(level, "SIG" + name + " cannot be handled", refused.getCause());
    }
  }
}
