package dev.baton;

import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * The threads of an app: those of hooks and handlers, which may block, and a timer, which may not.
 */
record Threads(ExecutorService handlers, ScheduledExecutorService timer) {
  static Threads start() {
    ScheduledThreadPoolExecutor timer = new ScheduledThreadPoolExecutor(1, daemons("baton-timer"));
    timer.setRemoveOnCancelPolicy(true); // most deadlines never come
    return new Threads(Executors.newCachedThreadPool(daemons("baton-handler")), timer);
  }

  void close() {
    timer.shutdownNow();
    handlers.shutdown();
  }

  static ThreadFactory daemons(String name) {
    AtomicInteger count = new AtomicInteger();
    return task -> {
      Thread thread = new Thread(task, name + "-" + count.incrementAndGet());
      thread.setDaemon(true);
      return thread;
    };
  }
}
