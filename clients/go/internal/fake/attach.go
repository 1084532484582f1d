package fake

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	pb "github.com/baton-sidecar/baton/clients/go/batonv1"
)

// attachTimeout is how long a test waits for a process; nothing is that slow.
const attachTimeout = time.Minute

// Process is an attached app process. It can be called as an app that serves can be.
type Process struct {
	Hello   *pb.Hello
	sidecar *Sidecar
	stream  grpc.BidiStreamingServer[pb.AttachRequest, pb.AttachResponse]
	over    chan struct{}
	kick    chan error

	sending sync.Mutex

	mu         sync.Mutex
	capacity   *uint32
	frames     []int
	pongs      chan uint64
	answers    map[runKey]chan *pb.RunAnswer
	unexpected []*pb.RunAnswer
	leadership map[leadershipKey]chan *pb.LeadershipAnswer
}

type runKey struct {
	id      uint64
	attempt uint32
}

type leadershipKey struct {
	event pb.LeadershipEvent
	group string
	epoch uint64
}

type appStream struct {
	pb.UnimplementedAppStreamServer
	*Sidecar
}

// WithoutAttach makes it a sidecar of before the stream.
func WithoutAttach() Option { return func(s *Sidecar) { s.old = true } }

// Limits are what welcome says about messages.
func Limits(entries, bytes uint32) Option {
	return func(s *Sidecar) { s.welcome.FrameEntriesMax, s.welcome.MessageBytesMax = entries, bytes }
}

// RefuseAttach makes the next streams end with these errors, one each.
func (s *Sidecar) RefuseAttach(refusals ...error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attachRefusals = append(s.attachRefusals, refusals...)
}

// Attached waits until that many processes are attached, and gives them; the first is the primary.
func (s *Sidecar) Attached(t testing.TB, count int) []*Process {
	t.Helper()
	late := time.After(attachTimeout)
	for {
		s.mu.Lock()
		processes, changed := slices.Clone(s.processes), s.changed
		s.mu.Unlock()
		if len(processes) == count {
			return processes
		}
		select {
		case <-changed:
		case <-late:
			t.Fatalf("%d processes are attached, not %d", len(processes), count)
		}
	}
}

// Attach is the sidecar's side of a stream.
func (s *appStream) Attach(stream grpc.BidiStreamingServer[pb.AttachRequest, pb.AttachResponse]) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	if first.GetHello() == nil {
		return status.Error(codes.InvalidArgument, "hello is missing")
	}
	if err := s.attachRefusal(); err != nil {
		return err
	}
	p := &Process{
		Hello: first.GetHello(), sidecar: s.Sidecar, stream: stream, over: make(chan struct{}), kick: make(chan error, 1),
		pongs:   make(chan uint64, 100),
		answers: make(map[runKey]chan *pb.RunAnswer), leadership: make(map[leadershipKey]chan *pb.LeadershipAnswer),
	}
	defer close(p.over)
	if err := p.Send(&pb.AttachResponse{Welcome: s.welcome}); err != nil {
		return err
	}
	s.enlist(p)
	defer s.dismiss(p)
	go p.renew()
	received := make(chan error, 1)
	go func() { received <- p.receive(first) }()
	select {
	case err := <-received:
		return err
	case err := <-p.kick:
		return err
	}
}

func (s *Sidecar) attachRefusal() (next error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.attachRefusals) > 0 {
		next, s.attachRefusals = s.attachRefusals[0], s.attachRefusals[1:]
	}
	return next
}

func (s *Sidecar) enlist(p *Process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.processes = append(s.processes, p)
	s.App = s.processes[0]
	s.startDue()
	s.tell()
}

// dismiss ends what belonged to a process: its terms, if it was the primary, and its runs.
func (s *Sidecar) dismiss(p *Process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.processes[0] == p {
		for _, term := range s.terms {
			term.leads = false
		}
	}
	s.processes = slices.DeleteFunc(s.processes, func(other *Process) bool { return other == p })
	if len(s.processes) > 0 {
		s.App = s.processes[0]
	}
	s.tell()
}

// Break ends the stream with an error.
func (p *Process) Break(err error) { p.kick <- err }

// Over is closed when the stream has ended.
func (p *Process) Over() <-chan struct{} { return p.over }

// Send sends a message of any kind.
func (p *Process) Send(message *pb.AttachResponse) error {
	p.sending.Lock()
	defer p.sending.Unlock()
	return p.stream.Send(message)
}

// Capacity is what the process said last.
func (p *Process) Capacity() uint32 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.capacity != nil {
		return *p.capacity
	}
	return p.Hello.GetCapacity()
}

// Frames is the number of entries of each message that had any.
func (p *Process) Frames() []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.frames)
}

// Unexpected is the answers that nobody waited for.
func (p *Process) Unexpected() []*pb.RunAnswer {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.unexpected)
}

// Ping sends a ping and waits for its pong.
func (p *Process) Ping(ctx context.Context, number uint64) error {
	if err := p.Send(&pb.AttachResponse{Ping: &pb.Ping{Number: number}}); err != nil {
		return err
	}
	select {
	case got := <-p.pongs:
		if got != number {
			return errors.New("another pong came")
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-p.over:
		return errors.New("the stream is over")
	}
}

func (p *Process) receive(first *pb.AttachRequest) error {
	for message, err := first, error(nil); ; message, err = p.stream.Recv() {
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		p.take(message)
	}
}

// take handles the fields in the order of the contract.
func (p *Process) take(message *pb.AttachRequest) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if message.Capacity != nil {
		p.capacity = message.Capacity
	}
	if message.Pong != nil {
		p.pongs <- message.Pong.GetNumber()
	}
	for _, answer := range message.GetLeadership() {
		if waiting := p.leadership[leadershipKey{answer.GetEvent(), answer.GetGroup(), answer.GetEpoch()}]; waiting != nil {
			waiting <- answer
		}
	}
	if stored := p.sidecar.store(message); len(stored) > 0 {
		_ = p.Send(&pb.AttachResponse{Stored: stored})
	}
	for _, answer := range message.GetAnswers() {
		if waiting := p.answers[runKey{answer.GetRunId(), answer.GetAttempt()}]; waiting != nil {
			waiting <- answer
		} else {
			p.unexpected = append(p.unexpected, answer)
		}
	}
	if entries := len(message.GetAnswers()) + len(message.GetCheckpoints()) + len(message.GetHeartbeats()); entries > 0 {
		p.frames = append(p.frames, entries)
	}
}

// store answers checkpoints and heartbeats as the unary calls do.
func (s *Sidecar) store(message *pb.AttachRequest) (stored []*pb.Stored) {
	calls := &runs{Sidecar: s}
	for _, checkpoint := range message.GetCheckpoints() {
		_, err := calls.Checkpoint(context.Background(), &pb.RunsCheckpointRequest{
			Run: checkpoint.Run, Step: checkpoint.Step, Value: checkpoint.Value,
		})
		stored = append(stored, s.storedAnswer(checkpoint.GetNumber(), err))
	}
	for _, heartbeat := range message.GetHeartbeats() {
		_, err := calls.Heartbeat(context.Background(), &pb.RunsHeartbeatRequest{
			Run: heartbeat.Run, Progress: heartbeat.Progress, Message: heartbeat.Message,
		})
		stored = append(stored, s.storedAnswer(heartbeat.GetNumber(), err))
	}
	return slices.DeleteFunc(stored, func(answer *pb.Stored) bool { return answer == nil })
}

// storedAnswer is what is said about an entry: the next refusal, if there is one; nil if the fake says nothing.
func (s *Sidecar) storedAnswer(number uint64, err error) *pb.Stored {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls["stored"]++
	if s.silent {
		return nil
	}
	if refusal := s.refusal(); refusal != nil {
		err = refusal
	}
	answer := &pb.Stored{Number: number}
	if err != nil {
		given := status.Convert(err)
		answer.Error = &pb.CallStatus{Code: uint32(given.Code()), Message: given.Message()}
		if given.Code() == codes.AlreadyExists {
			answer.Existing = []byte("first")
		}
	}
	return answer
}

// Silence makes it answer no checkpoint and no heartbeat of a stream.
func (s *Sidecar) Silence() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.silent = true
}

// renew sends the trust of every term, as Leadership.Watch does.
func (p *Process) renew() {
	watch := &leadership{Sidecar: p.sidecar}
	for {
		p.sidecar.mu.Lock()
		var leaders []*pb.Leader
		for group := range p.sidecar.terms {
			if !p.sidecar.frozen && p.sidecar.App == p {
				leaders = append(leaders, watch.leader(group))
			}
		}
		changed := p.sidecar.changed
		p.sidecar.mu.Unlock()
		if len(leaders) > 0 && p.Send(&pb.AttachResponse{Trust: leaders}) != nil {
			return
		}
		select {
		case <-changed:
		case <-time.After(renewal):
		case <-p.over:
			return
		}
	}
}

func newWelcome() *pb.Welcome {
	return &pb.Welcome{
		Cluster: "test", RunnerId: "fake", HealthInterval: durationpb.New(time.Second),
		MessageBytesMax: 4 << 20, FrameEntriesMax: 512,
	}
}
