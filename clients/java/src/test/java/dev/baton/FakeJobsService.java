package dev.baton;

import dev.baton.v1.Job;
import dev.baton.v1.JobSpec;
import dev.baton.v1.JobsCancelRequest;
import dev.baton.v1.JobsCancelResponse;
import dev.baton.v1.JobsDiscardRequest;
import dev.baton.v1.JobsDiscardResponse;
import dev.baton.v1.JobsGetBatchRequest;
import dev.baton.v1.JobsGetBatchResponse;
import dev.baton.v1.JobsGetRequest;
import dev.baton.v1.JobsGetResponse;
import dev.baton.v1.JobsGrpc;
import dev.baton.v1.JobsListDeadRequest;
import dev.baton.v1.JobsListDeadResponse;
import dev.baton.v1.JobsListRequest;
import dev.baton.v1.JobsListResponse;
import dev.baton.v1.JobsPauseQueueRequest;
import dev.baton.v1.JobsPauseQueueResponse;
import dev.baton.v1.JobsReplayRequest;
import dev.baton.v1.JobsReplayResponse;
import dev.baton.v1.JobsRescheduleRequest;
import dev.baton.v1.JobsRescheduleResponse;
import dev.baton.v1.JobsResumeQueueRequest;
import dev.baton.v1.JobsResumeQueueResponse;
import dev.baton.v1.JobsRetryRequest;
import dev.baton.v1.JobsRetryResponse;
import dev.baton.v1.JobsStatsRequest;
import dev.baton.v1.JobsStatsResponse;
import dev.baton.v1.JobsSubmitRequest;
import dev.baton.v1.JobsSubmitResponse;
import dev.baton.v1.JobsWatchRequest;
import dev.baton.v1.JobsWatchResponse;
import dev.baton.v1.Queue;
import dev.baton.v1.RunState;
import io.grpc.Status;
import io.grpc.stub.StreamObserver;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;

/** The service of jobs, on those in memory. */
final class FakeJobsService extends JobsGrpc.JobsImplBase {
  /** Every Submit, in order. */
  final List<JobsSubmitRequest> submits = new CopyOnWriteArrayList<>();

  /** The next answers of Submit get lost after the jobs were stored. */
  volatile int lostAnswers;

  /** The next Watch breaks after its first message. */
  volatile boolean breaksWatch;

  private final FakeJobs jobs;
  private final Map<String, JobsSubmitResponse> answered = new ConcurrentHashMap<>();

  FakeJobsService(FakeJobs jobs) {
    this.jobs = jobs;
  }

  @Override
  public void submit(JobsSubmitRequest request, StreamObserver<JobsSubmitResponse> answer) {
    submits.add(request);
    JobsSubmitResponse response =
        answered.computeIfAbsent(
            request.getRequestId(),
            id -> {
              JobsSubmitResponse.Builder made = JobsSubmitResponse.newBuilder();
              for (JobSpec spec : request.getJobsList()) {
                made.addJobs(jobs.submit(spec));
              }
              return made.build();
            });
    if (lostAnswers > 0) {
      lostAnswers--;
      FakeSidecar.refuse(answer, Status.UNAVAILABLE);
    } else {
      FakeSidecar.answer(answer, response);
    }
    jobs.start();
  }

  @Override
  public void get(JobsGetRequest request, StreamObserver<JobsGetResponse> answer) {
    FakeJobs.Entry entry = jobs.all.get(request.getJobId());
    if (entry == null) {
      FakeSidecar.refuse(answer, Status.NOT_FOUND);
      return;
    }
    entry
        .ended
        .copy()
        .completeOnTimeout(
            null, Times.duration(request.getWait()).toNanos(), TimeUnit.NANOSECONDS)
        .thenRun(
            () ->
                FakeSidecar.answer(
                    answer, JobsGetResponse.newBuilder().setJob(job(request.getJobId())).build()));
  }

  /** One job per page. */
  @Override
  public void list(JobsListRequest request, StreamObserver<JobsListResponse> answer) {
    String name = request.getFilter().getName();
    List<Job> found =
        jobs.all.keySet().stream()
            .map(this::job)
            .filter(it -> name.isEmpty() || name.equals(it.getName()))
            .toList();
    int page = request.getPageToken().isEmpty() ? 0 : Integer.parseInt(request.getPageToken());
    JobsListResponse.Builder response = JobsListResponse.newBuilder();
    if (page < found.size()) {
      response.addJobs(found.get(page)).setNextPageToken("" + (page + 1));
    }
    FakeSidecar.answer(answer, response.build());
  }

  @Override
  public void cancel(JobsCancelRequest request, StreamObserver<JobsCancelResponse> answer) {
    JobsCancelResponse.Builder response = JobsCancelResponse.newBuilder();
    for (FakeJobs.Entry entry : jobs.all.values()) {
      boolean named = request.getJobIdsList().contains(entry.run.id());
      boolean matches = entry.spec.getName().equals(request.getFilter().getName());
      if ((named || matches) && job(entry.run.id()).getState() != RunState.RUN_STATE_ENDED) {
        if (jobs.cancel(entry)) {
          response.setRequested(response.getRequested() + 1);
        } else {
          response.setCancelled(response.getCancelled() + 1);
        }
      }
    }
    FakeSidecar.answer(answer, response.build());
  }

  @Override
  public void retry(JobsRetryRequest request, StreamObserver<JobsRetryResponse> answer) {
    reschedule(request.getJobId(), Instant.EPOCH);
    Job job = job(request.getJobId());
    FakeSidecar.answer(answer, JobsRetryResponse.newBuilder().setJob(job).build());
    jobs.start();
  }

  @Override
  public void reschedule(
      JobsRescheduleRequest request, StreamObserver<JobsRescheduleResponse> answer) {
    reschedule(request.getJobId(), Times.instant(request.getDueAt()));
    Job job = job(request.getJobId());
    FakeSidecar.answer(answer, JobsRescheduleResponse.newBuilder().setJob(job).build());
    jobs.start();
  }

  private void reschedule(long id, Instant dueAt) {
    synchronized (jobs) {
      jobs.all.get(id).dueAt = dueAt;
      jobs.all.get(id).job.setDueAt(Times.message(dueAt));
    }
  }

  /** As it is, then as it has ended. */
  @Override
  public void watch(JobsWatchRequest request, StreamObserver<JobsWatchResponse> answer) {
    answer.onNext(JobsWatchResponse.newBuilder().setJob(job(request.getJobId())).build());
    if (breaksWatch) {
      breaksWatch = false;
      FakeSidecar.refuse(answer, Status.UNAVAILABLE);
      return;
    }
    jobs.all
        .get(request.getJobId())
        .ended
        .thenRun(
            () ->
                FakeSidecar.answer(
                    answer,
                    JobsWatchResponse.newBuilder().setJob(job(request.getJobId())).build()));
  }

  @Override
  public void stats(JobsStatsRequest request, StreamObserver<JobsStatsResponse> answer) {
    FakeSidecar.answer(answer, JobsStatsResponse.newBuilder().addQueues(queue("default")).build());
  }

  @Override
  public void pauseQueue(
      JobsPauseQueueRequest request, StreamObserver<JobsPauseQueueResponse> answer) {
    jobs.paused.add(request.getQueue());
    Queue queue = queue(request.getQueue()).setPauseNote(request.getNote()).build();
    FakeSidecar.answer(answer, JobsPauseQueueResponse.newBuilder().setQueue(queue).build());
  }

  @Override
  public void resumeQueue(
      JobsResumeQueueRequest request, StreamObserver<JobsResumeQueueResponse> answer) {
    jobs.paused.remove(request.getQueue());
    jobs.start();
    FakeSidecar.answer(
        answer, JobsResumeQueueResponse.newBuilder().setQueue(queue(request.getQueue())).build());
  }

  @Override
  public void getBatch(JobsGetBatchRequest request, StreamObserver<JobsGetBatchResponse> answer) {
    long total =
        jobs.all.values().stream()
            .filter(it -> it.spec.getBatch().equals(request.getBatch()))
            .count();
    FakeSidecar.answer(answer, JobsGetBatchResponse.newBuilder().setTotal(total).build());
  }

  @Override
  public void listDead(JobsListDeadRequest request, StreamObserver<JobsListDeadResponse> answer) {
    JobsListDeadResponse.Builder dead = JobsListDeadResponse.newBuilder();
    jobs.dead().forEach(it -> dead.addJobs(job(it.run.id())));
    FakeSidecar.answer(answer, dead.build());
  }

  @Override
  public void replay(JobsReplayRequest request, StreamObserver<JobsReplayResponse> answer) {
    List<FakeJobs.Entry> dead = jobs.dead();
    if (!request.getDryRun()) {
      dead.forEach(jobs::replay);
    }
    FakeSidecar.answer(answer, JobsReplayResponse.newBuilder().setReplayed(dead.size()).build());
    jobs.start();
  }

  @Override
  public void discard(JobsDiscardRequest request, StreamObserver<JobsDiscardResponse> answer) {
    List<FakeJobs.Entry> dead = jobs.dead();
    if (!request.getDryRun()) {
      dead.forEach(it -> jobs.all.remove(it.run.id()));
    }
    FakeSidecar.answer(answer, JobsDiscardResponse.newBuilder().setDiscarded(dead.size()).build());
  }

  private Job job(long id) {
    return jobs.job(id);
  }

  private Queue.Builder queue(String name) {
    return Queue.newBuilder().setName(name).setPaused(jobs.paused.contains(name));
  }
}
