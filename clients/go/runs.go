package baton

import (
	"context"
	"iter"

	pb "github.com/baton-sidecar/baton/clients/go/batonv1"
)

// Runs reads and steers the runs of the cluster; works on any pod.
type Runs struct {
	connection *connection
	stub       pb.RunsClient
}

// RunFilter chooses runs; its zero value chooses all.
type RunFilter struct {
	Name    string
	Outcome pb.Outcome
	State   pb.RunState
}

// Get is one run, with its history and result.
func (r *Runs) Get(ctx context.Context, id uint64) (*pb.Run, error) {
	answer, err := call(ctx, r.connection, r.stub.Get, &pb.RunsGetRequest{RunId: id})
	return answer.GetRun(), err
}

// List is runs, newest first, without history and result.
func (r *Runs) List(ctx context.Context, filter RunFilter) iter.Seq2[*pb.Run, error] {
	return paged(func(token string) ([]*pb.Run, string, error) {
		answer, err := call(ctx, r.connection, r.stub.List, &pb.RunsListRequest{
			Name: filter.Name, Outcome: filter.Outcome, State: filter.State, PageToken: token,
		})
		return answer.GetRuns(), answer.GetNextPageToken(), err
	})
}

// Cancel asks for a run to be ended; the note is kept in its history.
func (r *Runs) Cancel(ctx context.Context, id uint64, note string) (*pb.Run, error) {
	answer, err := callOnce(ctx, r.connection, r.stub.Cancel, &pb.RunsCancelRequest{RunId: id, Note: note})
	return answer.GetRun(), err
}

// Retry gives a failed run a new life.
func (r *Runs) Retry(ctx context.Context, id uint64) (*pb.Run, error) {
	answer, err := callOnce(ctx, r.connection, r.stub.Retry, &pb.RunsRetryRequest{RunId: id})
	return answer.GetRun(), err
}

// Checkpoint stores the result of a step of the live attempt; [Step] does it for you.
func (r *Runs) Checkpoint(ctx context.Context, run *pb.RunRef, step string, value []byte) error {
	request := &pb.RunsCheckpointRequest{Run: run, Step: step, Value: value}
	_, err := call(ctx, r.connection, r.stub.Checkpoint, request)
	return err
}

// HeartbeatOption is [Progress] or [Message].
type HeartbeatOption interface {
	heartbeat(*pb.RunsHeartbeatRequest)
}

// Progress is how far a run is, from 0 to 1.
type Progress float64

// Message is what a run is doing, for a person.
type Message string

func (p Progress) heartbeat(request *pb.RunsHeartbeatRequest) { request.Progress = (*float64)(&p) }
func (m Message) heartbeat(request *pb.RunsHeartbeatRequest)  { request.Message = (*string)(&m) }

// Heartbeat reports that the live attempt is alive; what is not given stays as it was.
func (r *Runs) Heartbeat(ctx context.Context, run *pb.RunRef, options ...HeartbeatOption) error {
	_, err := call(ctx, r.connection, r.stub.Heartbeat, heartbeatOf(run, options))
	return err
}

func heartbeatOf(run *pb.RunRef, options []HeartbeatOption) *pb.RunsHeartbeatRequest {
	request := &pb.RunsHeartbeatRequest{Run: run}
	for _, option := range options {
		option.heartbeat(request)
	}
	return request
}
