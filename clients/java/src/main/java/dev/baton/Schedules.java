package dev.baton;

import dev.baton.v1.Schedule;
import dev.baton.v1.SchedulesBackfillRequest;
import dev.baton.v1.SchedulesCreateRequest;
import dev.baton.v1.SchedulesDeleteRequest;
import dev.baton.v1.SchedulesGetRequest;
import dev.baton.v1.SchedulesGrpc;
import dev.baton.v1.SchedulesListRequest;
import dev.baton.v1.SchedulesListResponse;
import dev.baton.v1.SchedulesPauseRequest;
import dev.baton.v1.SchedulesPreviewRequest;
import dev.baton.v1.SchedulesResumeRequest;
import dev.baton.v1.SchedulesTriggerRequest;
import dev.baton.v1.SchedulesUpdateRequest;
import java.time.Instant;
import java.util.List;
import java.util.UUID;
import java.util.stream.Stream;

/** Schedules: making, changing, steering and previewing them; works on any pod. */
public final class Schedules {
  private final Connection connection;

  Schedules(Connection connection) {
    this.connection = connection;
  }

  /** Makes a schedule; ticks count from now on. */
  public Schedule create(Schedule schedule) {
    SchedulesCreateRequest request =
        SchedulesCreateRequest.newBuilder().setSchedule(schedule).build();
    return connection.tell(SchedulesGrpc.getCreateMethod(), request).getSchedule();
  }

  /** One schedule, also a retired one. */
  public Schedule get(String name) {
    SchedulesGetRequest request = SchedulesGetRequest.newBuilder().setName(name).build();
    return connection.ask(SchedulesGrpc.getGetMethod(), request).getSchedule();
  }

  /** Live schedules, by name. */
  public Stream<Schedule> list() {
    return list(false);
  }

  /** Schedules, by name, with retired ones if asked for. */
  public Stream<Schedule> list(boolean includeRetired) {
    SchedulesListRequest filters =
        SchedulesListRequest.newBuilder().setIncludeRetired(includeRetired).build();
    return Paging.all(
        token ->
            connection.ask(
                SchedulesGrpc.getListMethod(), filters.toBuilder().setPageToken(token).build()),
        SchedulesListResponse::getSchedulesList,
        SchedulesListResponse::getNextPageToken);
  }

  /** Replaces the whole definition of the schedule of that name. */
  public Schedule update(Schedule schedule) {
    SchedulesUpdateRequest request =
        SchedulesUpdateRequest.newBuilder().setSchedule(schedule).build();
    return connection.ask(SchedulesGrpc.getUpdateMethod(), request).getSchedule();
  }

  /** Retires a schedule. */
  public void delete(String name) {
    SchedulesDeleteRequest request = SchedulesDeleteRequest.newBuilder().setName(name).build();
    connection.tell(SchedulesGrpc.getDeleteMethod(), request);
  }

  /** Stops a schedule until {@link #resume}; the note says why. */
  public Schedule pause(String name, String note) {
    SchedulesPauseRequest request =
        SchedulesPauseRequest.newBuilder().setName(name).setNote(note).build();
    return connection.ask(SchedulesGrpc.getPauseMethod(), request).getSchedule();
  }

  /** Ends a pause. */
  public Schedule resume(String name) {
    SchedulesResumeRequest request = SchedulesResumeRequest.newBuilder().setName(name).build();
    return connection.ask(SchedulesGrpc.getResumeMethod(), request).getSchedule();
  }

  /** Runs it once, now, with its own payload; the id of the run. */
  public long trigger(String name) {
    return trigger(name, null, UUID.randomUUID().toString());
  }

  /** Runs it once, now, with a payload of JSON or bytes. */
  public long trigger(String name, Object payload) {
    return trigger(name, payload, UUID.randomUUID().toString());
  }

  /** As above; the same request id gives the same run. A null payload: the schedule's own. */
  public long trigger(String name, Object payload, String requestId) {
    SchedulesTriggerRequest.Builder request =
        SchedulesTriggerRequest.newBuilder().setName(name).setRequestId(requestId);
    if (payload != null) {
      request.setPayload(Json.toBytes(payload));
    }
    return connection.ask(SchedulesGrpc.getTriggerMethod(), request.build()).getRunId();
  }

  /** Runs the ticks of a past range that have no outcome; the ids of the runs made. */
  public List<Long> backfill(String name, Instant from, Instant to) {
    SchedulesBackfillRequest request =
        SchedulesBackfillRequest.newBuilder()
            .setName(name)
            .setFromAt(Times.message(from))
            .setToAt(Times.message(to))
            .build();
    return connection.tell(SchedulesGrpc.getBackfillMethod(), request).getRunIdsList();
  }

  /** The next ticks of a stored schedule. */
  public List<Instant> preview(String name, int count) {
    return preview(SchedulesPreviewRequest.newBuilder().setName(name).setN(count).build());
  }

  /** The next ticks of a schedule that need not be stored. */
  public List<Instant> preview(Schedule schedule, int count) {
    return preview(SchedulesPreviewRequest.newBuilder().setSchedule(schedule).setN(count).build());
  }

  /** The ticks asked for, for instance after another time than now. */
  public List<Instant> preview(SchedulesPreviewRequest request) {
    return connection.ask(SchedulesGrpc.getPreviewMethod(), request).getTicksList().stream()
        .map(Times::instant)
        .toList();
  }
}
