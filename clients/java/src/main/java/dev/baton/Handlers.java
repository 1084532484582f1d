package dev.baton;

import dev.baton.v1.ExecuteRequest;
import dev.baton.v1.JobSpec;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;

/** What the app can execute, by kind and name. */
final class Handlers {
  final Map<String, Handler> schedules = new ConcurrentHashMap<>();
  final Map<String, Handler> singletons = new ConcurrentHashMap<>();
  final Map<String, Handler> jobs = new ConcurrentHashMap<>();

  /** Declared by the app itself; the others are handlers of what the sidecar's file declares. */
  final List<ScheduleDefinition> declaredSchedules = new CopyOnWriteArrayList<>();

  final List<SingletonDefinition> declaredSingletons = new CopyOnWriteArrayList<>();

  /** What a job that is submitted here does not set. */
  final Map<String, JobSpec> jobDefaults = new ConcurrentHashMap<>();

  /** A job to submit, completed by the defaults of its handler in this app. */
  JobSpec withDefaults(JobSpec job) {
    JobSpec defaults = jobDefaults.get(job.getName());
    return defaults == null ? job : defaults.toBuilder().mergeFrom(job).build();
  }

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
