package baton

import (
	"context"

	pb "github.com/baton-sidecar/baton/clients/go/batonv1"
)

// Singletons reads the singletons that the configuration names.
type Singletons struct {
	connection *connection
	stub       pb.SingletonsClient
}

// Get is one singleton.
func (s *Singletons) Get(ctx context.Context, name string) (*pb.Singleton, error) {
	answer, err := call(ctx, s.connection, s.stub.Get, &pb.SingletonsGetRequest{Name: name})
	return answer.GetSingleton(), err
}

// List is all singletons, by name.
func (s *Singletons) List(ctx context.Context) ([]*pb.Singleton, error) {
	return collected(paged(func(token string) ([]*pb.Singleton, string, error) {
		answer, err := call(ctx, s.connection, s.stub.List, &pb.SingletonsListRequest{PageToken: token})
		return answer.GetSingletons(), answer.GetNextPageToken(), err
	}))
}
