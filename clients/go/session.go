package baton

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "github.com/baton-sidecar/baton/clients/go/batonv1"
)

var errNoWelcome = errors.New("baton: the sidecar did not answer hello in time")

// session is one stream to the sidecar, from hello to its end.
//
// Guarantees: changes of leadership take effect in the order in which they came; a run is cancelled when the sidecar
// says so, at its deadline, when its term ends and when the stream ends; and each run is answered at most once.
type session struct {
	*executor
	stream grpc.BidiStreamingClient[pb.AttachRequest, pb.AttachResponse]
	out    *outbox
	// living ends with the stream.
	living  context.Context
	cancel  context.CancelCauseFunc
	welcome *pb.Welcome // written by the reader before any run

	mu     sync.Mutex
	runs   map[runKey]*openRun
	number uint64
	stores map[uint64]chan<- *pb.Stored
}

type runKey struct {
	id      uint64
	attempt uint32
}

// openRun is an attempt that was not answered yet.
type openRun struct {
	cancel context.CancelCauseFunc
	// cancelled: the sidecar accepts no answer.
	cancelled bool
}

func newSession(executor *executor) *session {
	living, cancel := context.WithCancelCause(context.Background())
	return &session{
		executor: executor, out: newOutbox(), living: living, cancel: cancel,
		runs: make(map[runKey]*openRun), stores: make(map[uint64]chan<- *pb.Stored),
	}
}

// run attaches and works until the stream ends. It tells whether the sidecar accepted the process, and why it ended.
func (s *session) run(hello *pb.Hello) (welcomed bool, err error) {
	defer s.cancel(Cancelled{Reason: CancelDetached})
	s.stream, err = pb.NewAppStreamClient(s.sidecar.connection.channel).Attach(
		s.sidecar.connection.outgoing(s.living), grpc.MaxCallRecvMsgSize(receivedBytesMax))
	if err != nil {
		return false, err
	}
	late := time.AfterFunc(callTimeout, func() { s.cancel(errNoWelcome) })
	defer late.Stop()
	s.out.send(func(m *pb.AttachRequest) { m.Hello = hello })
	go s.write()
	for {
		message, err := s.stream.Recv()
		readAt := s.leading.clock() // first: what was held up must not stretch trust
		if err != nil {
			s.leading.detach()
			return s.welcome != nil, s.why(err)
		}
		if message.GetWelcome() != nil {
			late.Stop()
		}
		s.receive(message, readAt)
	}
}

const receivedBytesMax = 16 << 20

// why is the reason of the end: what this side did, if it did, else what the sidecar said.
func (s *session) why(err error) error {
	switch {
	case errors.Is(context.Cause(s.living), errNoWelcome):
		return errNoWelcome
	case errors.Is(err, io.EOF):
		return status.Error(codes.Unavailable, "the sidecar ended the stream")
	}
	return err
}

func (s *session) write() {
	if err := s.out.write(s.stream.Send, s.living.Done()); err == nil {
		_ = s.stream.CloseSend() // it never fails
	}
	// After an error the reader learns the reason.
}

// finish sends what is queued and ends the stream; the context bounds the wait for the sidecar.
func (s *session) finish(ctx context.Context) {
	s.out.close()
	select {
	case <-s.living.Done():
	case <-ctx.Done():
		s.cancel(Cancelled{Reason: CancelHandover})
	}
}

// receive handles the fields of a message in the order of the contract.
func (s *session) receive(message *pb.AttachResponse, readAt time.Duration) {
	if welcome := message.GetWelcome(); welcome != nil {
		s.welcome = welcome
		s.sidecar.learn(welcome.GetCluster())
		s.out.limit(welcome.GetFrameEntriesMax(), welcome.GetMessageBytesMax())
		s.log.Info("attached", "cluster", welcome.GetCluster(), "runner", welcome.GetRunnerId())
	}
	for _, change := range message.GetLeadership() {
		s.lead(change, readAt)
	}
	for _, leader := range message.GetTrust() {
		s.leading.hear(leader, readAt)
	}
	for _, cancel := range message.GetCancels() {
		s.cancelRun(runKey{cancel.GetRunId(), cancel.GetAttempt()}, cancel.GetReason())
	}
	for _, stored := range message.GetStored() {
		s.resolve(stored)
	}
	for _, request := range message.GetRuns() {
		s.start(request)
	}
	if ping := message.GetPing(); ping != nil {
		s.out.send(func(m *pb.AttachRequest) { m.Pong = &pb.Pong{Number: ping.GetNumber()} })
	}
}

// lead begins or ends a term. The answer follows when the hooks are through; nothing here waits.
func (s *session) lead(change *pb.LeadershipChange, readAt time.Duration) {
	switch change := change.GetChange().(type) {
	case *pb.LeadershipChange_Become:
		request := change.Become
		cluster := clusterOf(s.complete(request.GetContext()))
		ctx := withScope(s.living, scope{cluster: cluster, sidecar: s.sidecar})
		go func() {
			err := s.leading.become(ctx, cluster, request, readAt)
			s.answerLeadership(pb.LeadershipEvent_LEADERSHIP_EVENT_BECOME, request.GetContext(), s.becomeStatus(cluster, err))
		}()
	case *pb.LeadershipChange_Lose:
		request := change.Lose
		cluster := clusterOf(s.complete(request.GetContext()))
		ctx := withScope(s.living, scope{cluster: cluster, sidecar: s.sidecar})
		ending := s.leading.beginLoss(ctx, cluster, request.GetReason(), cluster.Epoch)
		go func() {
			err := ending.wait(ctx)
			s.answerLeadership(pb.LeadershipEvent_LEADERSHIP_EVENT_LOSE, request.GetContext(), loseStatus(err))
		}()
	}
}

func (s *session) answerLeadership(event pb.LeadershipEvent, about *pb.ClusterContext, err error) {
	answer := &pb.LeadershipAnswer{Event: event, Group: about.GetGroup(), Epoch: about.GetEpoch(), Error: callStatus(err)}
	s.out.send(func(m *pb.AttachRequest) { m.Leadership = append(m.Leadership, answer) })
}

// complete adds what the sidecar says only once, in its welcome.
func (s *session) complete(given *pb.ClusterContext) *pb.ClusterContext {
	if given == nil {
		given = &pb.ClusterContext{}
	}
	given.Cluster, given.RunnerId = s.welcome.GetCluster(), s.welcome.GetRunnerId()
	return given
}

// start executes a run beside the reader, and queues its answer.
func (s *session) start(request *pb.ExecuteRequest) {
	request.Context = s.complete(request.GetContext())
	key := runKey{request.GetRunId(), request.GetAttempt()}
	ctx, cancel := context.WithCancelCause(s.living)
	s.mu.Lock()
	_, delivered := s.runs[key]
	if !delivered {
		s.runs[key] = &openRun{cancel: cancel}
	}
	s.mu.Unlock()
	if delivered { // a repeated message: the attempt is answered once
		cancel(nil)
		return
	}
	s.out.begin()
	s.running.add()
	ctx = withScope(ctx, scope{
		cluster: clusterOf(request.GetContext()), sidecar: s.sidecar, traceparent: request.GetTraceparent(),
	})
	go func() {
		defer s.running.done()
		defer cancel(nil)
		limited, release := untilDeadline(ctx, request)
		defer release()
		response, err := s.execute(limited, request, s)
		s.answer(key, response, err)
	}()
}

func untilDeadline(ctx context.Context, request *pb.ExecuteRequest) (context.Context, context.CancelFunc) {
	if request.GetDeadline() == nil {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, request.GetDeadline().AsTime())
}

// answer queues the answer of an attempt, unless the sidecar has cancelled it.
func (s *session) answer(key runKey, response *pb.ExecuteResponse, err error) {
	s.mu.Lock()
	run := s.runs[key]
	delete(s.runs, key)
	s.mu.Unlock()
	if run.cancelled {
		s.out.finish(nil)
		return
	}
	answer := &pb.RunAnswer{RunId: key.id, Attempt: key.attempt}
	if err != nil {
		answer.Answer = &pb.RunAnswer_Status{Status: callStatus(err)}
	} else {
		answer.Answer = &pb.RunAnswer_Response{Response: response}
	}
	if size := proto.Size(answer); !s.out.fits(size) {
		answer.Answer = &pb.RunAnswer_Response{Response: tooLarge(size)}
	}
	s.out.finish(&entry{entrySize(answer), func(m *pb.AttachRequest) { m.Answers = append(m.Answers, answer) }})
}

// tooLarge is the outcome of a run whose answer the sidecar would not read.
func tooLarge(size int) *pb.ExecuteResponse {
	return &pb.ExecuteResponse{Outcome: &pb.ExecuteResponse_Failed{Failed: &pb.Failed{
		Message: fmt.Sprintf("the answer has %d bytes, more than the sidecar reads in one message", size),
		Code:    "TOO_LARGE",
	}}}
}

func (s *session) cancelRun(key runKey, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if run := s.runs[key]; run != nil {
		run.cancelled = true
		run.cancel(fmt.Errorf("baton: the sidecar cancelled the run: %s: %w", reason, context.Canceled))
	}
}

// cancelAll cancels every attempt because the time to drain is over. They are answered, so that no retry is used.
func (s *session) cancelAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, run := range s.runs {
		run.cancel(Cancelled{Reason: CancelHandover})
	}
}

// entrySize is the size of an entry in its message, at most.
func entrySize(message proto.Message) int { return proto.Size(message) + 8 }

// callStatus is a gRPC status as a stream carries it; nil is OK.
func callStatus(err error) *pb.CallStatus {
	if err == nil {
		return nil
	}
	given := status.Convert(err)
	return &pb.CallStatus{Code: uint32(given.Code()), Message: cut(text(given.Message()))}
}
