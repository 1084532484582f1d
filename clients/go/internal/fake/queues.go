package fake

import (
	"context"

	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/baton-sidecar/baton/clients/go/batonv1"
)

func (j *jobs) Cancel(_ context.Context, r *pb.JobsCancelRequest) (*pb.JobsCancelResponse, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	answer := &pb.JobsCancelResponse{}
	for id, found := range j.jobs {
		if !chosen(id, found, r.JobIds, r.Filter) || found.State == pb.RunState_RUN_STATE_ENDED {
			continue
		}
		if found.State == pb.RunState_RUN_STATE_RUNNING {
			answer.Requested++
			continue
		}
		found.State, found.Outcome = pb.RunState_RUN_STATE_ENDED, pb.Outcome_OUTCOME_SKIPPED
		answer.Cancelled++
	}
	return answer, nil
}

func chosen(id uint64, found *job, ids []uint64, filter *pb.JobFilter) bool {
	for _, wanted := range ids {
		if wanted == id {
			return true
		}
	}
	return filter != nil && found.Name == filter.Name
}

func (j *jobs) Retry(_ context.Context, r *pb.JobsRetryRequest) (*pb.JobsRetryResponse, error) {
	return &pb.JobsRetryResponse{Job: j.due(r.JobId, timestamppb.New(clockStart))}, nil
}

func (j *jobs) Reschedule(_ context.Context, r *pb.JobsRescheduleRequest) (*pb.JobsRescheduleResponse, error) {
	return &pb.JobsRescheduleResponse{Job: j.due(r.JobId, r.DueAt)}, nil
}

func (j *jobs) due(id uint64, at *timestamppb.Timestamp) *pb.Job {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.jobs[id].DueAt = at
	changed := j.find(id)
	j.startDue()
	return changed
}

func (j *jobs) Stats(_ context.Context, r *pb.JobsStatsRequest) (*pb.JobsStatsResponse, error) {
	return &pb.JobsStatsResponse{Queues: []*pb.Queue{{Name: r.Queue, Ready: 3}}}, nil
}

func (j *jobs) PauseQueue(_ context.Context, r *pb.JobsPauseQueueRequest) (*pb.JobsPauseQueueResponse, error) {
	return &pb.JobsPauseQueueResponse{Queue: &pb.Queue{Name: r.Queue, Paused: true, PauseNote: r.Note}}, nil
}

func (j *jobs) ResumeQueue(_ context.Context, r *pb.JobsResumeQueueRequest) (*pb.JobsResumeQueueResponse, error) {
	return &pb.JobsResumeQueueResponse{Queue: &pb.Queue{Name: r.Queue}}, nil
}

func (j *jobs) GetBatch(_ context.Context, r *pb.JobsGetBatchRequest) (*pb.JobsGetBatchResponse, error) {
	members := j.matching(func(found *job) bool { return found.Batch == r.Batch })
	return &pb.JobsGetBatchResponse{Total: uint64(len(members))}, nil
}

// Replay queues dead letters again.
func (j *jobs) Replay(_ context.Context, r *pb.JobsReplayRequest) (*pb.JobsReplayResponse, error) {
	replayed := j.eachDead(r.JobIds, r.Filter, func(found *job) {
		if !r.DryRun {
			found.State, found.Outcome, found.Failures = pb.RunState_RUN_STATE_QUEUED, pb.Outcome_OUTCOME_UNSPECIFIED, 0
		}
	})
	j.mu.Lock()
	defer j.mu.Unlock()
	j.startDue()
	return &pb.JobsReplayResponse{Replayed: replayed}, nil
}

// Discard removes dead letters.
func (j *jobs) Discard(_ context.Context, r *pb.JobsDiscardRequest) (*pb.JobsDiscardResponse, error) {
	discarded := j.eachDead(r.JobIds, r.Filter, func(found *job) {
		if !r.DryRun {
			delete(j.jobs, found.JobId)
		}
	})
	return &pb.JobsDiscardResponse{Discarded: discarded}, nil
}

// eachDead does something with each dead letter that was chosen, and counts them.
func (j *jobs) eachDead(ids []uint64, filter *pb.JobFilter, do func(*job)) (count uint32) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for id, found := range j.jobs {
		if isDead(found) && chosen(id, found, ids, filter) {
			do(found)
			count++
		}
	}
	return count
}
