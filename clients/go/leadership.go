package baton

import (
	"context"
	"iter"

	pb "github.com/baton-sidecar/baton/clients/go/batonv1"
)

// Leadership reads who leads and gives leadership up. Whether this app may act now: [App.IsLeader].
type Leadership struct {
	connection *connection
	stub       pb.LeadershipClient
}

// Get tells who leads a group now.
func (l *Leadership) Get(ctx context.Context, group string) (*pb.Leader, error) {
	answer, err := call(ctx, l.connection, l.stub.Get, &pb.LeadershipGetRequest{Group: group})
	return answer.GetLeader(), err
}

// List tells who leads each group, by name.
func (l *Leadership) List(ctx context.Context) ([]*pb.Leader, error) {
	return collected(paged(func(token string) ([]*pb.Leader, string, error) {
		answer, err := call(ctx, l.connection, l.stub.List, &pb.LeadershipListRequest{PageToken: token})
		return answer.GetLeaders(), answer.GetNextPageToken(), err
	}))
}

// Resign begins to hand the group over.
func (l *Leadership) Resign(ctx context.Context, group string) (*pb.Leader, error) {
	answer, err := call(ctx, l.connection, l.stub.Resign, &pb.LeadershipResignRequest{Group: group})
	return answer.GetLeader(), err
}

// Watch gives the leader of a group, now and after every change, until the stream breaks, which is its last error.
func (l *Leadership) Watch(ctx context.Context, group string) iter.Seq2[*pb.Leader, error] {
	messages := stream(ctx, l.connection, l.stub.Watch, &pb.LeadershipWatchRequest{Group: group})
	return func(yield func(*pb.Leader, error) bool) {
		for message, err := range messages {
			if !yield(message.GetLeader(), err) {
				return
			}
		}
	}
}
