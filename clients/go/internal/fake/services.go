package fake

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/baton-sidecar/baton/clients/go/batonv1"
)

const pageSize = 2 // small, so that every list of three is paged

var missing = status.Error(codes.NotFound, "no such thing")

func page[T any](items []T, token string) ([]T, string) {
	var from int
	_, _ = fmt.Sscan(token, &from)
	to := min(from+pageSize, len(items))
	if to == len(items) {
		return items[from:], ""
	}
	return items[from:to], fmt.Sprint(to)
}

// isLive tells whether a run reference names the live attempt; the lock is held.
func (s *Sidecar) isLive(ref *pb.RunRef) error {
	run := s.runs[ref.GetRunId()]
	if run == nil || !run.live || run.Attempt != ref.GetAttempt() || run.epoch != ref.GetEpoch() {
		return status.Error(codes.FailedPrecondition, "not the live attempt")
	}
	return nil
}

type leadership struct {
	pb.UnimplementedLeadershipServer
	*Sidecar
}

func (l *leadership) leader(group string) *pb.Leader {
	term := l.terms[group]
	if term == nil {
		return nil
	}
	leader := &pb.Leader{Group: group, Epoch: term.epoch, IsLeader: term.leads, Draining: term.draining}
	if term.leads {
		leader.TrustedFor = durationpb.New(term.trust)
	}
	return leader
}

func (l *leadership) Get(_ context.Context, r *pb.LeadershipGetRequest) (*pb.LeadershipGetResponse, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	leader := l.leader(r.Group)
	if leader == nil {
		return nil, missing
	}
	return &pb.LeadershipGetResponse{Leader: leader}, nil
}

func (l *leadership) List(_ context.Context, r *pb.LeadershipListRequest) (*pb.LeadershipListResponse, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	groups, next := page(slices.Sorted(maps.Keys(l.terms)), r.PageToken)
	answer := &pb.LeadershipListResponse{NextPageToken: next}
	for _, group := range groups {
		answer.Leaders = append(answer.Leaders, l.leader(group))
	}
	return answer, nil
}

// Resign hands over like the sidecar: draining first, OnLoseLeadership when no run is open any more.
func (l *leadership) Resign(_ context.Context, r *pb.LeadershipResignRequest) (*pb.LeadershipResignResponse, error) {
	l.Drain(r.Group)
	go func() {
		for l.busy() {
			time.Sleep(10 * time.Millisecond)
		}
		_ = l.Lose(context.Background(), r.Group, pb.LossReason_LOSS_REASON_RESIGNED)
	}()
	l.mu.Lock()
	defer l.mu.Unlock()
	return &pb.LeadershipResignResponse{Leader: l.leader(r.Group)}, nil
}

func (s *Sidecar) busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, run := range s.runs {
		if run.live {
			return true
		}
	}
	return false
}

func (l *leadership) Watch(r *pb.LeadershipWatchRequest, stream grpc.ServerStreamingServer[pb.LeadershipWatchResponse]) error {
	for {
		l.mu.Lock()
		leader, frozen, changed := l.leader(r.Group), l.frozen, l.changed
		l.mu.Unlock()
		if leader != nil && !frozen {
			if err := stream.Send(&pb.LeadershipWatchResponse{Leader: leader}); err != nil {
				return err
			}
		}
		select {
		case <-changed:
		case <-time.After(renewal):
		case <-stream.Context().Done():
			return stream.Context().Err()
		}
	}
}

type runs struct {
	pb.UnimplementedRunsServer
	*Sidecar
}

func (r *runs) Get(_ context.Context, q *pb.RunsGetRequest) (*pb.RunsGetResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	run := r.runs[q.RunId]
	if run == nil {
		return nil, missing
	}
	return &pb.RunsGetResponse{Run: &pb.Run{RunId: run.ID, Name: run.Name, Attempt: run.Attempt}}, nil
}

func (r *runs) List(_ context.Context, q *pb.RunsListRequest) (*pb.RunsListResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	found, next := page(slices.Sorted(maps.Keys(r.runs)), q.PageToken)
	answer := &pb.RunsListResponse{NextPageToken: next}
	for _, id := range found {
		answer.Runs = append(answer.Runs, &pb.Run{RunId: id, Name: r.runs[id].Name})
	}
	return answer, nil
}

func (r *runs) Checkpoint(_ context.Context, q *pb.RunsCheckpointRequest) (*pb.RunsCheckpointResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.isLive(q.Run); err != nil {
		return nil, err
	}
	run := r.runs[q.Run.RunId]
	run.Checkpoints = append(run.Checkpoints, &pb.Checkpoint{Step: q.Step, Value: q.Value})
	return &pb.RunsCheckpointResponse{}, nil
}

func (r *runs) Heartbeat(_ context.Context, q *pb.RunsHeartbeatRequest) (*pb.RunsHeartbeatResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.isLive(q.Run); err != nil {
		return nil, err
	}
	run := r.runs[q.Run.RunId]
	if q.Progress != nil {
		run.Progress = *q.Progress
	}
	if q.Message != nil {
		run.Message = *q.Message
	}
	return &pb.RunsHeartbeatResponse{}, nil
}

func (r *runs) Cancel(_ context.Context, q *pb.RunsCancelRequest) (*pb.RunsCancelResponse, error) {
	return &pb.RunsCancelResponse{Run: &pb.Run{RunId: q.RunId, CancelRequested: true}}, nil
}

func (r *runs) Retry(_ context.Context, q *pb.RunsRetryRequest) (*pb.RunsRetryResponse, error) {
	return &pb.RunsRetryResponse{Run: &pb.Run{RunId: q.RunId, State: pb.RunState_RUN_STATE_QUEUED}}, nil
}

type deferreds struct {
	pb.UnimplementedDeferredsServer
	*Sidecar
}

func (d *deferreds) Create(_ context.Context, r *pb.DeferredsCreateRequest) (*pb.DeferredsCreateResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r.Run != nil {
		if err := d.isLive(r.Run); err != nil {
			return nil, err
		}
	}
	token := fmt.Sprintf("token-%d-%s", r.GetRun().GetRunId(), r.Name)
	if d.deferreds[token] == nil {
		made := &pb.Deferred{Token: token, Name: r.Name, State: pb.DeferredState_DEFERRED_STATE_PENDING}
		if r.Ttl != nil {
			made.ExpiresAt = timestamppb.New(time.Now().Add(r.Ttl.AsDuration()))
		}
		d.deferreds[token] = made
	}
	return &pb.DeferredsCreateResponse{Token: token}, nil
}

// Await waits for a tenth of a second at most: clients must ask again.
func (d *deferreds) Await(ctx context.Context, r *pb.DeferredsAwaitRequest) (*pb.DeferredsAwaitResponse, error) {
	for end := time.Now().Add(100 * time.Millisecond); ; {
		found, err := d.find(r.Token)
		if err != nil {
			return nil, err
		}
		if found.State != pb.DeferredState_DEFERRED_STATE_PENDING {
			return &pb.DeferredsAwaitResponse{Deferred: found}, nil
		}
		if time.Now().After(end) || ctx.Err() != nil {
			return nil, status.Error(codes.DeadlineExceeded, "still pending")
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// find gives a copy of a deferred as it is now.
func (d *deferreds) find(token string) (*pb.Deferred, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	found := d.deferreds[token]
	if found == nil {
		return nil, missing
	}
	if found.State == pb.DeferredState_DEFERRED_STATE_PENDING && found.ExpiresAt != nil &&
		time.Now().After(found.ExpiresAt.AsTime()) {
		found.State = pb.DeferredState_DEFERRED_STATE_EXPIRED
	}
	return &pb.Deferred{Token: token, Name: found.Name, State: found.State, Value: found.Value, Error: found.Error}, nil
}

func (d *deferreds) finish(token string, to pb.DeferredState, value []byte, failure string) (*pb.Deferred, error) {
	if _, err := d.find(token); err != nil {
		return nil, err
	}
	d.mu.Lock()
	found := d.deferreds[token]
	same := found.State == to && bytes.Equal(found.Value, value) && found.Error == failure
	if found.State != pb.DeferredState_DEFERRED_STATE_PENDING && !same {
		d.mu.Unlock()
		return nil, status.Error(codes.AlreadyExists, "it was finished before")
	}
	found.State, found.Value, found.Error = to, value, failure
	d.mu.Unlock()
	return d.find(token)
}

func (d *deferreds) Complete(_ context.Context, r *pb.DeferredsCompleteRequest) (*pb.DeferredsCompleteResponse, error) {
	found, err := d.finish(r.Token, pb.DeferredState_DEFERRED_STATE_COMPLETED, r.Value, "")
	return &pb.DeferredsCompleteResponse{Deferred: found}, err
}

func (d *deferreds) Fail(_ context.Context, r *pb.DeferredsFailRequest) (*pb.DeferredsFailResponse, error) {
	found, err := d.finish(r.Token, pb.DeferredState_DEFERRED_STATE_FAILED, nil, r.Error)
	return &pb.DeferredsFailResponse{Deferred: found}, err
}

func (d *deferreds) Get(_ context.Context, r *pb.DeferredsGetRequest) (*pb.DeferredsGetResponse, error) {
	found, err := d.find(r.Token)
	return &pb.DeferredsGetResponse{Deferred: found}, err
}

type ids struct {
	pb.UnimplementedIdsServer
	*Sidecar
}

func (i *ids) Generate(_ context.Context, r *pb.IdsGenerateRequest) (*pb.IdsGenerateResponse, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	answer := &pb.IdsGenerateResponse{}
	for range r.Count {
		i.nextID++
		answer.Ids = append(answer.Ids, i.nextID)
	}
	return answer, nil
}

// schedules answers with what it was asked, so that tests see what arrived.
type schedules struct {
	pb.UnimplementedSchedulesServer
	*Sidecar
}

func (s *schedules) Create(_ context.Context, r *pb.SchedulesCreateRequest) (*pb.SchedulesCreateResponse, error) {
	return &pb.SchedulesCreateResponse{Schedule: r.Schedule}, nil
}

func (s *schedules) Get(_ context.Context, r *pb.SchedulesGetRequest) (*pb.SchedulesGetResponse, error) {
	return &pb.SchedulesGetResponse{Schedule: &pb.Schedule{Name: r.Name}}, nil
}

func (s *schedules) List(_ context.Context, r *pb.SchedulesListRequest) (*pb.SchedulesListResponse, error) {
	all := []*pb.Schedule{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	if r.IncludeRetired {
		all = append(all, &pb.Schedule{Name: "retired"})
	}
	found, next := page(all, r.PageToken)
	return &pb.SchedulesListResponse{Schedules: found, NextPageToken: next}, nil
}

func (s *schedules) Update(_ context.Context, r *pb.SchedulesUpdateRequest) (*pb.SchedulesUpdateResponse, error) {
	return &pb.SchedulesUpdateResponse{Schedule: r.Schedule}, nil
}

func (s *schedules) Delete(context.Context, *pb.SchedulesDeleteRequest) (*pb.SchedulesDeleteResponse, error) {
	return &pb.SchedulesDeleteResponse{}, nil
}

func (s *schedules) Pause(_ context.Context, r *pb.SchedulesPauseRequest) (*pb.SchedulesPauseResponse, error) {
	return &pb.SchedulesPauseResponse{Schedule: &pb.Schedule{Name: r.Name, Paused: true, PauseNote: r.Note}}, nil
}

func (s *schedules) Resume(_ context.Context, r *pb.SchedulesResumeRequest) (*pb.SchedulesResumeResponse, error) {
	return &pb.SchedulesResumeResponse{Schedule: &pb.Schedule{Name: r.Name}}, nil
}

// Trigger makes a run of what it was given; the request id makes it the same run again.
func (s *schedules) Trigger(_ context.Context, r *pb.SchedulesTriggerRequest) (*pb.SchedulesTriggerResponse, error) {
	s.mu.Lock()
	for _, run := range s.runs {
		if run.Message == r.RequestId {
			s.mu.Unlock()
			return &pb.SchedulesTriggerResponse{RunId: run.ID}, nil
		}
	}
	s.mu.Unlock()
	run := s.NewRun(pb.RunKind_RUN_KIND_TRIGGER, r.Name, string(r.Payload))
	s.mu.Lock()
	defer s.mu.Unlock()
	run.Message = r.RequestId
	return &pb.SchedulesTriggerResponse{RunId: run.ID}, nil
}

func (s *schedules) Backfill(context.Context, *pb.SchedulesBackfillRequest) (*pb.SchedulesBackfillResponse, error) {
	return &pb.SchedulesBackfillResponse{RunIds: []uint64{1, 2}}, nil
}

// Preview ticks every hour.
func (s *schedules) Preview(_ context.Context, r *pb.SchedulesPreviewRequest) (*pb.SchedulesPreviewResponse, error) {
	answer := &pb.SchedulesPreviewResponse{}
	for n := range r.N {
		tick := r.After.AsTime().Add(time.Duration(n+1) * time.Hour)
		answer.Ticks = append(answer.Ticks, timestamppb.New(tick))
	}
	return answer, nil
}

type singletons struct {
	pb.UnimplementedSingletonsServer
	*Sidecar
}

func (s *singletons) Get(_ context.Context, r *pb.SingletonsGetRequest) (*pb.SingletonsGetResponse, error) {
	return &pb.SingletonsGetResponse{Singleton: &pb.Singleton{Name: r.Name}}, nil
}

func (s *singletons) List(_ context.Context, r *pb.SingletonsListRequest) (*pb.SingletonsListResponse, error) {
	found, next := page([]*pb.Singleton{{Name: "a"}, {Name: "b"}, {Name: "c"}}, r.PageToken)
	return &pb.SingletonsListResponse{Singletons: found, NextPageToken: next}, nil
}
