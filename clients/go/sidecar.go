package baton

import (
	"cmp"
	"context"
	"log/slog"
	"os"
	"sync/atomic"

	pb "github.com/baton-sidecar/baton/clients/go/batonv1"
)

// Where the app and the sidecar listen unless told otherwise.
const (
	DefaultAppAddress = "127.0.0.1:50051"
	DefaultAPIAddress = "127.0.0.1:9401"
)

// Sidecar is everything the sidecar offers, over one connection; usable from any pod, leader or not.
type Sidecar struct {
	State      *State
	Schedules  *Schedules
	Singletons *Singletons
	Runs       *Runs
	Leadership *Leadership
	Deferreds  *Deferreds
	Jobs       *Jobs

	connection *connection
	ids        *ids
	cluster    atomic.Pointer[string] // its name, once it is known
}

// Connect is for programs that only call the sidecar; it uses Sidecar, APITokenFile, Cluster,
// Schema and Logger of the config. Nothing
// is sent yet, and the connection comes back by itself whenever it breaks.
func Connect(config Config) (*Sidecar, error) {
	path := cmp.Or(config.APITokenFile, os.Getenv("BATON_API_TOKEN_FILE"))
	token, err := openToken(path, cmp.Or(config.Logger, slog.Default()))
	if err != nil {
		return nil, err
	}
	c, err := dial(cmp.Or(config.Sidecar, os.Getenv("BATON_API_ADDRESS"), DefaultAPIAddress), token)
	if err != nil {
		return nil, err
	}
	sidecar := &Sidecar{
		State:      &State{c, pb.NewStateClient(c.channel)},
		Schedules:  &Schedules{c, pb.NewSchedulesClient(c.channel)},
		Singletons: &Singletons{c, pb.NewSingletonsClient(c.channel)},
		Runs:       &Runs{c, pb.NewRunsClient(c.channel)},
		Leadership: &Leadership{c, pb.NewLeadershipClient(c.channel)},
		Deferreds:  &Deferreds{c, pb.NewDeferredsClient(c.channel)},
		connection: c,
		ids:        newIDs(c),
	}
	sidecar.learn(cmp.Or(config.Cluster, os.Getenv("BATON_CLUSTER")))
	sidecar.Jobs = &Jobs{
		connection: c, stub: pb.NewJobsClient(c.channel), cluster: sidecar.clusterName,
		schema: cmp.Or(config.Schema, "baton"), defaults: make(map[string]JobDefaults),
	}
	return sidecar, nil
}

// learn takes in the name of the cluster; what was known first stays.
func (s *Sidecar) learn(cluster string) {
	if cluster != "" {
		s.cluster.CompareAndSwap(nil, &cluster)
	}
}

// clusterName is empty while the name is not known.
func (s *Sidecar) clusterName() string {
	if name := s.cluster.Load(); name != nil {
		return *name
	}
	return ""
}

// NextID is a new id, unique across the cluster and above those this process was given before.
func (s *Sidecar) NextID(ctx context.Context) (uint64, error) { return s.ids.next(ctx) }

// Close ends the connection; open calls fail.
func (s *Sidecar) Close() error { return s.connection.channel.Close() }
