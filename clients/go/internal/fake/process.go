package fake

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/baton-sidecar/baton/clients/go/batonv1"
)

// OnBecomeLeader begins a term over the stream.
func (p *Process) OnBecomeLeader(
	ctx context.Context, request *pb.OnBecomeLeaderRequest, _ ...grpc.CallOption,
) (*pb.OnBecomeLeaderResponse, error) {
	change := &pb.LeadershipChange{Change: &pb.LeadershipChange_Become{Become: request}}
	err := p.lead(ctx, pb.LeadershipEvent_LEADERSHIP_EVENT_BECOME, request.GetContext(), change)
	return &pb.OnBecomeLeaderResponse{}, err
}

// OnLoseLeadership ends a term over the stream.
func (p *Process) OnLoseLeadership(
	ctx context.Context, request *pb.OnLoseLeadershipRequest, _ ...grpc.CallOption,
) (*pb.OnLoseLeadershipResponse, error) {
	change := &pb.LeadershipChange{Change: &pb.LeadershipChange_Lose{Lose: request}}
	err := p.lead(ctx, pb.LeadershipEvent_LEADERSHIP_EVENT_LOSE, request.GetContext(), change)
	return &pb.OnLoseLeadershipResponse{}, err
}

func (p *Process) lead(
	ctx context.Context, event pb.LeadershipEvent, about *pb.ClusterContext, change *pb.LeadershipChange,
) error {
	answered := make(chan *pb.LeadershipAnswer, 1)
	p.mu.Lock()
	p.leadership[leadershipKey{event, about.GetGroup(), about.GetEpoch()}] = answered
	p.mu.Unlock()
	if err := p.Send(&pb.AttachResponse{Leadership: []*pb.LeadershipChange{change}}); err != nil {
		return err
	}
	select {
	case answer := <-answered:
		return errorOf(answer.GetError())
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	case <-p.over:
		return status.Error(codes.Unavailable, "the stream is over")
	}
}

// Execute delivers an attempt over the stream; a context that ends cancels it.
func (p *Process) Execute(
	ctx context.Context, request *pb.ExecuteRequest, _ ...grpc.CallOption,
) (*pb.ExecuteResponse, error) {
	sent := proto.CloneOf(request)
	sent.Context.Cluster, sent.Context.RunnerId, sent.Traceparent = "", "", p.sidecar.traceparent
	if deadline, ok := ctx.Deadline(); ok {
		sent.Deadline = timestamppb.New(deadline)
	}
	key, answered := runKey{request.GetRunId(), request.GetAttempt()}, make(chan *pb.RunAnswer, 1)
	p.mu.Lock()
	p.answers[key] = answered
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.answers, key)
	}()
	if err := p.Send(&pb.AttachResponse{Runs: []*pb.ExecuteRequest{sent}}); err != nil {
		return nil, err
	}
	select {
	case answer := <-answered:
		if answer.GetStatus() != nil {
			return nil, errorOf(answer.GetStatus())
		}
		return answer.GetResponse(), nil
	case <-cancelled(ctx):
		cancel := &pb.RunCancel{RunId: key.id, Attempt: key.attempt, Reason: "cancelled by the test"}
		_ = p.Send(&pb.AttachResponse{Cancels: []*pb.RunCancel{cancel}})
		return nil, status.FromContextError(ctx.Err()).Err()
	case <-p.over:
		return nil, status.Error(codes.Unavailable, "the stream is over")
	}
}

// cancelled is closed when a context is cancelled. Not at its deadline: that is the app's to keep.
func cancelled(ctx context.Context) <-chan struct{} {
	if _, limited := ctx.Deadline(); limited {
		return nil
	}
	return ctx.Done()
}

func errorOf(failed *pb.CallStatus) error {
	if failed == nil {
		return nil
	}
	return status.Error(codes.Code(failed.GetCode()), failed.GetMessage())
}
