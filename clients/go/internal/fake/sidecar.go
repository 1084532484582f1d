// Package fake is a sidecar for tests: the contract on real gRPC, kept in memory, with one app beside it.
package fake

import (
	"cmp"
	"context"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/baton-sidecar/baton/clients/go/batonv1"
)

// Trust is what Lead gives and Watch renews.
const Trust = 3 * time.Second

const renewal = 200 * time.Millisecond

// Sidecar answers the API, and plays the sidecar's part towards one app.
type Sidecar struct {
	Address string
	// App calls the app directly, with messages that this fake would never send.
	App pb.AppCallbackClient

	appToken, apiToken, traceparent string
	server                          *grpc.Server

	mu        sync.Mutex
	changed   chan struct{} // closed and replaced at every change
	epoch     uint64
	terms     map[string]*term
	frozen    bool
	refusals  []error
	calls     map[string]int
	metadata  metadata.MD
	version   uint64
	entries   map[string]*pb.Entry
	changes   []*pb.StateWatchResponse
	runs      map[uint64]*Run
	deferreds map[string]*pb.Deferred
	nextID    uint64

	old            bool
	silent         bool
	welcome        *pb.Welcome
	processes      []*Process
	attachRefusals []error
	clock          time.Time // which jobs are due
	jobs           map[uint64]*job
	submissions    []*pb.JobsSubmitRequest
}

// clockStart is the time of a new fake.
var clockStart = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

type term struct {
	epoch           uint64
	leads, draining bool
	trust           time.Duration
}

// Run is one run and what was stored for it.
type Run struct {
	ID          uint64
	Name        string
	Kind        pb.RunKind
	Payload     []byte
	Attempt     uint32
	Checkpoints []*pb.Checkpoint
	Progress    float64
	Message     string
	epoch       uint64
	live        bool
}

// Option changes a fake before it starts.
type Option func(*Sidecar)

// At makes it listen at a fixed address.
func At(address string) Option { return func(s *Sidecar) { s.Address = address } }

// Tokens makes it send one token and ask for another.
func Tokens(app, api string) Option {
	return func(s *Sidecar) { s.appToken, s.apiToken = app, api }
}

// Traceparent is sent with every call to the app.
func Traceparent(trace string) Option { return func(s *Sidecar) { s.traceparent = trace } }

// Start serves a fake until the test ends, or Stop.
func Start(t testing.TB, options ...Option) *Sidecar {
	t.Helper()
	s := &Sidecar{
		Address: "127.0.0.1:0", changed: make(chan struct{}), epoch: 100, calls: make(map[string]int),
		terms: make(map[string]*term), entries: make(map[string]*pb.Entry), runs: make(map[uint64]*Run),
		deferreds: make(map[string]*pb.Deferred), nextID: 1000, welcome: newWelcome(),
		clock: clockStart, jobs: make(map[uint64]*job),
	}
	for _, option := range options {
		option(s)
	}
	listener, err := net.Listen("tcp", s.Address)
	if err != nil {
		t.Fatal(err)
	}
	s.Address = listener.Addr().String()
	s.server = grpc.NewServer(grpc.UnaryInterceptor(s.unary), grpc.StreamInterceptor(s.stream))
	pb.RegisterStateServer(s.server, &state{Sidecar: s})
	pb.RegisterLeadershipServer(s.server, &leadership{Sidecar: s})
	pb.RegisterRunsServer(s.server, &runs{Sidecar: s})
	pb.RegisterDeferredsServer(s.server, &deferreds{Sidecar: s})
	pb.RegisterIdsServer(s.server, &ids{Sidecar: s})
	pb.RegisterSchedulesServer(s.server, &schedules{Sidecar: s})
	pb.RegisterSingletonsServer(s.server, &singletons{Sidecar: s})
	pb.RegisterJobsServer(s.server, &jobs{Sidecar: s})
	if !s.old {
		pb.RegisterAppStreamServer(s.server, &appStream{Sidecar: s})
	}
	go func() { _ = s.server.Serve(listener) }()
	t.Cleanup(s.Stop)
	return s
}

// Stop ends the API.
func (s *Sidecar) Stop() { s.server.Stop() }

// Beside makes it the sidecar of the app at an address.
func (s *Sidecar) Beside(t testing.TB, address string) *Sidecar {
	t.Helper()
	channel, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true)), grpc.WithUnaryInterceptor(s.outgoing))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = channel.Close() })
	s.mu.Lock()
	defer s.mu.Unlock()
	s.App = pb.NewAppCallbackClient(channel)
	return s
}

func (s *Sidecar) outgoing(
	ctx context.Context, method string, request, answer any, channel *grpc.ClientConn,
	next grpc.UnaryInvoker, options ...grpc.CallOption,
) error {
	ctx = metadata.AppendToOutgoingContext(ctx, "baton-token", s.appToken, "traceparent", s.traceparent)
	return next(ctx, method, request, answer, channel, options...)
}

// Lead begins a term and tells the app.
func (s *Sidecar) Lead(ctx context.Context, group string, trust time.Duration) (uint64, error) {
	s.mu.Lock()
	s.epoch++
	epoch := s.epoch
	s.terms[group] = &term{epoch: epoch, leads: true, trust: trust}
	s.tell()
	s.mu.Unlock()
	_, err := s.App.OnBecomeLeader(ctx, &pb.OnBecomeLeaderRequest{
		Context: s.context(group, epoch, true), TrustedFor: durationpb.New(trust),
	})
	return epoch, err
}

// Lose ends the term and tells the app.
func (s *Sidecar) Lose(ctx context.Context, group string, reason pb.LossReason) error {
	s.mu.Lock()
	term := s.terms[group]
	term.leads = false
	for _, run := range s.runs {
		run.live = false
	}
	s.mu.Unlock()
	_, err := s.App.OnLoseLeadership(ctx, &pb.OnLoseLeadershipRequest{
		Context: s.context(group, term.epoch, false), Reason: reason,
	})
	return err
}

// Drain says that the leader is handing over.
func (s *Sidecar) Drain(group string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.terms[group].draining = true
	s.tell()
}

// Distrust takes the trust back, as a sidecar does that is about to end the term.
func (s *Sidecar) Distrust(group string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.terms[group].leads = false
	s.tell()
}

// Trust changes what the next renewals give.
func (s *Sidecar) Trust(group string, trust time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.terms[group].trust = trust
	s.tell()
}

// Draining tells whether the leader is handing over.
func (s *Sidecar) Draining(group string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.terms[group].draining
}

// Said is the message of the last heartbeat of a run of that name.
func (s *Sidecar) Said(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, run := range s.runs {
		if run.Name == name {
			return run.Message
		}
	}
	return ""
}

// Freeze makes the watch say nothing more, or speak again.
func (s *Sidecar) Freeze(frozen bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frozen = frozen
	s.tell()
}

// Refuse makes the next calls fail, one each: unary ones, and State.Watch.
func (s *Sidecar) Refuse(refusals ...error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusals = append(s.refusals, refusals...)
}

// Calls is how often a method was called.
func (s *Sidecar) Calls(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[method]
}

// Metadata is what came with the last unary call.
func (s *Sidecar) Metadata() metadata.MD {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.metadata
}

// Value is what is stored under a key.
func (s *Sidecar) Value(key string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.entries[key].GetValue())
}

// Seen is a copy of a run.
func (s *Sidecar) Seen(id uint64) Run {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *s.runs[id]
}

// NewRun makes a run that was not delivered yet.
func (s *Sidecar) NewRun(kind pb.RunKind, name string, payload string) *Run {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nextID++
	run := &Run{ID: s.nextID, Name: name, Kind: kind, Payload: []byte(payload)}
	s.runs[run.ID] = run
	return run
}

// Deliver delivers one attempt of a run in the term of the default group, and commits the state it answers with.
func (s *Sidecar) Deliver(ctx context.Context, run *Run) (*pb.ExecuteResponse, error) {
	answer, err := s.App.Execute(ctx, s.attempt(run))
	s.mu.Lock()
	defer s.mu.Unlock()
	accepted := run.live
	run.live = false
	for _, data := range [][]byte{answer.GetSucceeded().GetState(), answer.GetFailed().GetState()} {
		if accepted && data != nil {
			s.write(ownedKey(run), data, nil)
		}
	}
	return answer, err
}

// Execute delivers the first attempt of a new run of a schedule.
func (s *Sidecar) Execute(ctx context.Context, name, payload string) (*pb.ExecuteResponse, error) {
	return s.Deliver(ctx, s.NewRun(pb.RunKind_RUN_KIND_SCHEDULE, name, payload))
}

func (s *Sidecar) attempt(run *Run) *pb.ExecuteRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	run.Attempt++
	run.live, run.epoch = true, s.terms["default"].epoch
	request := &pb.ExecuteRequest{
		Context: s.context("default", run.epoch, true), RunId: run.ID, Kind: run.Kind, Name: run.Name,
		Attempt: run.Attempt, ScheduledAt: timestamppb.Now(), IdempotencyKey: run.Name, Payload: run.Payload,
		State: s.entries[ownedKey(run)].GetValue(), StateVersion: 1, Checkpoints: slices.Clone(run.Checkpoints),
		Metadata: &pb.ExecutionMetadata{RunCount: 7},
	}
	request.Context.EntityType, request.Context.EntityId = entityType(run), run.Name
	return request
}

func entityType(run *Run) string {
	if run.Kind == pb.RunKind_RUN_KIND_SINGLETON {
		return "singleton"
	}
	return "schedule"
}

func ownedKey(run *Run) string { return entityType(run) + "-state:" + run.Name }

func (s *Sidecar) context(group string, epoch uint64, leads bool) *pb.ClusterContext {
	return &pb.ClusterContext{Cluster: "test", RunnerId: "fake", Group: group, IsLeader: leads, Epoch: epoch}
}

// tell wakes whoever waits for a change; the lock is held.
func (s *Sidecar) tell() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *Sidecar) unary(
	ctx context.Context, request any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler,
) (any, error) {
	incoming, _ := metadata.FromIncomingContext(ctx)
	s.mu.Lock()
	s.calls[info.FullMethod]++
	s.metadata = incoming
	refusal := s.refusal()
	s.mu.Unlock()
	if err := cmp.Or(s.allowed(incoming), refusal); err != nil {
		return nil, err
	}
	return next(ctx, request)
}

func (s *Sidecar) refusal() (next error) {
	if len(s.refusals) > 0 {
		next, s.refusals = s.refusals[0], s.refusals[1:]
	}
	return next
}

func (s *Sidecar) stream(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	incoming, _ := metadata.FromIncomingContext(stream.Context())
	s.mu.Lock()
	s.calls[info.FullMethod]++
	var refusal error
	if info.FullMethod == pb.State_Watch_FullMethodName { // leadership is watched all the time
		refusal = s.refusal()
	}
	s.mu.Unlock()
	if err := cmp.Or(s.allowed(incoming), refusal); err != nil {
		return err
	}
	return next(server, stream)
}

func (s *Sidecar) allowed(incoming metadata.MD) error {
	if s.apiToken != "" && !slices.Equal(incoming.Get("baton-token"), []string{s.apiToken}) {
		return status.Error(codes.Unauthenticated, "baton-token is missing or wrong")
	}
	return nil
}
