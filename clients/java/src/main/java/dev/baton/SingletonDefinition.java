package dev.baton;

import dev.baton.v1.DeclaredSingleton;
import dev.baton.v1.StatePolicy;
import java.time.Duration;

/**
 * A singleton that the app declares itself. A singleton of the sidecar's file with the same name
 * wins.
 */
public final class SingletonDefinition {
  private final DeclaredSingleton singleton;

  private SingletonDefinition(DeclaredSingleton.Builder singleton) {
    this.singleton = singleton.build();
  }

  /** With every default: group {@code default}, called again 5 s after it has returned. */
  public static SingletonDefinition named(String name) {
    return new SingletonDefinition(DeclaredSingleton.newBuilder().setName(name));
  }

  /** The group whose leader runs it. */
  public SingletonDefinition withGroup(String name) {
    return new SingletonDefinition(singleton.toBuilder().setGroup(name));
  }

  /** Stale without a heartbeat or success in twice this time. */
  public SingletonDefinition withExpectedInterval(Duration time) {
    return new SingletonDefinition(
        singleton.toBuilder().setExpectedInterval(Times.message(time)));
  }

  /** A handler that returned is called again after this time. */
  public SingletonDefinition withRestartAfter(Duration time) {
    return new SingletonDefinition(singleton.toBuilder().setRestartAfter(Times.message(time)));
  }

  /** The version of its owned state, and the state before the first run. */
  public SingletonDefinition withState(int version, Object initial) {
    return withState(Policies.state(version, initial));
  }

  /** As above, with a JSON Schema or a time to live. */
  public SingletonDefinition withState(StatePolicy policy) {
    return new SingletonDefinition(singleton.toBuilder().setState(policy));
  }

  DeclaredSingleton message() {
    return singleton;
  }
}
