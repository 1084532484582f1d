package dev.baton;

import io.grpc.Server;
import io.grpc.ServerInterceptors;
import io.grpc.health.v1.HealthCheckResponse.ServingStatus;
import io.grpc.protobuf.services.HealthStatusManager;
import java.io.IOException;
import java.time.Duration;
import java.util.concurrent.TimeUnit;

/** An app that serves AppCallback and grpc.health.v1. */
final class Served implements Link {
  private static final String SERVICE = "baton.v1.AppCallback";

  private final HealthStatusManager health = new HealthStatusManager();
  private final Server server;
  private final String configured;
  private volatile String address = "";

  Served(AppCalls app, Options options) throws IOException {
    Callbacks.Gate gate = new Callbacks.Gate(TokenFile.of(options.appTokenFile()));
    configured = options.appAddress();
    server =
        Transport.listener(configured)
            .addService(ServerInterceptors.intercept(new Callbacks(app), gate))
            .addService(health.getHealthService()) // without a token: the kubelet has none
            .build();
    health.setStatus(SERVICE, ServingStatus.SERVING);
  }

  void start() throws IOException {
    server.start();
    address = Transport.served(configured, server);
  }

  @Override
  public String address() {
    return address;
  }

  /** Stays healthy: the sidecar hands over what it leads, by its own calls. */
  @Override
  public void leave() {}

  @Override
  public void closing() {
    health.enterTerminalState();
  }

  @Override
  public void close(Duration time) throws InterruptedException {
    try {
      server.shutdown().awaitTermination(time.toMillis(), TimeUnit.MILLISECONDS);
    } finally {
      server.shutdownNow();
    }
  }
}
