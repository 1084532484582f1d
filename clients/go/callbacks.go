package baton

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	pb "github.com/baton-sidecar/baton/clients/go/batonv1"
)

// Handler executes one attempt of a run. What it returns decides the outcome:
//
//	nil, bytes or anything that JSON can say    succeeded, with that result
//	Result{Value, State}                        succeeded, and the owned state is replaced in the same transaction
//	error Skip{Reason}                          the app declines this run: no retry, no error
//	error Retry{Message, After}                 failed; try again, no earlier than After
//	error Fail{Message}                         failed for good
//	any other error, or a panic                 failed; may be tried again. Only its type leaves the process
//
// The context is cancelled when the handler must stop; [context.Cause] says why.
type Handler func(ctx context.Context, attempt *Attempt) (any, error)

// callbacks is the service that the sidecar calls.
type callbacks struct {
	pb.UnimplementedAppCallbackServer
	sidecar               *Sidecar
	leading               *leading
	schedules, singletons map[string]Handler
	token                 *tokenFile
	log                   *slog.Logger
}

// OnBecomeLeader opens a term.
func (c *callbacks) OnBecomeLeader(
	ctx context.Context, request *pb.OnBecomeLeaderRequest,
) (*pb.OnBecomeLeaderResponse, error) {
	given := trustOf(request, arrival(ctx), clockIsBoottime)
	cluster := clusterOf(request.GetContext())
	err := c.leading.become(ctx, cluster, given)
	switch {
	case errors.Is(err, errStopping):
		return nil, status.Error(codes.Unavailable, "the app is stopping")
	case err != nil:
		c.log.Error("leadership was refused", "group", cluster.Group, "epoch", cluster.Epoch, "error", err)
		return nil, status.Error(codes.Internal, "hook failed: "+typeName(err))
	}
	return &pb.OnBecomeLeaderResponse{}, nil
}

// OnLoseLeadership closes a term.
func (c *callbacks) OnLoseLeadership(
	ctx context.Context, request *pb.OnLoseLeadershipRequest,
) (*pb.OnLoseLeadershipResponse, error) {
	cluster := clusterOf(request.GetContext())
	if err := c.leading.lose(ctx, cluster, request.GetReason(), cluster.Epoch); err != nil {
		return nil, status.Error(codes.Internal, "hook failed: "+typeName(err))
	}
	return &pb.OnLoseLeadershipResponse{}, nil
}

// Execute runs a handler.
func (c *callbacks) Execute(ctx context.Context, request *pb.ExecuteRequest) (*pb.ExecuteResponse, error) {
	cluster := clusterOf(request.GetContext())
	running, draining, done, err := c.leading.start(ctx, cluster.Group, cluster.Epoch)
	if err != nil {
		return nil, status.Errorf(codes.Unavailable, "not in term %d", cluster.Epoch)
	}
	defer done()
	handler := c.handler(request)
	if handler == nil {
		return nil, status.Errorf(codes.NotFound, "no handler for %q", request.GetName())
	}
	answer, err := answer(running, handler, newAttempt(running, request, c.sidecar, draining))
	switch {
	case err == nil:
		return answer, nil
	case ctx.Err() != nil: // its deadline has passed, or it was cancelled: that is no fault of the term
		return nil, status.FromContextError(ctx.Err()).Err()
	case running.Err() != nil:
		return nil, status.Error(codes.Unavailable, context.Cause(running).Error())
	}
	c.log.Error("a run failed", "name", request.GetName(), "run_id", request.GetRunId(), "error", err)
	return unexpected(err), nil
}

func (c *callbacks) handler(request *pb.ExecuteRequest) Handler {
	if request.GetKind() == pb.RunKind_RUN_KIND_SINGLETON {
		return c.singletons[request.GetName()]
	}
	return c.schedules[request.GetName()]
}

// answer is the outcome that the handler chose; an error is one that it did not mean to be told.
func answer(ctx context.Context, handler Handler, attempt *Attempt) (response *pb.ExecuteResponse, err error) {
	err = guarded(func() error {
		value, err := handler(ctx, attempt)
		if err != nil {
			response, err = chosen(err)
			return err
		}
		response, err = answered(value)
		return err
	})
	return response, err
}

func chosen(err error) (*pb.ExecuteResponse, error) {
	response, failed := declared(err)
	switch {
	case failed != nil:
		return nil, fmt.Errorf("%w; its state cannot be encoded: %w", err, failed)
	case response == nil:
		return nil, err
	}
	return response, nil
}

type arrivalKey struct{}

// arrival is when the call came in.
func arrival(ctx context.Context) time.Duration {
	at, ok := ctx.Value(arrivalKey{}).(time.Duration)
	if !ok {
		panic("baton: the call did not pass the interceptor")
	}
	return at
}

// enter takes the time, checks the token, and opens the scope for everything below a callback. Other services, which
// is health, need no token: the kubelet has none.
func (c *callbacks) enter(
	ctx context.Context, request any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler,
) (any, error) {
	arrived := boottime()
	message, ours := request.(interface{ GetContext() *pb.ClusterContext })
	if !ours {
		return next(ctx, request)
	}
	incoming, _ := metadata.FromIncomingContext(ctx)
	if c.token != nil && !c.token.accepts(first(incoming.Get(tokenKey))) {
		return nil, status.Error(codes.Unauthenticated, "baton-token is missing or wrong")
	}
	ctx = context.WithValue(ctx, arrivalKey{}, arrived)
	return next(withScope(ctx, scope{
		cluster: clusterOf(message.GetContext()), sidecar: c.sidecar, traceparent: first(incoming.Get(traceKey)),
	}), request)
}

func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}
