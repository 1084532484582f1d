package dev.baton;

import dev.baton.v1.ExecuteRequest;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;

/** What the app can execute, by kind and name. */
final class Handlers {
  final Map<String, Handler> schedules = new ConcurrentHashMap<>();
  final Map<String, Handler> singletons = new ConcurrentHashMap<>();
  final Map<String, Handler> jobs = new ConcurrentHashMap<>();

  Optional<Handler> find(ExecuteRequest request) {
    Map<String, Handler> byName =
        switch (request.getKind()) {
          case RUN_KIND_SINGLETON -> singletons;
          case RUN_KIND_JOB -> jobs;
          default -> schedules;
        };
    return Optional.ofNullable(byName.get(request.getName()));
  }
}
