package dev.baton;

import org.junit.jupiter.api.BeforeEach;

/** The same, over a stream. */
class AttachedExecutingTest extends ExecutingTest {
  @Override
  @BeforeEach
  void connect() throws Exception {
    sidecar = FakeSidecar.attached(app);
  }
}
