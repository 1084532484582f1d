package baton

import (
	"context"
	"crypto/rand"
	"iter"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/baton-sidecar/baton/clients/go/batonv1"
)

// Schedules makes, changes and steers the schedules of the cluster; works on any pod.
type Schedules struct {
	connection *connection
	stub       pb.SchedulesClient
}

// Create makes a schedule; ticks count from now on.
func (s *Schedules) Create(ctx context.Context, schedule *pb.Schedule) (*pb.Schedule, error) {
	answer, err := callOnce(ctx, s.connection, s.stub.Create, &pb.SchedulesCreateRequest{Schedule: schedule})
	return answer.GetSchedule(), err
}

// Get is one schedule, also a retired one.
func (s *Schedules) Get(ctx context.Context, name string) (*pb.Schedule, error) {
	answer, err := call(ctx, s.connection, s.stub.Get, &pb.SchedulesGetRequest{Name: name})
	return answer.GetSchedule(), err
}

// List is the live schedules, by name.
func (s *Schedules) List(ctx context.Context) iter.Seq2[*pb.Schedule, error] {
	return s.list(ctx, false)
}

// ListAll is the schedules, retired ones too, by name.
func (s *Schedules) ListAll(ctx context.Context) iter.Seq2[*pb.Schedule, error] {
	return s.list(ctx, true)
}

func (s *Schedules) list(ctx context.Context, retired bool) iter.Seq2[*pb.Schedule, error] {
	return paged(func(token string) ([]*pb.Schedule, string, error) {
		request := &pb.SchedulesListRequest{IncludeRetired: retired, PageToken: token}
		answer, err := call(ctx, s.connection, s.stub.List, request)
		return answer.GetSchedules(), answer.GetNextPageToken(), err
	})
}

// Update replaces the whole definition of the schedule of that name.
func (s *Schedules) Update(ctx context.Context, schedule *pb.Schedule) (*pb.Schedule, error) {
	answer, err := call(ctx, s.connection, s.stub.Update, &pb.SchedulesUpdateRequest{Schedule: schedule})
	return answer.GetSchedule(), err
}

// Delete retires a schedule.
func (s *Schedules) Delete(ctx context.Context, name string) error {
	_, err := callOnce(ctx, s.connection, s.stub.Delete, &pb.SchedulesDeleteRequest{Name: name})
	return err
}

// Pause stops a schedule until Resume; the note is for whoever finds it paused.
func (s *Schedules) Pause(ctx context.Context, name, note string) (*pb.Schedule, error) {
	answer, err := call(ctx, s.connection, s.stub.Pause, &pb.SchedulesPauseRequest{Name: name, Note: note})
	return answer.GetSchedule(), err
}

// Resume ends a pause.
func (s *Schedules) Resume(ctx context.Context, name string) (*pb.Schedule, error) {
	answer, err := call(ctx, s.connection, s.stub.Resume, &pb.SchedulesResumeRequest{Name: name})
	return answer.GetSchedule(), err
}

// TriggerOption is a [RequestID].
type TriggerOption interface {
	trigger(*pb.SchedulesTriggerRequest)
}

// Trigger runs a schedule once, now, and gives the id of the run. The payload is bytes, anything that JSON can say,
// or nil for the schedule's own.
func (s *Schedules) Trigger(ctx context.Context, name string, payload any, options ...TriggerOption) (uint64, error) {
	request := &pb.SchedulesTriggerRequest{Name: name, RequestId: rand.Text()}
	var err error
	if request.Payload, err = optional(payload); err != nil {
		return 0, err
	}
	for _, option := range options {
		option.trigger(request)
	}
	answer, err := call(ctx, s.connection, s.stub.Trigger, request)
	return answer.GetRunId(), err
}

// Backfill runs the ticks of a past range that have no outcome, and gives the ids of the runs made.
func (s *Schedules) Backfill(ctx context.Context, name string, from, to time.Time) ([]uint64, error) {
	request := &pb.SchedulesBackfillRequest{Name: name, FromAt: timestamppb.New(from), ToAt: timestamppb.New(to)}
	answer, err := callOnce(ctx, s.connection, s.stub.Backfill, request)
	return answer.GetRunIds(), err
}

// Preview is the next n ticks of a stored schedule after a time, the zero time being now.
func (s *Schedules) Preview(ctx context.Context, name string, n uint32, after time.Time) ([]time.Time, error) {
	return s.preview(ctx, &pb.SchedulesPreviewRequest{Target: &pb.SchedulesPreviewRequest_Name{Name: name}, N: n}, after)
}

// PreviewOf is Preview of a schedule that need not be stored.
func (s *Schedules) PreviewOf(
	ctx context.Context, schedule *pb.Schedule, n uint32, after time.Time,
) ([]time.Time, error) {
	target := &pb.SchedulesPreviewRequest_Schedule{Schedule: schedule}
	return s.preview(ctx, &pb.SchedulesPreviewRequest{Target: target, N: n}, after)
}

func (s *Schedules) preview(
	ctx context.Context, request *pb.SchedulesPreviewRequest, after time.Time,
) ([]time.Time, error) {
	if !after.IsZero() {
		request.After = timestamppb.New(after)
	}
	answer, err := call(ctx, s.connection, s.stub.Preview, request)
	if err != nil {
		return nil, err
	}
	ticks := make([]time.Time, 0, len(answer.GetTicks()))
	for _, tick := range answer.GetTicks() {
		ticks = append(ticks, tick.AsTime())
	}
	return ticks, nil
}
