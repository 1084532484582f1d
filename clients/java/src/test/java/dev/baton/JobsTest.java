package dev.baton;

import static dev.baton.FakeSidecar.eventually;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.baton.v1.Job;
import dev.baton.v1.JobConflict;
import dev.baton.v1.JobFilter;
import dev.baton.v1.JobPriority;
import dev.baton.v1.JobSpec;
import dev.baton.v1.Outcome;
import dev.baton.v1.RunState;
import io.grpc.Status;
import java.io.IOException;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Jobs: their handlers, and the client that submits and steers them. */
@Timeout(240)
class JobsTest {
  private static final Duration LONG = Duration.ofSeconds(120);

  final Baton app = new Baton();
  FakeSidecar sidecar;
  private final List<String> told = new CopyOnWriteArrayList<>();

  /** A state. */
  record Count(int count) {}

  @BeforeEach
  void open() throws IOException {
    sidecar = new FakeSidecar();
  }

  @AfterEach
  void close() {
    app.close();
    sidecar.close();
  }

  Jobs connect() throws Exception {
    app.attach(sidecar.attachOptions());
    sidecar.stream.session();
    return app.jobs();
  }

  private Job ended(long id) {
    return app.jobs().awaitEnd(id, LONG);
  }

  private String result(long id) {
    Job job = ended(id);
    assertEquals(Outcome.OUTCOME_SUCCEEDED, job.getOutcome(), job::getError);
    return job.getResult().toStringUtf8();
  }

  /** A job needs no term; its handler sees what it was submitted with. */
  @Test
  void aJobRunsWithoutLeadership() throws Exception {
    app.job(
        "send-mail",
        context -> {
          ClusterContext cluster = Cluster.context();
          assertEquals("", cluster.group());
          assertEquals("job", cluster.entityType());
          assertFalse(cluster.isLeader());
          assertEquals(FakeJobs.WORKER, context.epoch());
          assertEquals("mail", context.queue());
          assertEquals("customer-7", context.key());
          assertEquals(JobPriority.JOB_PRIORITY_HIGH, context.priority());
          assertEquals(Map.of("shop", "berlin"), context.labels());
          assertEquals("newsletter", context.batch());
          assertEquals(0, context.rescues());
          assertTrue(context.submittedAt().isAfter(Instant.EPOCH));
          return Result.of(context.payload(String.class) + " at attempt " + context.attempt());
        });
    Jobs jobs = connect();
    NewJob job =
        NewJob.named("send-mail", "hello")
            .withQueue("mail")
            .withKey("customer-7")
            .withPriority(JobPriority.JOB_PRIORITY_HIGH)
            .withLabel("shop", "berlin")
            .withBatch("newsletter");
    Jobs.Submitted submitted = jobs.submit(job);
    assertFalse(submitted.duplicate());
    assertEquals("\"hello at attempt 1\"", result(submitted.id()));
    assertFalse(app.isLeader());
    assertEquals(1, jobs.batch("newsletter").getTotal());
  }

  /** What a job does not set comes from its handler; what it sets wins. */
  @Test
  void theHandlerHasDefaultsForItsJobs() throws Exception {
    NewJob defaults =
        NewJob.named("send-mail").withQueue("mail").withRetry(5).withTimeout(LONG);
    app.job(defaults, context -> null);
    app.job("other", context -> null);
    Jobs jobs = connect();
    jobs.submitMany(
        List.of(
            NewJob.named("send-mail", 1),
            NewJob.named("send-mail", 2).withQueue("urgent").withRetry(1),
            NewJob.named("other", 3)));
    List<JobSpec> sent = sidecar.jobsService.submits.get(0).getJobsList();
    assertEquals(List.of("mail", "urgent", ""), sent.stream().map(JobSpec::getQueue).toList());
    assertEquals(
        List.of(5, 1, 0), sent.stream().map(it -> it.getRetry().getAttempts()).toList());
    assertEquals(Times.message(LONG), sent.get(1).getTimeout());
    assertEquals("2", sent.get(1).getPayload().toStringUtf8());
  }

  /** G13: a Submit whose answer was lost is asked again, and makes no second job. */
  @Test
  void aLostAnswerMakesNoSecondJob() throws Exception {
    app.job("send-mail", context -> null);
    Jobs jobs = connect();
    sidecar.jobsService.lostAnswers = 2;
    long id = jobs.submit("send-mail", 1).id();
    assertEquals(3, sidecar.jobsService.submits.size());
    assertEquals(1, sidecar.jobs.all.size());
    long other = jobs.submit("send-mail", 1).id();
    assertTrue(other != id);
  }

  /** Snoozing uses no retry: the job comes back when its time has come. */
  @Test
  void aSnoozedJobComesBack() throws Exception {
    app.job(
        "poll",
        context -> {
          told.add("attempt " + context.attempt());
          Count state = context.state(Count.class, new Count(0));
          if (context.attempt() == 1) {
            throw new Ending.Snooze(Duration.ofMinutes(5)).state(new Count(1));
          }
          if (context.attempt() == 2) {
            throw new Ending.Snooze(Instant.parse("2027-01-02T00:00:00Z"));
          }
          return Result.of(state);
        });
    Jobs jobs = connect();
    long id = jobs.submit(NewJob.named("poll").withRetry(1).withKey("a")).id();
    eventually(() -> sidecar.jobs.job(id).getState() == RunState.RUN_STATE_WAITING);
    sidecar.jobs.advance(Duration.ofMinutes(4));
    assertEquals(RunState.RUN_STATE_WAITING, sidecar.jobs.job(id).getState());
    sidecar.jobs.advance(Duration.ofMinutes(1));
    eventually(() -> told.size() == 2);
    eventually(() -> sidecar.jobs.job(id).getState() == RunState.RUN_STATE_WAITING);
    sidecar.jobs.advance(Duration.ofDays(1));
    assertEquals("{\"count\":1}", result(id));
    assertEquals(0, jobs.get(id).getFailures());
    assertEquals(List.of("attempt 1", "attempt 2", "attempt 3"), told);
  }

  /** A schedule has its own times: snoozing it is a mistake, said so. */
  @Test
  void onlyJobsCanBeSnoozed() throws Exception {
    app.schedule(
        "report",
        context -> {
          throw new Ending.Snooze(LONG);
        });
    connect();
    sidecar.lead();
    var failed = sidecar.execute("report", null).getFailed();
    assertEquals("SnoozeNotAllowed", failed.getCode());
    assertFalse(failed.getRetryable());
  }

  /** Follow-up jobs go with the outcome, with the defaults of their own handlers. */
  @Test
  void aResultCarriesFollowUpJobs() throws Exception {
    app.job("order", context -> Result.of("sold").withJobs(NewJob.named("ship", 7)));
    app.job(
        NewJob.named("ship").withQueue("warehouse"),
        context -> {
          told.add(context.queue() + " " + context.payload(Integer.class));
          return null;
        });
    Jobs jobs = connect();
    assertEquals("\"sold\"", result(jobs.submit("order", null).id()));
    eventually(() -> !told.isEmpty());
    assertEquals(List.of("warehouse 7"), told);
  }

  /** G16: the jobs of one key share a state, which is written with the outcome or before. */
  @Test
  void keyedJobsShareState() throws Exception {
    app.job(
        "count",
        context -> {
          int count = context.state(Count.class, new Count(0)).count();
          context.putState(new Count(count + 1));
          return Result.of(count + 1).withState(new Count(count + 2));
        });
    Jobs jobs = connect();
    NewJob job = NewJob.named("count").withKey("a");
    assertEquals("1", result(jobs.submit(job).id()));
    assertEquals("3", result(jobs.submit(job).id()));
    String stored = sidecar.state.value("job-state:count/a").toStringUtf8();
    assertEquals("{\"count\":4}", stored);
  }

  /** G5: a failed attempt keeps its steps; after the last one the job is a dead letter. */
  @Test
  void aFailedJobIsRetriedThenDead() throws Exception {
    app.job(
        "charge",
        context -> {
          context.step("once", () -> told.add("once"));
          throw new IOException("declined");
        });
    Jobs jobs = connect();
    long id = jobs.submit(NewJob.named("charge").withRetry(2)).id();
    eventually(() -> sidecar.jobs.job(id).getState() == RunState.RUN_STATE_WAITING);
    jobs.retry(id); // does not wait for its back-off
    Job dead = ended(id);
    assertEquals(Outcome.OUTCOME_FAILED, dead.getOutcome());
    assertEquals("IOException: declined", dead.getError());
    assertEquals(List.of("once"), told);
    JobFilter filter = JobFilter.newBuilder().setName("charge").build();
    assertEquals(List.of(id), jobs.dead(filter).map(Job::getJobId).toList());
    assertEquals(1, jobs.replay(filter, true));
    assertEquals(1, jobs.replay(List.of(id)));
    eventually(() -> sidecar.jobs.job(id).getState() == RunState.RUN_STATE_WAITING);
    jobs.reschedule(id, Instant.EPOCH);
    eventually(() -> sidecar.jobs.dead().size() == 1);
    assertEquals(1, jobs.discard(filter, true));
    assertEquals(1, jobs.discard(List.of(id)));
    assertThrows(BatonException.NotFound.class, () -> jobs.get(id));
  }

  /** One of two equal jobs is enough; which one, the answer says. */
  @Test
  void aUniqueJobIsSubmittedOnce() throws Exception {
    app.job("report", context -> null);
    Jobs jobs = connect();
    jobs.pauseQueue("default", "release");
    NewJob job = NewJob.named("report").withUnique("today");
    Jobs.Submitted first = jobs.submit(job);
    assertEquals(new Jobs.Submitted(first.id(), true), jobs.submit(job));
    NewJob window = job.withUnique("today", LONG, JobConflict.JOB_CONFLICT_REJECT);
    jobs.submit(window);
    var unique = sidecar.jobsService.submits.get(2).getJobs(0).getUnique();
    assertEquals(Times.message(LONG), unique.getWindow());
    assertEquals(JobConflict.JOB_CONFLICT_REJECT, unique.getOnConflict());
  }

  /** A running job that is cancelled is interrupted; one that waits just ends. */
  @Test
  void jobsAreCancelled() throws Exception {
    app.job(
        "slow",
        context -> {
          told.add("begun");
          try {
            Thread.sleep(600_000);
          } finally {
            told.add("stopped " + context.isCancelled());
          }
          return null;
        });
    Jobs jobs = connect();
    long running = jobs.submit("slow", null).id();
    eventually(() -> told.contains("begun"));
    assertEquals(1, jobs.cancel(running, "wrong").getRequested());
    eventually(() -> told.contains("stopped true"));
    jobs.submit(NewJob.named("slow").withDelay(LONG));
    JobFilter slow = JobFilter.newBuilder().setName("slow").build();
    assertEquals(1, jobs.cancel(slow, "wrong").getCancelled());
  }

  /** G14: a job is cancelled with its stream, and offered again to whoever attaches. */
  @Test
  void aJobIsStoppedWithItsStream() throws Exception {
    app.job(
        "slow",
        context -> {
          if (context.attempt() == 1) {
            told.add("begun");
            Thread.sleep(600_000);
          }
          return Result.of("rescues " + context.rescues());
        });
    Jobs jobs = connect();
    long id = jobs.submit("slow", null).id();
    eventually(() -> told.contains("begun"));
    sidecar.stream.session().end(Status.UNAVAILABLE);
    sidecar.stream.session(1);
    eventually(() -> sidecar.jobs.job(id).getState() == RunState.RUN_STATE_QUEUED);
    sidecar.jobs.start();
    assertEquals("\"rescues 1\"", result(id));
  }

  /** Waiting has an end; a queue that was paused starts its jobs when it is resumed. */
  @Test
  void queuesArePausedAndResumed() throws Exception {
    app.job("report", context -> Result.of("done"));
    Jobs jobs = connect();
    assertTrue(jobs.pauseQueue("default", "release").getPaused());
    assertEquals(List.of(true), jobs.stats().stream().map(it -> it.getPaused()).toList());
    long id = jobs.submit("report", null).id();
    assertThrows(
        BatonException.DeadlineExceeded.class, () -> jobs.awaitEnd(id, Duration.ofMillis(20)));
    assertFalse(jobs.resumeQueue("default").getPaused());
    assertEquals("\"done\"", result(id));
    jobs.submit("report", null);
    assertEquals(2, jobs.list(JobFilter.getDefaultInstance()).count());
  }

  /** A watch ends with its job, and survives a broken stream. */
  @Test
  void aJobIsWatchedToItsEnd() throws Exception {
    app.job("report", context -> Result.of("done"));
    Jobs jobs = connect();
    jobs.pauseQueue("default", "");
    long id = jobs.submit("report", null).id();
    sidecar.jobsService.breaksWatch = true;
    try (Watch<Job> watch = jobs.watch(id)) {
      assertEquals(RunState.RUN_STATE_QUEUED, watch.next().getState());
      assertEquals(RunState.RUN_STATE_QUEUED, watch.next().getState()); // opened again
      jobs.resumeQueue("default");
      assertEquals(RunState.RUN_STATE_ENDED, watch.next().getState());
      assertFalse(watch.hasNext());
    }
  }

  /** All jobs of a batch, closed, with what comes after them. */
  @Test
  void aBatchIsSubmittedWhole() throws Exception {
    app.job(NewJob.named("done").withQueue("mail"), context -> null);
    Jobs jobs = connect();
    jobs.submitBatch("b", List.of(NewJob.named("one"), NewJob.named("two")), NewJob.named("done"));
    var request = sidecar.jobsService.submits.get(0);
    assertEquals("b", request.getBatch());
    assertEquals("mail", request.getOnComplete().getQueue());
    assertEquals(2, jobs.batch("b").getTotal());
  }
}
