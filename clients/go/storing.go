package baton

import (
	"context"
	"encoding/base64"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "github.com/baton-sidecar/baton/clients/go/batonv1"
)

var errDetached = &Error{
	Kind: ErrUnavailable, Code: codes.Unavailable, Reason: ErrUnavailable.name, Message: "the stream to the sidecar broke",
}

// Checkpoint stores a step over the stream, and fails as the call of that name does.
func (s *session) Checkpoint(
	ctx context.Context, request *pb.RunsCheckpointRequest, _ ...grpc.CallOption,
) (*pb.RunsCheckpointResponse, error) {
	checkpoint := &pb.StreamCheckpoint{Run: request.GetRun(), Step: request.GetStep(), Value: request.GetValue()}
	err := s.store(ctx, checkpoint, func(number uint64) func(*pb.AttachRequest) {
		checkpoint.Number = number
		return func(m *pb.AttachRequest) { m.Checkpoints = append(m.Checkpoints, checkpoint) }
	})
	return &pb.RunsCheckpointResponse{}, err
}

// Heartbeat reports a sign of life over the stream, and fails as the call of that name does.
func (s *session) Heartbeat(
	ctx context.Context, request *pb.RunsHeartbeatRequest, _ ...grpc.CallOption,
) (*pb.RunsHeartbeatResponse, error) {
	heartbeat := &pb.StreamHeartbeat{Run: request.GetRun(), Progress: request.Progress, Message: request.Message}
	err := s.store(ctx, heartbeat, func(number uint64) func(*pb.AttachRequest) {
		heartbeat.Number = number
		return func(m *pb.AttachRequest) { m.Heartbeats = append(m.Heartbeats, heartbeat) }
	})
	return &pb.RunsHeartbeatResponse{}, err
}

// store queues a message under a new number and waits for the answer to it.
func (s *session) store(ctx context.Context, message proto.Message, numbered func(uint64) func(*pb.AttachRequest)) error {
	if size := entrySize(message) + 8; !s.out.fits(size) {
		return status.Errorf(codes.ResourceExhausted, "%d bytes, more than the sidecar reads in one message", size)
	}
	stored := make(chan *pb.Stored, 1)
	s.mu.Lock()
	s.number++
	number := s.number
	s.stores[number] = stored
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.stores, number)
	}()
	into := numbered(number)
	s.out.put(entry{entrySize(message), into})
	select {
	case answer := <-stored:
		return storedStatus(answer)
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	case <-s.living.Done():
		return status.Error(codes.Unavailable, errDetached.Message)
	}
}

func (s *session) resolve(stored *pb.Stored) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if waiting := s.stores[stored.GetNumber()]; waiting != nil {
		waiting <- stored
		delete(s.stores, stored.GetNumber())
	}
}

// storedStatus is the answer to a checkpoint or heartbeat as the unary call would have given it.
func storedStatus(answer *pb.Stored) error {
	failed := answer.GetError()
	if failed == nil {
		return nil
	}
	given := status.New(codes.Code(failed.GetCode()), failed.GetMessage())
	if answer.Existing != nil {
		existing := base64.StdEncoding.EncodeToString(answer.GetExisting())
		info := &errdetails.ErrorInfo{Reason: ErrAlreadyExists.name, Domain: "baton", Metadata: map[string]string{"existing": existing}}
		if detailed, err := given.WithDetails(info); err == nil {
			given = detailed
		}
	}
	return given.Err()
}

// record stores something for an attempt: repeated while the sidecar's database is away, but not once the stream that
// the run came by has ended.
func record[Q, A any](ctx context.Context, a *Attempt, method unary[Q, A], request Q) error {
	if stream, ok := a.recorder.(*session); ok {
		attached, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer context.AfterFunc(stream.living, func() { cancel(errDetached) })()
		ctx = attached
	}
	_, err := call(ctx, a.sidecar.connection, method, request)
	return err
}
