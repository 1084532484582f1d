package baton

import (
	"context"
	"crypto/rand"
	"fmt"
	"iter"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/baton-sidecar/baton/clients/go/batonv1"
)

const (
	jobWaitMax   = 60 * time.Second
	jobWaitSlack = 10 * time.Second
)

// Jobs submits and steers background work that any pod may execute; works on any pod.
type Jobs struct {
	connection *connection
	stub       pb.JobsClient
	cluster    func() string
	schema     string
	defaults   map[string]JobDefaults
}

// Submitted is what became of a submitted job.
type Submitted struct {
	ID uint64
	// Duplicate: an earlier job was found ([JobOptions].Unique), and this is its id.
	Duplicate bool
}

// Submit stores a job; it is durable once this returns. The payload is bytes, or anything that JSON can say. A call
// whose answer was lost is repeated without being done twice.
func (j *Jobs) Submit(ctx context.Context, name string, payload any, options ...JobOptions) (Submitted, error) {
	submitted, err := j.SubmitMany(ctx, []Job{{Name: name, Payload: payload, Options: first(options)}})
	return first(submitted), err
}

// SubmitMany stores up to 1,000 jobs, all or none.
func (j *Jobs) SubmitMany(ctx context.Context, jobs []Job) ([]Submitted, error) {
	specs, err := j.specs(jobs)
	if err != nil {
		return nil, err
	}
	return j.submit(ctx, &pb.JobsSubmitRequest{Jobs: specs})
}

// SubmitBatch stores the jobs of a batch and closes it: no more jobs of it will come. When all of its jobs have ended,
// `onComplete` is submitted, unless it is nil.
func (j *Jobs) SubmitBatch(ctx context.Context, batch string, jobs []Job, onComplete *Job) ([]Submitted, error) {
	request := &pb.JobsSubmitRequest{Batch: batch}
	var err error
	if request.Jobs, err = j.specs(jobs); err != nil {
		return nil, err
	}
	for _, spec := range request.Jobs {
		spec.Batch = batch
	}
	if onComplete != nil {
		if request.OnComplete, err = j.spec(*onComplete); err != nil {
			return nil, err
		}
	}
	return j.submit(ctx, request)
}

func (j *Jobs) submit(ctx context.Context, request *pb.JobsSubmitRequest) ([]Submitted, error) {
	request.RequestId = rand.Text()
	answer, err := call(ctx, j.connection, j.stub.Submit, request)
	if err != nil {
		return nil, err
	}
	submitted := make([]Submitted, 0, len(answer.GetJobs()))
	for _, job := range answer.GetJobs() {
		submitted = append(submitted, Submitted{job.GetJobId(), job.GetDuplicate()})
	}
	if len(submitted) != len(request.GetJobs()) {
		return nil, &Error{Kind: ErrOther, Reason: ErrOther.name,
			Message: fmt.Sprintf("%d jobs were submitted, %d answered", len(request.GetJobs()), len(submitted))}
	}
	return submitted, nil
}

// Get is one job, with its payload, result and history.
func (j *Jobs) Get(ctx context.Context, id uint64) (*pb.Job, error) {
	answer, err := call(ctx, j.connection, j.stub.Get, &pb.JobsGetRequest{JobId: id})
	return answer.GetJob(), err
}

// Wait returns the job when it has ended, however long that takes; the context bounds it.
func (j *Jobs) Wait(ctx context.Context, id uint64) (*pb.Job, error) {
	request := &pb.JobsGetRequest{JobId: id, Wait: durationpb.New(jobWaitMax)}
	for {
		answer, err := callFor(ctx, j.connection, j.stub.Get, request, jobWaitMax+jobWaitSlack)
		switch {
		case err != nil:
			return nil, err
		case answer.GetJob().GetState() == pb.RunState_RUN_STATE_ENDED:
			return answer.GetJob(), nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		}
	}
}

// Watch gives the job, then again after each change, until it has ended, or until the stream breaks, which is its last
// error.
func (j *Jobs) Watch(ctx context.Context, id uint64) iter.Seq2[*pb.Job, error] {
	messages := stream(ctx, j.connection, j.stub.Watch, &pb.JobsWatchRequest{JobId: id})
	return func(yield func(*pb.Job, error) bool) {
		for message, err := range messages {
			job := message.GetJob()
			if !yield(job, err) || job.GetState() == pb.RunState_RUN_STATE_ENDED {
				return
			}
		}
	}
}

// List is jobs, newest first, without payload, result and history; a nil filter chooses all.
func (j *Jobs) List(ctx context.Context, filter *pb.JobFilter) iter.Seq2[*pb.Job, error] {
	return paged(func(token string) ([]*pb.Job, string, error) {
		answer, err := call(ctx, j.connection, j.stub.List, &pb.JobsListRequest{Filter: filter, PageToken: token})
		return answer.GetJobs(), answer.GetNextPageToken(), err
	})
}

// Cancel cancels jobs. It tells how many ended at once, and how many are running and were asked to stop.
func (j *Jobs) Cancel(ctx context.Context, note string, ids ...uint64) (cancelled, requested uint32, err error) {
	return j.cancel(ctx, &pb.JobsCancelRequest{JobIds: ids, Note: note})
}

// CancelAll cancels the live jobs that match, at most 10,000; the filter must restrict something.
func (j *Jobs) CancelAll(ctx context.Context, note string, filter *pb.JobFilter) (cancelled, requested uint32, err error) {
	return j.cancel(ctx, &pb.JobsCancelRequest{Filter: filter, Note: note})
}

func (j *Jobs) cancel(ctx context.Context, request *pb.JobsCancelRequest) (cancelled, requested uint32, err error) {
	answer, err := callOnce(ctx, j.connection, j.stub.Cancel, request)
	return answer.GetCancelled(), answer.GetRequested(), err
}

// Retry makes a job that waits for its next attempt due now.
func (j *Jobs) Retry(ctx context.Context, id uint64) (*pb.Job, error) {
	answer, err := callOnce(ctx, j.connection, j.stub.Retry, &pb.JobsRetryRequest{JobId: id})
	return answer.GetJob(), err
}

// Reschedule changes when a job that is not running is due.
func (j *Jobs) Reschedule(ctx context.Context, id uint64, due time.Time) (*pb.Job, error) {
	request := &pb.JobsRescheduleRequest{JobId: id, DueAt: timestamppb.New(due)}
	answer, err := call(ctx, j.connection, j.stub.Reschedule, request)
	return answer.GetJob(), err
}

// Stats is the depth, age and limits of a queue; of each queue, by name, if it is empty.
func (j *Jobs) Stats(ctx context.Context, queue string) ([]*pb.Queue, error) {
	answer, err := call(ctx, j.connection, j.stub.Stats, &pb.JobsStatsRequest{Queue: queue})
	return answer.GetQueues(), err
}

// PauseQueue starts no more jobs of a queue, on all pods; the note is for whoever finds it paused.
func (j *Jobs) PauseQueue(ctx context.Context, queue, note string) (*pb.Queue, error) {
	answer, err := call(ctx, j.connection, j.stub.PauseQueue, &pb.JobsPauseQueueRequest{Queue: queue, Note: note})
	return answer.GetQueue(), err
}

// ResumeQueue ends a pause.
func (j *Jobs) ResumeQueue(ctx context.Context, queue string) (*pb.Queue, error) {
	answer, err := call(ctx, j.connection, j.stub.ResumeQueue, &pb.JobsResumeQueueRequest{Queue: queue})
	return answer.GetQueue(), err
}

// Batch counts the jobs of a batch.
func (j *Jobs) Batch(ctx context.Context, batch string) (*pb.JobsGetBatchResponse, error) {
	return call(ctx, j.connection, j.stub.GetBatch, &pb.JobsGetBatchRequest{Batch: batch})
}

// Dead is dead letters, newest first, without payloads; a nil filter chooses all.
func (j *Jobs) Dead(ctx context.Context, filter *pb.JobFilter) iter.Seq2[*pb.Job, error] {
	return paged(func(token string) ([]*pb.Job, string, error) {
		answer, err := call(ctx, j.connection, j.stub.ListDead, &pb.JobsListDeadRequest{Filter: filter, PageToken: token})
		return answer.GetJobs(), answer.GetNextPageToken(), err
	})
}

// Replay queues dead letters again, with all their retries, and tells how many.
func (j *Jobs) Replay(ctx context.Context, ids ...uint64) (uint32, error) {
	answer, err := callOnce(ctx, j.connection, j.stub.Replay, &pb.JobsReplayRequest{JobIds: ids})
	return answer.GetReplayed(), err
}

// ReplayAll queues the dead letters that match, at most 10,000, or only counts them.
func (j *Jobs) ReplayAll(ctx context.Context, filter *pb.JobFilter, dryRun bool) (uint32, error) {
	answer, err := callOnce(ctx, j.connection, j.stub.Replay, &pb.JobsReplayRequest{Filter: filter, DryRun: dryRun})
	return answer.GetReplayed(), err
}

// Discard removes dead letters, and tells how many.
func (j *Jobs) Discard(ctx context.Context, ids ...uint64) (uint32, error) {
	answer, err := callOnce(ctx, j.connection, j.stub.Discard, &pb.JobsDiscardRequest{JobIds: ids})
	return answer.GetDiscarded(), err
}

// DiscardAll removes the dead letters that match, at most 10,000, or only counts them.
func (j *Jobs) DiscardAll(ctx context.Context, filter *pb.JobFilter, dryRun bool) (uint32, error) {
	answer, err := callOnce(ctx, j.connection, j.stub.Discard, &pb.JobsDiscardRequest{Filter: filter, DryRun: dryRun})
	return answer.GetDiscarded(), err
}
