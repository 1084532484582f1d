package baton

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/baton-sidecar/baton/clients/go/batonv1"
)

// Handler executes one attempt of a run. What it returns decides the outcome:
//
//	nil, bytes or anything that JSON can say    succeeded, with that result
//	Result{Value, State, Jobs}                  succeeded; the state is replaced, and the jobs are submitted, in the
//	                                            same transaction
//	error Skip{Reason}                          the app declines this run: no retry, no error
//	error Retry{Message, After}                 failed; try again, no earlier than After
//	error Fail{Message}                         failed for good
//	error Snooze{After}                         only of a job: deliver it again later; no retry is used
//	any other error, or a panic                 failed; may be tried again
//
// The context is cancelled when the handler must stop; [context.Cause] says why.
type Handler func(ctx context.Context, attempt *Attempt) (any, error)

// recorder stores the steps and heartbeats of an attempt: by calls, or over the stream that the run came by.
type recorder interface {
	Checkpoint(context.Context, *pb.RunsCheckpointRequest, ...grpc.CallOption) (*pb.RunsCheckpointResponse, error)
	Heartbeat(context.Context, *pb.RunsHeartbeatRequest, ...grpc.CallOption) (*pb.RunsHeartbeatResponse, error)
}

// executor executes runs, whichever way they came.
type executor struct {
	sidecar                     *Sidecar
	leading                     *leading
	schedules, singletons, jobs map[string]Handler
	hideErrors                  bool
	log                         *slog.Logger
	running                     inflight      // runs that were not answered yet
	stopping                    chan struct{} // closed when the app begins to stop
}

func newExecutor(sidecar *Sidecar, leading *leading, log *slog.Logger) *executor {
	return &executor{
		sidecar: sidecar, leading: leading, log: log, stopping: make(chan struct{}),
		schedules: make(map[string]Handler), singletons: make(map[string]Handler), jobs: make(map[string]Handler),
	}
}

// execute runs a handler; the answer is a response or a gRPC status.
func (e *executor) execute(
	ctx context.Context, request *pb.ExecuteRequest, recorder recorder,
) (*pb.ExecuteResponse, error) {
	running, draining, done, err := e.admit(ctx, request)
	if err != nil {
		return nil, err
	}
	defer done()
	handler := e.handler(request)
	if handler == nil {
		return nil, status.Errorf(codes.NotFound, "no handler for %q", request.GetName())
	}
	attempt := newAttempt(running, request, e.sidecar, draining)
	attempt.recorder = recorder
	answer, err := answer(running, handler, attempt)
	var cancelled Cancelled
	switch {
	case err == nil:
		return answer, nil
	case ctx.Err() != nil && !errors.As(context.Cause(ctx), &cancelled):
		// Its deadline has passed, or it was cancelled: that is no fault of the term.
		return nil, status.FromContextError(ctx.Err()).Err()
	case running.Err() != nil:
		return nil, status.Error(codes.Unavailable, context.Cause(running).Error())
	}
	e.log.Error("a run failed", "name", request.GetName(), "run_id", request.GetRunId(), "error", err)
	return unexpected(err, e.hideErrors), nil
}

// admit lets a run begin: one of a term only in that term, a job while the app does not stop.
func (e *executor) admit(
	ctx context.Context, request *pb.ExecuteRequest,
) (running context.Context, draining <-chan struct{}, done func(), err error) {
	if request.GetKind() != pb.RunKind_RUN_KIND_JOB {
		cluster := clusterOf(request.GetContext())
		running, draining, done, err = e.leading.start(ctx, cluster.Group, cluster.Epoch)
		if err != nil {
			err = status.Errorf(codes.Unavailable, "not in term %d", cluster.Epoch)
		}
		return running, draining, done, err
	}
	select {
	case <-e.stopping:
		return nil, nil, nil, status.Error(codes.Unavailable, "the app is stopping")
	default:
		return ctx, e.stopping, func() {}, nil
	}
}

func (e *executor) handler(request *pb.ExecuteRequest) Handler {
	switch request.GetKind() {
	case pb.RunKind_RUN_KIND_SINGLETON:
		return e.singletons[request.GetName()]
	case pb.RunKind_RUN_KIND_JOB:
		return e.jobs[request.GetName()]
	}
	return e.schedules[request.GetName()]
}

// answer is the outcome that the handler chose; an error is one that it did not mean to be told.
func answer(ctx context.Context, handler Handler, attempt *Attempt) (response *pb.ExecuteResponse, err error) {
	err = guarded(func() error {
		value, err := handler(ctx, attempt)
		if err != nil {
			response, err = chosen(err, attempt.Kind)
			return err
		}
		response, err = answered(value, attempt.sidecar.Jobs)
		return err
	})
	return response, err
}

func chosen(err error, kind pb.RunKind) (*pb.ExecuteResponse, error) {
	response, failed := declared(err)
	switch {
	case failed != nil:
		return nil, fmt.Errorf("%w; its state cannot be encoded: %w", err, failed)
	case response == nil:
		return nil, err
	case response.GetSnoozed() != nil && kind != pb.RunKind_RUN_KIND_JOB:
		return nil, errors.New("baton: only a job can be snoozed")
	}
	return response, nil
}

// becomeStatus is the answer to OnBecomeLeader.
func (e *executor) becomeStatus(cluster ClusterContext, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errStopping):
		return status.Error(codes.Unavailable, "the app is stopping")
	}
	e.log.Error("leadership was refused", "group", cluster.Group, "epoch", cluster.Epoch, "error", err)
	return status.Error(codes.Internal, "hook failed: "+typeName(err))
}

// loseStatus is the answer to OnLoseLeadership.
func loseStatus(err error) error {
	if err == nil {
		return nil
	}
	return status.Error(codes.Internal, "hook failed: "+typeName(err))
}

// inflight counts what runs; its zero value counts nothing.
type inflight struct {
	mu    sync.Mutex
	count int
	idle  chan struct{} // closed when the count falls to 0; nil: nobody waits
}

func (f *inflight) add() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count++
}

func (f *inflight) done() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.count--; f.count == 0 && f.idle != nil {
		close(f.idle)
		f.idle = nil
	}
}

// wait tells whether nothing ran any more before the context ended.
func (f *inflight) wait(ctx context.Context) bool {
	f.mu.Lock()
	if f.count == 0 {
		f.mu.Unlock()
		return true
	}
	if f.idle == nil {
		f.idle = make(chan struct{})
	}
	idle := f.idle
	f.mu.Unlock()
	select {
	case <-idle:
		return true
	case <-ctx.Done():
		return false
	}
}
