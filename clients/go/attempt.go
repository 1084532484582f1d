package baton

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	pb "github.com/baton-sidecar/baton/clients/go/batonv1"
)

// Attempt is one attempt of one run: what a handler is given. Everything written through it carries its identity, so
// that a later attempt or a newer term makes it fail with [ErrFenced] instead of overwriting anything.
type Attempt struct {
	Cluster        ClusterContext
	Name           string
	Kind           pb.RunKind
	RunID          uint64
	Number         uint32    // 1 for the first delivery, higher with each further one
	IdempotencyKey string    // the same for every attempt of this run
	ScheduledAt    time.Time // when it was due
	Deadline       time.Time // zero: none
	Payload        []byte
	ContentType    string
	Metadata       *pb.ExecutionMetadata // what is remembered of earlier runs
	Job            *JobInfo              // nil unless this is a job

	running  context.Context // what the handler is given, to tell why it ended
	sidecar  *Sidecar
	recorder recorder
	draining <-chan struct{}

	mu     sync.Mutex
	state  OwnedState
	stored map[string][]byte
	begun  map[string]bool
}

// JobInfo is what a handler of a job may want to know about it.
type JobInfo struct {
	Queue string
	// Key: jobs with the same name and key run one at a time and share state; empty: none.
	Key         string
	Priority    pb.JobPriority
	Labels      map[string]string
	Batch       string
	SubmittedAt time.Time
	// Rescues is how often the job was taken back from a pod that died or lost its lease.
	Rescues uint32
}

// OwnedState is the state that a singleton, a schedule or the key of a job owns, and the declared version it was made for.
type OwnedState struct {
	Raw     []byte
	Version uint32
}

// JSON reads the state; if nothing was ever stored it leaves `into` as it is.
func (s OwnedState) JSON(into any) error { return fromJSON(s.Raw, into) }

func newAttempt(
	running context.Context, request *pb.ExecuteRequest, sidecar *Sidecar, draining <-chan struct{},
) *Attempt {
	attempt := &Attempt{
		Cluster:        clusterOf(request.GetContext()),
		Name:           request.GetName(),
		Kind:           request.GetKind(),
		RunID:          request.GetRunId(),
		Number:         request.GetAttempt(),
		IdempotencyKey: request.GetIdempotencyKey(),
		ScheduledAt:    request.GetScheduledAt().AsTime(),
		Payload:        request.GetPayload(),
		ContentType:    request.GetContentType(),
		Metadata:       request.GetMetadata(),
		running:        running,
		sidecar:        sidecar,
		draining:       draining,
		state:          OwnedState{request.GetState(), request.GetStateVersion()},
		stored:         storedSteps(request.GetCheckpoints()),
	}
	if request.GetDeadline() != nil {
		attempt.Deadline = request.GetDeadline().AsTime()
	}
	if job := request.GetJob(); request.GetKind() == pb.RunKind_RUN_KIND_JOB {
		attempt.Job = &JobInfo{
			Queue: job.GetQueue(), Key: job.GetKey(), Priority: job.GetPriority(), Labels: job.GetLabels(),
			Batch: job.GetBatch(), SubmittedAt: job.GetSubmittedAt().AsTime(), Rescues: job.GetRescues(),
		}
	}
	return attempt
}

// storedSteps is what earlier attempts stored, by step; nil for most runs, which store nothing.
func storedSteps(checkpoints []*pb.Checkpoint) map[string][]byte {
	if len(checkpoints) == 0 {
		return nil
	}
	stored := make(map[string][]byte, len(checkpoints))
	for _, checkpoint := range checkpoints {
		stored[checkpoint.GetStep()] = checkpoint.GetValue()
	}
	return stored
}

// JSON reads the payload; an empty one leaves `into` as it is.
func (a *Attempt) JSON(into any) error { return fromJSON(a.Payload, into) }

// Draining is closed when the leader begins to hand over, or for a job when the app begins to stop: begin nothing new.
func (a *Attempt) Draining() <-chan struct{} { return a.draining }

// CancelReason is why this attempt must stop, in the words of [Cancelled]; empty while it need not.
func (a *Attempt) CancelReason() string {
	var cancelled Cancelled
	switch {
	case a.running.Err() == nil:
		return ""
	case errors.As(context.Cause(a.running), &cancelled):
		return cancelled.Reason
	}
	select {
	case <-a.draining:
		return CancelHandover
	default:
		return CancelCall
	}
}

// State is the owned state, as it was committed last or put by this attempt.
func (a *Attempt) State() OwnedState {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.state
}

// PutState replaces the owned state now, not only when the run ends. The value is bytes, or anything that JSON can say.
func (a *Attempt) PutState(ctx context.Context, value any) error {
	data, err := encode(value)
	if err != nil {
		return fmt.Errorf("baton: state of %s: %w", a.Name, err)
	}
	if a.Job != nil && a.Job.Key == "" {
		return errors.New("baton: a job without a key has no state")
	}
	request := &pb.StatePutRequest{Key: a.stateKey(), Value: data, Run: a.Ref(), RequestId: rand.Text()}
	if _, err := a.sidecar.State.put(ctx, request); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.state.Raw = data
	return nil
}

func (a *Attempt) stateKey() string {
	if a.Job != nil {
		return "job-state:" + a.Name + "/" + a.Job.Key
	}
	return a.Cluster.EntityType + "-state:" + a.Cluster.EntityID
}

// Heartbeat reports that this run is alive, and with [Progress] and [Message] how far it is.
func (a *Attempt) Heartbeat(ctx context.Context, options ...HeartbeatOption) error {
	return record(ctx, a, a.recorder.Heartbeat, heartbeatOf(a.Ref(), options))
}

// Deferred is the deferred of that name of this run: the same one, and token, in every attempt.
func (a *Attempt) Deferred(ctx context.Context, name string, options ...DeferredOption) (Deferred, error) {
	return a.sidecar.Deferreds.create(ctx, &pb.DeferredsCreateRequest{Name: name, Run: a.Ref()}, options)
}

// Ref names this attempt, for calls that must fail once it is over.
func (a *Attempt) Ref() *pb.RunRef {
	return &pb.RunRef{RunId: a.RunID, Attempt: a.Number, Epoch: a.Cluster.Epoch}
}

// Step runs `work` once per run, not once per attempt, and remembers what it returned: []byte, or anything that JSON
// can say. An error is not remembered. If the process dies between the end of `work` and the answer of the sidecar,
// `work` runs again: give [Attempt.IdempotencyKey] to what it calls.
func Step[T any](
	ctx context.Context, attempt *Attempt, name string, work func(context.Context) (T, error),
) (T, error) {
	stored, done, err := attempt.begin(name)
	if err != nil {
		return *new(T), err
	}
	if !done {
		result, err := work(ctx)
		if err != nil {
			return *new(T), err
		}
		if stored, err = toStored(result); err != nil {
			return *new(T), fmt.Errorf("baton: step %s: %w", name, err)
		}
		request := &pb.RunsCheckpointRequest{Run: attempt.Ref(), Step: name, Value: stored}
		if err := record(ctx, attempt, attempt.recorder.Checkpoint, request); err != nil {
			return *new(T), err
		}
	}
	result, err := fromStored[T](stored) // also what was just made: the same whether it ran or was remembered
	if err != nil {
		return result, fmt.Errorf("baton: step %s: stored as another type: %w", name, err)
	}
	return result, nil
}

// begin notes that a step was asked for, and gives what an earlier attempt stored.
func (a *Attempt) begin(step string) (stored []byte, done bool, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.begun[step] { // the second would silently get the first one's result
		return nil, false, Fail{Message: fmt.Sprintf("step %q was used twice in one attempt", step), Code: "StepNameReused"}
	}
	if a.begun == nil {
		a.begun = make(map[string]bool)
	}
	a.begun[step] = true
	stored, done = a.stored[step]
	return stored, done, nil
}
