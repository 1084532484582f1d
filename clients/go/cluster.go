package baton

import (
	"cmp"
	"context"

	pb "github.com/baton-sidecar/baton/clients/go/batonv1"
)

// DefaultGroup is the group that is meant where none is named.
const DefaultGroup = "default"

// ClusterContext is the term, and in a handler the entity, on whose behalf code runs.
type ClusterContext struct {
	Cluster  string
	RunnerID string
	Group    string
	// IsLeader as told with the call: true when becoming leader and in handlers, false when losing leadership.
	IsLeader bool
	// Epoch is the fencing token of the term: hand it to other systems that can refuse older ones.
	Epoch uint64
	// EntityType is "singleton", "schedule" or "job" in a handler, else empty.
	EntityType string
	// EntityID is the name of the singleton or schedule, or the key of the job, in a handler, else empty.
	EntityID string
}

// Cluster is the cluster context of the handler or hook above; [ErrClusterContextRequired] if there is none.
func Cluster(ctx context.Context) (ClusterContext, error) {
	scope, err := requireScope(ctx)
	return scope.cluster, err
}

// NextID is a new cluster-wide id, from the sidecar of the handler or hook above.
func NextID(ctx context.Context) (uint64, error) {
	scope, err := requireScope(ctx)
	if err != nil {
		return 0, err
	}
	return scope.sidecar.NextID(ctx)
}

// scope is what a callback sets for the code below it.
type scope struct {
	cluster     ClusterContext
	sidecar     *Sidecar
	traceparent string
}

type scopeKey struct{}

func withScope(ctx context.Context, scope scope) context.Context {
	return context.WithValue(ctx, scopeKey{}, scope)
}

func scopeOf(ctx context.Context) (scope, bool) {
	found, ok := ctx.Value(scopeKey{}).(scope)
	return found, ok
}

func requireScope(ctx context.Context) (scope, error) {
	found, ok := scopeOf(ctx)
	if !ok {
		return found, ErrClusterContextRequired
	}
	return found, nil
}

func clusterOf(message *pb.ClusterContext) ClusterContext {
	group := message.GetGroup()
	if message.GetEntityType() != "job" { // a job belongs to no group
		group = groupOf(group)
	}
	return ClusterContext{
		Cluster:    message.GetCluster(),
		RunnerID:   message.GetRunnerId(),
		Group:      group,
		IsLeader:   message.GetIsLeader(),
		Epoch:      message.GetEpoch(),
		EntityType: message.GetEntityType(),
		EntityID:   message.GetEntityId(),
	}
}

func groupOf(name string) string { return cmp.Or(name, DefaultGroup) }
