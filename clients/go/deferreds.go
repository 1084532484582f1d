package baton

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	pb "github.com/baton-sidecar/baton/clients/go/batonv1"
)

const awaitTimeout = 30 * time.Second

// Deferreds makes and completes durable promises; works on any pod.
type Deferreds struct {
	connection *connection
	stub       pb.DeferredsClient
}

// Deferred is a promise: hand its token to whoever is to complete it, then [Await] it.
type Deferred struct {
	Token     string
	deferreds *Deferreds
}

// DeferredOption is [TTL].
type DeferredOption interface {
	create(*pb.DeferredsCreateRequest)
}

// Create makes the deferred of that name, or gives the same one again. Of a run: [Attempt.Deferred].
func (d *Deferreds) Create(ctx context.Context, name string, options ...DeferredOption) (Deferred, error) {
	return d.create(ctx, &pb.DeferredsCreateRequest{Name: name}, options)
}

func (d *Deferreds) create(
	ctx context.Context, request *pb.DeferredsCreateRequest, options []DeferredOption,
) (Deferred, error) {
	for _, option := range options {
		option.create(request)
	}
	answer, err := call(ctx, d.connection, d.stub.Create, request)
	return Deferred{answer.GetToken(), d}, err
}

// Of is the deferred of a token, to be awaited.
func (d *Deferreds) Of(token string) Deferred { return Deferred{token, d} }

// Complete completes a deferred with bytes, or anything that JSON can say. The first completion stands: another
// value is [ErrAlreadyExists].
func (d *Deferreds) Complete(ctx context.Context, token string, value any) (*pb.Deferred, error) {
	data, err := encode(value)
	if err != nil {
		return nil, fmt.Errorf("baton: deferred: %w", err)
	}
	request := &pb.DeferredsCompleteRequest{Token: token, Value: data}
	answer, err := call(ctx, d.connection, d.stub.Complete, request)
	return answer.GetDeferred(), err
}

// Fail completes a deferred with an error, for whoever awaits it.
func (d *Deferreds) Fail(ctx context.Context, token, message string) (*pb.Deferred, error) {
	answer, err := call(ctx, d.connection, d.stub.Fail, &pb.DeferredsFailRequest{Token: token, Error: message})
	return answer.GetDeferred(), err
}

// Get is the deferred as it is now.
func (d *Deferreds) Get(ctx context.Context, token string) (*pb.Deferred, error) {
	answer, err := call(ctx, d.connection, d.stub.Get, &pb.DeferredsGetRequest{Token: token})
	return answer.GetDeferred(), err
}

// Await waits for a deferred, however long that takes: its value, or [ErrDeferredFailed]. T is []byte, or anything
// that JSON can say.
func Await[T any](ctx context.Context, deferred Deferred) (T, error) {
	ended, err := deferred.deferreds.wait(ctx, deferred.Token)
	if err != nil {
		return *new(T), err
	}
	if ended.GetState() != pb.DeferredState_DEFERRED_STATE_COMPLETED {
		return *new(T), deferredFailed(cmp.Or(ended.GetError(), "expired"))
	}
	value, err := decode[T](ended.GetValue())
	if err != nil {
		return value, deferredFailed(fmt.Sprintf("its value is no %T", value))
	}
	return value, nil
}

func (d *Deferreds) wait(ctx context.Context, token string) (*pb.Deferred, error) {
	request := &pb.DeferredsAwaitRequest{Token: token, Timeout: durationpb.New(awaitTimeout)}
	for pauses := newWaits(100*time.Millisecond, 2*time.Second); ; {
		answer, err := callFor(ctx, d.connection, d.stub.Await, request, awaitTimeout+awaitTimeout/2)
		if err == nil {
			return answer.GetDeferred(), nil
		}
		switch {
		case errors.Is(err, ErrDeadlineExceeded): // still pending: nobody has to wait before asking again
			pauses = newWaits(100*time.Millisecond, 2*time.Second)
		case !isAway(err) || !sleep(ctx, pauses.next()):
			return nil, err
		}
	}
}

func deferredFailed(message string) error {
	return &Error{Kind: ErrDeferredFailed, Reason: ErrDeferredFailed.name, Message: message}
}
