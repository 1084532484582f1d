package dev.baton;

import dev.baton.v1.Job;
import dev.baton.v1.JobsGrpc;
import dev.baton.v1.JobsWatchRequest;
import dev.baton.v1.JobsWatchResponse;
import dev.baton.v1.RunState;
import io.grpc.Status;
import java.util.Iterator;

/** A job and its changes until it has ended; opened again when the stream breaks. */
final class JobWatch extends Watch<Job> {
  private final Backoff backoff = Backoff.ofCalls();
  private boolean ended;

  JobWatch(Connection connection, long id) {
    super(() -> open(connection, id));
  }

  @Override
  public boolean hasNext() {
    while (!ended) {
      try {
        return super.hasNext();
      } catch (BatonException broken) {
        boolean away = broken.code().orElse(null) == Status.Code.UNAVAILABLE;
        if (!away || !Backoff.slept(backoff.next())) {
          throw broken;
        }
        reopen();
      }
    }
    return false;
  }

  @Override
  public Job next() {
    Job job = super.next();
    backoff.reset();
    ended = job.getState() == RunState.RUN_STATE_ENDED;
    return job;
  }

  private static Iterator<Job> open(Connection connection, long id) {
    JobsWatchRequest request = JobsWatchRequest.newBuilder().setJobId(id).build();
    var messages = connection.stream(JobsGrpc.getWatchMethod(), request);
    return Paging.mapped(messages, JobsWatchResponse::getJob);
  }
}
