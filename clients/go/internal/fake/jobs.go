package fake

import (
	"context"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/baton-sidecar/baton/clients/go/batonv1"
)

const workerEpoch = 77

// jobs executes jobs in memory: at once when they are due by the clock of the fake, which only Advance moves.
type jobs struct {
	pb.UnimplementedJobsServer
	*Sidecar
}

type job struct {
	*pb.Job
	spec *pb.JobSpec
}

// Advance moves the clock that decides which jobs are due.
func (s *Sidecar) Advance(by time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clock = s.clock.Add(by)
	s.startDue()
}

// Submissions is the requests of Jobs.Submit.
func (s *Sidecar) Submissions() []*pb.JobsSubmitRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.submissions)
}

// startDue starts every job that is due and whose key is free; the lock is held.
func (s *Sidecar) startDue() {
	for _, id := range slices.Sorted(maps.Keys(s.jobs)) {
		found := s.jobs[id]
		waits := found.State == pb.RunState_RUN_STATE_QUEUED || found.State == pb.RunState_RUN_STATE_WAITING
		if waits && !found.DueAt.AsTime().After(s.clock) && !s.keyIsBusy(found) && s.App != nil {
			found.State = pb.RunState_RUN_STATE_RUNNING
			found.Attempt++
			s.runs[id] = &Run{ID: id, Name: found.Name, Kind: pb.RunKind_RUN_KIND_JOB, Attempt: found.Attempt, epoch: workerEpoch,
				live: true, Checkpoints: s.checkpoints(id)}
			go s.executeJob(s.App, found, s.jobRequest(found))
		}
	}
}

func (s *Sidecar) checkpoints(id uint64) []*pb.Checkpoint {
	if before := s.runs[id]; before != nil {
		return before.Checkpoints
	}
	return nil
}

func (s *Sidecar) keyIsBusy(wanted *job) bool {
	for _, other := range s.jobs {
		if wanted.Key != "" && other.Name == wanted.Name && other.Key == wanted.Key && other.State == pb.RunState_RUN_STATE_RUNNING {
			return true
		}
	}
	return false
}

func jobState(found *job) string { return "job-state:" + found.Name + "/" + found.Key }

func (s *Sidecar) jobRequest(found *job) *pb.ExecuteRequest {
	return &pb.ExecuteRequest{
		Context: &pb.ClusterContext{Cluster: "test", RunnerId: "fake", Epoch: workerEpoch, EntityType: "job", EntityId: found.Key},
		RunId:   found.JobId, Kind: pb.RunKind_RUN_KIND_JOB, Name: found.Name, Attempt: found.Attempt, ScheduledAt: found.DueAt,
		Payload: found.spec.Payload, ContentType: "application/json", Checkpoints: s.checkpoints(found.JobId),
		State: s.entries[jobState(found)].GetValue(), Job: &pb.JobContext{
			Queue: found.Queue, Key: found.Key, Priority: found.Priority, Labels: found.Labels, Batch: found.Batch,
			SubmittedAt: found.CreatedAt, Rescues: found.Rescues,
		},
	}
}

func (s *Sidecar) executeJob(app pb.AppCallbackClient, found *job, request *pb.ExecuteRequest) {
	answer, err := app.Execute(context.Background(), request)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs[found.JobId].live = false
	switch {
	case status.Code(err) == codes.Unavailable: // no retry used
		found.State = pb.RunState_RUN_STATE_QUEUED
		found.Rescues++
		if len(s.processes) == 0 {
			s.tell()
			return
		}
	case err != nil:
		s.failJob(found, err.Error(), true)
	default:
		s.concludeJob(found, answer)
	}
	s.startDue()
	s.tell()
}

func (s *Sidecar) concludeJob(found *job, answer *pb.ExecuteResponse) {
	for _, state := range [][]byte{answer.GetSucceeded().GetState(), answer.GetSnoozed().GetState(), answer.GetFailed().GetState()} {
		if state != nil {
			s.write(jobState(found), state, nil)
		}
	}
	switch outcome := answer.GetOutcome().(type) {
	case *pb.ExecuteResponse_Failed:
		s.failJob(found, outcome.Failed.GetMessage(), outcome.Failed.GetRetryable())
	case *pb.ExecuteResponse_Snoozed:
		found.State = pb.RunState_RUN_STATE_WAITING
		found.DueAt = outcome.Snoozed.GetAt()
		if after := outcome.Snoozed.GetAfter(); after != nil {
			found.DueAt = timestamppb.New(s.clock.Add(after.AsDuration()))
		}
	case *pb.ExecuteResponse_Skipped:
		found.State, found.Outcome = pb.RunState_RUN_STATE_ENDED, pb.Outcome_OUTCOME_SKIPPED
	default:
		found.State, found.Outcome = pb.RunState_RUN_STATE_ENDED, pb.Outcome_OUTCOME_SUCCEEDED
		found.Result = answer.GetSucceeded().GetResult()
		for _, spec := range answer.GetSucceeded().GetJobs() {
			s.newJob(spec)
		}
	}
}

func (s *Sidecar) failJob(found *job, message string, retryable bool) {
	found.Failures, found.Error = found.Failures+1, message
	if attempts := max(found.spec.GetRetry().GetAttempts(), 1); retryable && found.Failures < attempts {
		found.State, found.DueAt = pb.RunState_RUN_STATE_WAITING, timestamppb.New(s.clock.Add(time.Second))
		return
	}
	found.State, found.Outcome = pb.RunState_RUN_STATE_ENDED, pb.Outcome_OUTCOME_FAILED
}

func (s *Sidecar) newJob(spec *pb.JobSpec) *pb.SubmittedJob {
	for id, earlier := range s.jobs {
		if spec.Unique != nil && earlier.Name == spec.Name && earlier.spec.GetUnique().GetKey() == spec.Unique.Key &&
			earlier.State != pb.RunState_RUN_STATE_ENDED {
			return &pb.SubmittedJob{JobId: id, Duplicate: true}
		}
	}
	s.nextID++
	due := s.clock
	if spec.GetDelay() != nil {
		due = due.Add(spec.GetDelay().AsDuration())
	} else if spec.GetDueAt() != nil {
		due = spec.GetDueAt().AsTime()
	}
	s.jobs[s.nextID] = &job{spec: spec, Job: &pb.Job{
		JobId: s.nextID, Name: spec.Name, Queue: spec.Queue, Priority: spec.Priority, Key: spec.Key, Labels: spec.Labels,
		Batch: spec.Batch, State: pb.RunState_RUN_STATE_QUEUED, CreatedAt: timestamppb.New(s.clock), DueAt: timestamppb.New(due),
		Payload: spec.Payload,
	}}
	return &pb.SubmittedJob{JobId: s.nextID}
}

func (j *jobs) Submit(_ context.Context, r *pb.JobsSubmitRequest) (*pb.JobsSubmitResponse, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if r.RequestId == "" {
		return nil, status.Error(codes.InvalidArgument, "this client always sends a request id")
	}
	j.submissions = append(j.submissions, r)
	answer := &pb.JobsSubmitResponse{}
	for _, spec := range r.Jobs {
		answer.Jobs = append(answer.Jobs, j.newJob(spec))
	}
	j.startDue()
	return answer, nil
}

// Get waits for less than it is asked to: clients must ask again.
func (j *jobs) Get(_ context.Context, r *pb.JobsGetRequest) (*pb.JobsGetResponse, error) {
	j.mu.Lock()
	found, changed := j.find(r.JobId), j.changed
	j.mu.Unlock()
	if found == nil {
		return nil, missing
	}
	if r.Wait != nil && found.State != pb.RunState_RUN_STATE_ENDED {
		select {
		case <-changed:
		case <-time.After(50 * time.Millisecond):
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return &pb.JobsGetResponse{Job: j.find(r.JobId)}, nil
}

// find gives a copy of a job; the lock is held.
func (j *jobs) find(id uint64) *pb.Job {
	if j.jobs[id] == nil {
		return nil
	}
	return proto.CloneOf(j.jobs[id].Job)
}

func (j *jobs) Watch(r *pb.JobsWatchRequest, stream grpc.ServerStreamingServer[pb.JobsWatchResponse]) error {
	for {
		j.mu.Lock()
		found, changed := j.find(r.JobId), j.changed
		j.mu.Unlock()
		if found == nil {
			return missing
		}
		if err := stream.Send(&pb.JobsWatchResponse{Job: found}); err != nil {
			return err
		}
		if found.State == pb.RunState_RUN_STATE_ENDED {
			return nil
		}
		select {
		case <-changed:
		case <-stream.Context().Done():
			return stream.Context().Err()
		}
	}
}

func (j *jobs) matching(chosen func(*job) bool) (found []*pb.Job) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(j.jobs)) {
		if chosen(j.jobs[id]) {
			found = append(found, j.find(id))
		}
	}
	return found
}

func isDead(found *job) bool { return found.Outcome == pb.Outcome_OUTCOME_FAILED }

func (j *jobs) List(_ context.Context, r *pb.JobsListRequest) (*pb.JobsListResponse, error) {
	all := j.matching(func(found *job) bool { return r.GetFilter().GetName() == "" || found.Name == r.GetFilter().GetName() })
	found, next := page(all, r.PageToken)
	return &pb.JobsListResponse{Jobs: found, NextPageToken: next}, nil
}

func (j *jobs) ListDead(_ context.Context, r *pb.JobsListDeadRequest) (*pb.JobsListDeadResponse, error) {
	found, next := page(j.matching(isDead), r.PageToken)
	return &pb.JobsListDeadResponse{Jobs: found, NextPageToken: next}, nil
}
