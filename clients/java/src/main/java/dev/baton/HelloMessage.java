package dev.baton;

import dev.baton.v1.Hello;

/** The first message of a stream: who attaches, what it can execute and what it declares. */
record HelloMessage(Handlers handlers, Options options) {
  /** As pom.xml has it. */
  static final String VERSION = "0.1.0";

  Hello build() {
    return Hello.newBuilder()
        .setClient("baton-java/" + VERSION)
        .setProcessId(Long.toString(ProcessHandle.current().pid()))
        .setCapacity(options.capacity())
        .addAllSingletons(handlers.singletons.keySet())
        .addAllSchedules(handlers.schedules.keySet())
        .addAllJobs(handlers.jobs.keySet())
        .addAllDeclaredSchedules(
            handlers.declaredSchedules.stream().map(ScheduleDefinition::message).toList())
        .addAllDeclaredSingletons(
            handlers.declaredSingletons.stream().map(SingletonDefinition::message).toList())
        .setRevision(options.revision())
        .build();
  }
}
