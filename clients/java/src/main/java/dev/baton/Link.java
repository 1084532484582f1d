package dev.baton;

import java.time.Duration;

/** How the sidecar reaches the app: by calls to a server, or over a stream that the app opened. */
interface Link {
  /** Where the app is served; empty if it is attached. */
  String address();

  /** The app begins to leave: it wants no new work, but finishes what it has. */
  void leave();

  /** The app closes now: it is about to end its terms. */
  void closing();

  /** Ends the connection, within this time. */
  void close(Duration time) throws InterruptedException;
}
