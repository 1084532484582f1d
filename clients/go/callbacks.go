package baton

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	pb "github.com/baton-sidecar/baton/clients/go/batonv1"
)

// callbacks is the service that the sidecar calls.
type callbacks struct {
	pb.UnimplementedAppCallbackServer
	*executor
	token *tokenFile
}

// OnBecomeLeader opens a term.
func (c *callbacks) OnBecomeLeader(
	ctx context.Context, request *pb.OnBecomeLeaderRequest,
) (*pb.OnBecomeLeaderResponse, error) {
	cluster := clusterOf(request.GetContext())
	err := c.leading.become(ctx, cluster, request, arrival(ctx))
	return &pb.OnBecomeLeaderResponse{}, c.becomeStatus(cluster, err)
}

// OnLoseLeadership closes a term.
func (c *callbacks) OnLoseLeadership(
	ctx context.Context, request *pb.OnLoseLeadershipRequest,
) (*pb.OnLoseLeadershipResponse, error) {
	cluster := clusterOf(request.GetContext())
	err := c.leading.lose(ctx, cluster, request.GetReason(), cluster.Epoch)
	return &pb.OnLoseLeadershipResponse{}, loseStatus(err)
}

// Execute runs a handler.
func (c *callbacks) Execute(ctx context.Context, request *pb.ExecuteRequest) (*pb.ExecuteResponse, error) {
	c.running.add()
	defer c.running.done()
	return c.execute(ctx, request, c.sidecar.Runs.stub)
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
	c.sidecar.learn(message.GetContext().GetCluster())
	ctx = context.WithValue(ctx, arrivalKey{}, arrived)
	return next(withScope(ctx, scope{
		cluster: clusterOf(message.GetContext()), sidecar: c.sidecar, traceparent: first(incoming.Get(traceKey)),
	}), request)
}

func first[T any](values []T) (found T) {
	if len(values) > 0 {
		found = values[0]
	}
	return found
}
