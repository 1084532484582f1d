package dev.baton;

import dev.baton.v1.Job;
import dev.baton.v1.JobFilter;
import dev.baton.v1.JobSpec;
import dev.baton.v1.JobsCancelRequest;
import dev.baton.v1.JobsCancelResponse;
import dev.baton.v1.JobsDiscardRequest;
import dev.baton.v1.JobsGetBatchRequest;
import dev.baton.v1.JobsGetBatchResponse;
import dev.baton.v1.JobsGetRequest;
import dev.baton.v1.JobsGrpc;
import dev.baton.v1.JobsListDeadRequest;
import dev.baton.v1.JobsListDeadResponse;
import dev.baton.v1.JobsListRequest;
import dev.baton.v1.JobsListResponse;
import dev.baton.v1.JobsPauseQueueRequest;
import dev.baton.v1.JobsReplayRequest;
import dev.baton.v1.JobsRescheduleRequest;
import dev.baton.v1.JobsResumeQueueRequest;
import dev.baton.v1.JobsRetryRequest;
import dev.baton.v1.JobsStatsRequest;
import dev.baton.v1.JobsSubmitRequest;
import dev.baton.v1.Queue;
import dev.baton.v1.RunState;
import io.grpc.Status;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.UUID;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;

/** Jobs, their queues and dead letters: submitting, reading and steering them; on any pod. */
public final class Jobs {
  private static final Duration WAIT_MAX = Duration.ofSeconds(30);
  private final Connection connection;
  private final UnaryOperator<JobSpec> defaults;
  private final Supplier<String> cluster;

  Jobs(Connection connection, UnaryOperator<JobSpec> defaults, Supplier<String> cluster) {
    this.connection = connection;
    this.defaults = defaults;
    this.cluster = cluster;
  }

  /**
   * What became of a submitted job.
   *
   * @param id of the job, or of the earlier one
   * @param duplicate an earlier job was found ({@link NewJob#withUnique})
   */
  public record Submitted(long id, boolean duplicate) {}

  /** Submits a job with the defaults of its handler in this app; durable once it returns. */
  public Submitted submit(String name, Object payload) {
    return submit(NewJob.named(name, payload));
  }

  /** Submits a job; what it does not set comes from the defaults of its handler in this app. */
  public Submitted submit(NewJob job) {
    return submitMany(List.of(job)).get(0);
  }

  /** Submits up to 1,000 jobs, all or none; what became of each, in this order. */
  public List<Submitted> submitMany(List<NewJob> jobs) {
    return submit(JobsSubmitRequest.newBuilder(), jobs);
  }

  /**
   * Submits all jobs of a batch, up to 1,000, and closes it; when all have ended {@code onComplete}
   * is submitted. It may be null.
   */
  public List<Submitted> submitBatch(String batch, List<NewJob> jobs, NewJob onComplete) {
    JobsSubmitRequest.Builder request = JobsSubmitRequest.newBuilder().setBatch(batch);
    if (onComplete != null) {
      request.setOnComplete(defaults.apply(onComplete.spec()));
    }
    return submit(request, jobs.stream().map(job -> job.withBatch(batch)).toList());
  }

  /**
   * Submits a job in a transaction of your own: it exists if that commits. The sidecar is not
   * called, but must have been heard of: its cluster is that of the job.
   */
  public long enqueue(java.sql.Connection transaction, NewJob job) throws SQLException {
    String known = cluster.get();
    if (known == null) {
      throw new BatonException.NotConnected("the cluster is not known yet: attach, or name it");
    }
    return JobSql.enqueue(transaction, known, defaults.apply(job.spec()));
  }

  /** As above, for a program without a sidecar: the job is one of this cluster. */
  public static long enqueue(java.sql.Connection transaction, String cluster, NewJob job)
      throws SQLException {
    return JobSql.enqueue(transaction, cluster, job.spec());
  }

  /** One job, with its payload, result and history. */
  public Job get(long id) {
    JobsGetRequest request = JobsGetRequest.newBuilder().setJobId(id).build();
    return connection.ask(JobsGrpc.getGetMethod(), request).getJob();
  }

  /** The job once it has ended; {@link BatonException.DeadlineExceeded} if not in this time. */
  public Job awaitEnd(long id, Duration timeout) {
    long deadline = System.nanoTime() + timeout.toNanos();
    while (true) {
      Duration left = Duration.ofNanos(Math.max(0, deadline - System.nanoTime()));
      Duration wait = left.compareTo(WAIT_MAX) < 0 ? left : WAIT_MAX;
      JobsGetRequest request =
          JobsGetRequest.newBuilder().setJobId(id).setWait(Times.message(wait)).build();
      Duration time = wait.plus(Connection.CALL_TIME);
      Job job = connection.ask(JobsGrpc.getGetMethod(), request, time).getJob();
      if (job.getState() == RunState.RUN_STATE_ENDED) {
        return job;
      }
      if (left.isZero()) {
        String text = "job " + Long.toUnsignedString(id) + " has not ended within " + timeout;
        Status late = Status.DEADLINE_EXCEEDED.withDescription(text);
        throw Errors.of(late.asRuntimeException(), false);
      }
    }
  }

  /** The job now and after each change, until it has ended. */
  public Watch<Job> watch(long id) {
    return new JobWatch(connection, id);
  }

  /** Jobs that match, newest first, without payload, result and history. */
  public Stream<Job> list(JobFilter filter) {
    JobsListRequest request = JobsListRequest.newBuilder().setFilter(filter).build();
    return Paging.all(
        token ->
            connection.ask(
                JobsGrpc.getListMethod(), request.toBuilder().setPageToken(token).build()),
        JobsListResponse::getJobsList,
        JobsListResponse::getNextPageToken);
  }

  /** Ends a job, or asks for it to be ended if it runs; the note says why. */
  public JobsCancelResponse cancel(long id, String note) {
    return cancel(JobsCancelRequest.newBuilder().addJobIds(id).setNote(note).build());
  }

  /** As above, for all live jobs that match, at most 10,000. */
  public JobsCancelResponse cancel(JobFilter filter, String note) {
    return cancel(JobsCancelRequest.newBuilder().setFilter(filter).setNote(note).build());
  }

  /** Makes a job that waits for its next attempt due now. */
  public Job retry(long id) {
    JobsRetryRequest request = JobsRetryRequest.newBuilder().setJobId(id).build();
    return connection.tell(JobsGrpc.getRetryMethod(), request).getJob();
  }

  /** Changes when a job that does not run is due. */
  public Job reschedule(long id, Instant dueAt) {
    JobsRescheduleRequest request =
        JobsRescheduleRequest.newBuilder().setJobId(id).setDueAt(Times.message(dueAt)).build();
    return connection.ask(JobsGrpc.getRescheduleMethod(), request).getJob();
  }

  /** Depth, age and limits of every queue, by name. */
  public List<Queue> stats() {
    return connection
        .ask(JobsGrpc.getStatsMethod(), JobsStatsRequest.getDefaultInstance())
        .getQueuesList();
  }

  /** Starts no more jobs of a queue, on all pods; the note says why. */
  public Queue pauseQueue(String queue, String note) {
    JobsPauseQueueRequest request =
        JobsPauseQueueRequest.newBuilder().setQueue(queue).setNote(note).build();
    return connection.ask(JobsGrpc.getPauseQueueMethod(), request).getQueue();
  }

  /** Starts jobs of a queue again. */
  public Queue resumeQueue(String queue) {
    JobsResumeQueueRequest request = JobsResumeQueueRequest.newBuilder().setQueue(queue).build();
    return connection.ask(JobsGrpc.getResumeQueueMethod(), request).getQueue();
  }

  /** Counts the jobs of a batch. */
  public JobsGetBatchResponse batch(String batch) {
    JobsGetBatchRequest request = JobsGetBatchRequest.newBuilder().setBatch(batch).build();
    return connection.ask(JobsGrpc.getGetBatchMethod(), request);
  }

  /** Dead letters that match, newest first, without payloads. */
  public Stream<Job> dead(JobFilter filter) {
    JobsListDeadRequest request = JobsListDeadRequest.newBuilder().setFilter(filter).build();
    return Paging.all(
        token ->
            connection.ask(
                JobsGrpc.getListDeadMethod(), request.toBuilder().setPageToken(token).build()),
        JobsListDeadResponse::getJobsList,
        JobsListDeadResponse::getNextPageToken);
  }

  /** Queues dead letters again; how many. */
  public int replay(List<Long> ids) {
    return replay(JobsReplayRequest.newBuilder().addAllJobIds(ids));
  }

  /** Queues all dead letters that match again, or only counts them. */
  public int replay(JobFilter filter, boolean dryRun) {
    return replay(JobsReplayRequest.newBuilder().setFilter(filter).setDryRun(dryRun));
  }

  /** Removes dead letters; how many. */
  public int discard(List<Long> ids) {
    return discard(JobsDiscardRequest.newBuilder().addAllJobIds(ids));
  }

  /** Removes all dead letters that match, or only counts them. */
  public int discard(JobFilter filter, boolean dryRun) {
    return discard(JobsDiscardRequest.newBuilder().setFilter(filter).setDryRun(dryRun));
  }

  /** The request id makes it safe to ask again after a lost answer. */
  private List<Submitted> submit(JobsSubmitRequest.Builder request, List<NewJob> jobs) {
    request.setRequestId(UUID.randomUUID().toString());
    jobs.forEach(job -> request.addJobs(defaults.apply(job.spec())));
    return connection.ask(JobsGrpc.getSubmitMethod(), request.build()).getJobsList().stream()
        .map(job -> new Submitted(job.getJobId(), job.getDuplicate()))
        .toList();
  }

  private JobsCancelResponse cancel(JobsCancelRequest request) {
    return connection.ask(JobsGrpc.getCancelMethod(), request);
  }

  private int replay(JobsReplayRequest.Builder request) {
    return connection.tell(JobsGrpc.getReplayMethod(), request.build()).getReplayed();
  }

  private int discard(JobsDiscardRequest.Builder request) {
    return connection.tell(JobsGrpc.getDiscardMethod(), request.build()).getDiscarded();
  }
}
