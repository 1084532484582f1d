package dev.baton;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.charset.StandardCharsets;

/**
 * The clock on which trust is measured: it goes on while the machine sleeps.
 *
 * <p>Java cannot ask for CLOCK_BOOTTIME, but Linux shows it in /proc/uptime, cut to hundredths of a
 * second. Therefore a reading is a range: take {@link #earliest} where trust begins and {@link
 * #latest} where it might end. Elsewhere System.nanoTime stands in, and readings of the sidecar's
 * boot time cannot be compared with it.
 */
abstract class Clock {
  /** The clock of this machine. */
  static final Clock SYSTEM = system();

  /** Nanoseconds since boot, or a little less. */
  abstract long earliest();

  /** Nanoseconds since boot, or a little more. */
  abstract long latest();

  /** Whether readings may be compared with those of the sidecar's CLOCK_BOOTTIME. */
  abstract boolean isBoottime();

  private static Clock system() {
    try {
      Clock clock = new Uptime(new RandomAccessFile("/proc/uptime", "r"));
      clock.earliest();
      return clock;
    } catch (IOException | RuntimeException notLinux) {
      return new Monotonic();
    }
  }

  /** Linux. The file stays open: reading it again at the start gives the time anew. */
  private static final class Uptime extends Clock {
    private static final long STEP = 10_000_000L;
    private final RandomAccessFile file; // not a channel: that would be closed by an interrupt
    private final byte[] buffer = new byte[64];

    Uptime(RandomAccessFile file) {
      this.file = file;
    }

    @Override
    synchronized long earliest() {
      try {
        file.seek(0);
        int length = file.read(buffer);
        String text = new String(buffer, 0, length, StandardCharsets.US_ASCII);
        String seconds = text.substring(0, text.indexOf(' '));
        int point = seconds.indexOf('.');
        return STEP * Long.parseLong(seconds.substring(0, point) + seconds.substring(point + 1));
      } catch (IOException impossible) {
        throw new IllegalStateException("/proc/uptime cannot be read any more", impossible);
      }
    }

    @Override
    long latest() {
      return earliest() + STEP;
    }

    @Override
    boolean isBoottime() {
      return true;
    }
  }

  private static final class Monotonic extends Clock {
    private final long origin = System.nanoTime();

    @Override
    long earliest() {
      return System.nanoTime() - origin;
    }

    @Override
    long latest() {
      return earliest();
    }

    @Override
    boolean isBoottime() {
      return false;
    }
  }
}
