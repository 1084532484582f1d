package baton

import (
	"context"
	"errors"
	"io"
	"iter"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	pb "github.com/baton-sidecar/baton/clients/go/batonv1"
)

const (
	tokenKey = "baton-token"
	traceKey = "traceparent"

	callTimeout = 10 * time.Second
)

// connection is the way to the sidecar: one channel, its token, deadlines and repeated questions. Every call has a
// deadline, and every failure is an [*Error] or tells of the caller's own context.
type connection struct {
	channel *grpc.ClientConn
	token   *tokenFile
}

// dial opens nothing yet: the channel connects by itself when it is used, and again whenever it breaks.
func dial(address string, token *tokenFile) (*connection, error) {
	channel, err := grpc.NewClient(address,
		grpc.WithTransportCredentials(insecure.NewCredentials()), // the sidecar is on this machine
		grpc.WithNoProxy(),
		grpc.WithDisableServiceConfig(),
		grpc.WithConnectParams(grpc.ConnectParams{ // trust lasts three seconds: come back quickly
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 2, Jitter: 0.2, MaxDelay: time.Second},
			MinConnectTimeout: time.Second,
		}))
	if err != nil {
		return nil, err
	}
	return &connection{channel, token}, nil
}

// outgoing adds the token, and the trace of the callback that this is asked below.
func (c *connection) outgoing(ctx context.Context) context.Context {
	if c.token != nil {
		ctx = metadata.AppendToOutgoingContext(ctx, tokenKey, c.token.current())
	}
	if scope, ok := scopeOf(ctx); ok && scope.traceparent != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, traceKey, scope.traceparent)
	}
	return ctx
}

type unary[Request, Response any] func(context.Context, Request, ...grpc.CallOption) (Response, error)

// call asks again while the sidecar is away, within [callTimeout]: asking twice must do no harm.
func call[Q, A any](ctx context.Context, c *connection, method unary[Q, A], request Q) (A, error) {
	return callFor(ctx, c, method, request, callTimeout)
}

// callOnce is for what must not be done twice without the caller's knowledge.
func callOnce[Q, A any](ctx context.Context, c *connection, method unary[Q, A], request Q) (A, error) {
	limited, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	answer, err := method(c.outgoing(limited), request)
	if err != nil {
		return answer, errorOf(ctx, err, namesRun(request))
	}
	return answer, nil
}

func callFor[Q, A any](
	ctx context.Context, c *connection, method unary[Q, A], request Q, timeout time.Duration,
) (A, error) {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for waits := newWaits(100*time.Millisecond, 2*time.Second); ; {
		answer, err := method(c.outgoing(limited), request)
		if err == nil {
			return answer, nil
		}
		err = errorOf(ctx, err, namesRun(request))
		var failed *Error
		if !isAway(err) || !errors.As(err, &failed) {
			return answer, err
		}
		if !sleep(limited, max(waits.next(), failed.RetryAfter)) {
			return answer, err
		}
	}
}

type opener[Q, A any] func(context.Context, Q, ...grpc.CallOption) (grpc.ServerStreamingClient[A], error)

// stream gives the messages of a stream until it breaks, which is its last error. It is not opened again here: only
// its reader knows where to go on.
func stream[Q, A any](ctx context.Context, c *connection, open opener[Q, A], request Q) iter.Seq2[*A, error] {
	return func(yield func(*A, error) bool) {
		living, cancel := context.WithCancel(ctx)
		defer cancel()
		messages, err := open(c.outgoing(living), request)
		if err != nil {
			yield(nil, errorOf(ctx, err, false))
			return
		}
		receive(ctx, messages, yield)
	}
}

// inPlace is a stream whose headers have come: nothing that happens from now on is missed. It is read once, and lives
// until then or until the context ends.
func inPlace[Q, A any](ctx context.Context, c *connection, open opener[Q, A], request Q) (iter.Seq2[*A, error], error) {
	living, cancel := context.WithCancel(ctx)
	messages, err := open(c.outgoing(living), request)
	if err == nil {
		late := time.AfterFunc(callTimeout, cancel)
		_, err = messages.Header() // no header and no error: the stream has ended, and reading it says why
		if !late.Stop() {
			cancel()
			return nil, &Error{Kind: ErrDeadlineExceeded, Reason: ErrDeadlineExceeded.name, Message: "no headers in time"}
		}
	}
	if err != nil {
		cancel()
		return nil, errorOf(ctx, err, false)
	}
	return func(yield func(*A, error) bool) {
		defer cancel()
		receive(ctx, messages, yield)
	}, nil
}

func receive[A any](ctx context.Context, messages grpc.ServerStreamingClient[A], yield func(*A, error) bool) {
	for {
		message, err := messages.Recv()
		switch {
		case errors.Is(err, io.EOF):
			yield(nil, &Error{Kind: ErrUnavailable, Reason: ErrUnavailable.name, Message: "the sidecar ended the stream"})
			return
		case err != nil:
			yield(nil, errorOf(ctx, err, false))
			return
		case !yield(message, nil):
			return
		}
	}
}

// paged gives the items of a list, one page after the other.
func paged[T any](page func(token string) (items []T, next string, err error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for token := ""; ; {
			items, next, err := page(token)
			if err != nil {
				yield(*new(T), err)
				return
			}
			for _, item := range items {
				if !yield(item, nil) {
					return
				}
			}
			if next == "" {
				return
			}
			token = next
		}
	}
}

func collected[T any](items iter.Seq2[T, error]) ([]T, error) {
	var found []T
	for item, err := range items {
		if err != nil {
			return nil, err
		}
		found = append(found, item)
	}
	return found, nil
}

func namesRun(request any) bool {
	named, ok := request.(interface{ GetRun() *pb.RunRef })
	return ok && named.GetRun() != nil
}

// waits are pauses that double up to the longest, each shortened by up to half at random.
type waits struct{ following, longest time.Duration }

func newWaits(first, longest time.Duration) *waits { return &waits{first, longest} }

func (w *waits) next() time.Duration {
	wait := w.following
	w.following = min(2*wait, w.longest)
	return wait/2 + rand.N(wait/2)
}

// sleep tells whether the time has passed; false: it would pass the context's end, or the context has ended.
func sleep(ctx context.Context, pause time.Duration) bool {
	if end, ok := ctx.Deadline(); ok && time.Until(end) <= pause {
		return false
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
