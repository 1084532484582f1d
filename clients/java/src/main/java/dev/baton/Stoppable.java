package dev.baton;

/** Work in a thread that can be told to stop: once, or its cleaning up would be cut short too. */
final class Stoppable {
  private Thread thread;
  private boolean stopped;

  /** Does the work in this thread, which is left without an interrupt that was meant for it. */
  void run(Runnable work) {
    synchronized (this) {
      thread = Thread.currentThread();
      if (stopped) {
        thread.interrupt();
      }
    }
    try {
      work.run();
    } finally {
      synchronized (this) {
        thread = null;
        Thread.interrupted();
      }
    }
  }

  /** Interrupts the work, or will do so when it begins. */
  synchronized void stop() {
    if (!stopped) {
      stopped = true;
      if (thread != null) {
        thread.interrupt();
      }
    }
  }

  synchronized boolean isStopped() {
    return stopped;
  }
}
