package dev.baton;

import dev.baton.v1.DeferredState;
import dev.baton.v1.DeferredsAwaitRequest;
import dev.baton.v1.DeferredsAwaitResponse;
import dev.baton.v1.DeferredsCompleteRequest;
import dev.baton.v1.DeferredsCompleteResponse;
import dev.baton.v1.DeferredsCreateRequest;
import dev.baton.v1.DeferredsCreateResponse;
import dev.baton.v1.DeferredsFailRequest;
import dev.baton.v1.DeferredsFailResponse;
import dev.baton.v1.DeferredsGetRequest;
import dev.baton.v1.DeferredsGetResponse;
import dev.baton.v1.DeferredsGrpc;
import dev.baton.v1.IdsGenerateRequest;
import dev.baton.v1.IdsGenerateResponse;
import dev.baton.v1.IdsGrpc;
import dev.baton.v1.Schedule;
import dev.baton.v1.SchedulesBackfillRequest;
import dev.baton.v1.SchedulesBackfillResponse;
import dev.baton.v1.SchedulesCreateRequest;
import dev.baton.v1.SchedulesCreateResponse;
import dev.baton.v1.SchedulesDeleteRequest;
import dev.baton.v1.SchedulesDeleteResponse;
import dev.baton.v1.SchedulesGetRequest;
import dev.baton.v1.SchedulesGetResponse;
import dev.baton.v1.SchedulesGrpc;
import dev.baton.v1.SchedulesListRequest;
import dev.baton.v1.SchedulesListResponse;
import dev.baton.v1.SchedulesPauseRequest;
import dev.baton.v1.SchedulesPauseResponse;
import dev.baton.v1.SchedulesPreviewRequest;
import dev.baton.v1.SchedulesPreviewResponse;
import dev.baton.v1.SchedulesResumeRequest;
import dev.baton.v1.SchedulesResumeResponse;
import dev.baton.v1.SchedulesTriggerRequest;
import dev.baton.v1.SchedulesTriggerResponse;
import dev.baton.v1.SchedulesUpdateRequest;
import dev.baton.v1.SchedulesUpdateResponse;
import dev.baton.v1.Singleton;
import dev.baton.v1.SingletonsGetRequest;
import dev.baton.v1.SingletonsGetResponse;
import dev.baton.v1.SingletonsGrpc;
import dev.baton.v1.SingletonsListRequest;
import dev.baton.v1.SingletonsListResponse;
import io.grpc.Status;
import io.grpc.stub.StreamObserver;
import java.time.Instant;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/** Deferreds, ids, schedules and singletons in memory. */
final class FakeServices {
  final DeferredsGrpc.DeferredsImplBase deferreds = new Deferreds();
  final Ids ids = new Ids();
  final Schedules schedules = new Schedules();
  final SingletonsGrpc.SingletonsImplBase singletons = new Singletons();
  private final FakeSidecar sidecar;

  FakeServices(FakeSidecar sidecar) {
    this.sidecar = sidecar;
  }

  private final class Deferreds extends DeferredsGrpc.DeferredsImplBase {
    private final Map<String, dev.baton.v1.Deferred> all = new ConcurrentHashMap<>();

    @Override
    public void create(
        DeferredsCreateRequest request, StreamObserver<DeferredsCreateResponse> answer) {
      if (request.hasRun() && !sidecar.isLive(request.getRun())) {
        FakeSidecar.refuse(answer, Status.FAILED_PRECONDITION);
        return;
      }
      String token = request.getRun().getRunId() + "-" + request.getName();
      DeferredState state =
          request.hasTtl()
              ? DeferredState.DEFERRED_STATE_EXPIRED
              : DeferredState.DEFERRED_STATE_PENDING;
      all.putIfAbsent(
          token, dev.baton.v1.Deferred.newBuilder().setToken(token).setState(state).build());
      FakeSidecar.answer(answer, DeferredsCreateResponse.newBuilder().setToken(token).build());
    }

    /** Answers soon in any case, so that the client has to ask again. */
    @Override
    public void await(
        DeferredsAwaitRequest request, StreamObserver<DeferredsAwaitResponse> answer) {
      dev.baton.v1.Deferred found = all.get(request.getToken());
      if (found.getState() == DeferredState.DEFERRED_STATE_PENDING) {
        FakeSidecar.refuse(answer, Status.DEADLINE_EXCEEDED);
      } else {
        FakeSidecar.answer(answer, DeferredsAwaitResponse.newBuilder().setDeferred(found).build());
      }
    }

    @Override
    public void complete(
        DeferredsCompleteRequest request, StreamObserver<DeferredsCompleteResponse> answer) {
      dev.baton.v1.Deferred completed =
          dev.baton.v1.Deferred.newBuilder()
              .setToken(request.getToken())
              .setState(DeferredState.DEFERRED_STATE_COMPLETED)
              .setValue(request.getValue())
              .build();
      if (ends(completed)) {
        FakeSidecar.answer(
            answer, DeferredsCompleteResponse.newBuilder().setDeferred(completed).build());
      } else {
        FakeSidecar.refuse(answer, Status.ALREADY_EXISTS);
      }
    }

    @Override
    public void fail(DeferredsFailRequest request, StreamObserver<DeferredsFailResponse> answer) {
      dev.baton.v1.Deferred failed =
          dev.baton.v1.Deferred.newBuilder()
              .setToken(request.getToken())
              .setState(DeferredState.DEFERRED_STATE_FAILED)
              .setError(request.getError())
              .build();
      if (ends(failed)) {
        FakeSidecar.answer(answer, DeferredsFailResponse.newBuilder().setDeferred(failed).build());
      } else {
        FakeSidecar.refuse(answer, Status.ALREADY_EXISTS);
      }
    }

    @Override
    public void get(DeferredsGetRequest request, StreamObserver<DeferredsGetResponse> answer) {
      dev.baton.v1.Deferred found = all.get(request.getToken());
      if (found == null) {
        FakeSidecar.refuse(answer, Status.NOT_FOUND);
      } else {
        FakeSidecar.answer(answer, DeferredsGetResponse.newBuilder().setDeferred(found).build());
      }
    }

    /** The first end stands; the same again is fine. */
    private boolean ends(dev.baton.v1.Deferred ended) {
      return all.compute(
              ended.getToken(),
              (token, held) ->
                  held.getState() == DeferredState.DEFERRED_STATE_PENDING ? ended : held)
          .equals(ended);
    }
  }

  /** Counts the blocks that it gave out. */
  static final class Ids extends IdsGrpc.IdsImplBase {
    final AtomicInteger blocks = new AtomicInteger();
    private final AtomicLong last = new AtomicLong();

    @Override
    public void generate(IdsGenerateRequest request, StreamObserver<IdsGenerateResponse> answer) {
      blocks.incrementAndGet();
      IdsGenerateResponse.Builder block = IdsGenerateResponse.newBuilder();
      for (int i = 0; i < request.getCount(); i++) {
        block.addIds(last.incrementAndGet());
      }
      FakeSidecar.answer(answer, block.build());
    }
  }

  /** Keeps definitions, and what was triggered. */
  static final class Schedules extends SchedulesGrpc.SchedulesImplBase {
    final Map<String, SchedulesTriggerRequest> triggered = new ConcurrentHashMap<>();
    private final Map<String, Schedule> all = new TreeMap<>();

    @Override
    public void create(
        SchedulesCreateRequest request, StreamObserver<SchedulesCreateResponse> answer) {
      Schedule made = request.getSchedule();
      if (all.putIfAbsent(made.getName(), made) != null) {
        FakeSidecar.refuse(answer, Status.ALREADY_EXISTS);
        return;
      }
      FakeSidecar.answer(answer, SchedulesCreateResponse.newBuilder().setSchedule(made).build());
    }

    @Override
    public void get(SchedulesGetRequest request, StreamObserver<SchedulesGetResponse> answer) {
      Schedule found = all.get(request.getName());
      if (found == null) {
        FakeSidecar.refuse(answer, Status.NOT_FOUND);
        return;
      }
      FakeSidecar.answer(answer, SchedulesGetResponse.newBuilder().setSchedule(found).build());
    }

    @Override
    public void list(SchedulesListRequest request, StreamObserver<SchedulesListResponse> answer) {
      FakeSidecar.answer(
          answer, SchedulesListResponse.newBuilder().addAllSchedules(all.values()).build());
    }

    @Override
    public void update(
        SchedulesUpdateRequest request, StreamObserver<SchedulesUpdateResponse> answer) {
      all.put(request.getSchedule().getName(), request.getSchedule());
      FakeSidecar.answer(
          answer, SchedulesUpdateResponse.newBuilder().setSchedule(request.getSchedule()).build());
    }

    @Override
    public void delete(
        SchedulesDeleteRequest request, StreamObserver<SchedulesDeleteResponse> answer) {
      all.remove(request.getName());
      FakeSidecar.answer(answer, SchedulesDeleteResponse.getDefaultInstance());
    }

    @Override
    public void pause(
        SchedulesPauseRequest request, StreamObserver<SchedulesPauseResponse> answer) {
      Schedule paused =
          all.computeIfPresent(
              request.getName(),
              (name, held) ->
                  held.toBuilder().setPaused(true).setPauseNote(request.getNote()).build());
      FakeSidecar.answer(answer, SchedulesPauseResponse.newBuilder().setSchedule(paused).build());
    }

    @Override
    public void resume(
        SchedulesResumeRequest request, StreamObserver<SchedulesResumeResponse> answer) {
      Schedule resumed =
          all.computeIfPresent(
              request.getName(), (name, held) -> held.toBuilder().setPaused(false).build());
      FakeSidecar.answer(answer, SchedulesResumeResponse.newBuilder().setSchedule(resumed).build());
    }

    @Override
    public void trigger(
        SchedulesTriggerRequest request, StreamObserver<SchedulesTriggerResponse> answer) {
      triggered.put(request.getName(), request);
      FakeSidecar.answer(answer, SchedulesTriggerResponse.newBuilder().setRunId(7).build());
    }

    @Override
    public void backfill(
        SchedulesBackfillRequest request, StreamObserver<SchedulesBackfillResponse> answer) {
      long seconds = request.getToAt().getSeconds() - request.getFromAt().getSeconds();
      FakeSidecar.answer(
          answer, SchedulesBackfillResponse.newBuilder().addRunIds(seconds).build());
    }

    @Override
    public void preview(
        SchedulesPreviewRequest request, StreamObserver<SchedulesPreviewResponse> answer) {
      SchedulesPreviewResponse.Builder ticks = SchedulesPreviewResponse.newBuilder();
      for (int i = 0; i < request.getN(); i++) {
        ticks.addTicks(Times.message(Instant.ofEpochSecond(i)));
      }
      FakeSidecar.answer(answer, ticks.build());
    }
  }

  private static final class Singletons extends SingletonsGrpc.SingletonsImplBase {
    @Override
    public void get(SingletonsGetRequest request, StreamObserver<SingletonsGetResponse> answer) {
      Singleton found = Singleton.newBuilder().setName(request.getName()).build();
      FakeSidecar.answer(answer, SingletonsGetResponse.newBuilder().setSingleton(found).build());
    }

    @Override
    public void list(SingletonsListRequest request, StreamObserver<SingletonsListResponse> answer) {
      Singleton found = Singleton.newBuilder().setName("coordinator").build();
      FakeSidecar.answer(answer, SingletonsListResponse.newBuilder().addSingletons(found).build());
    }
  }
}
