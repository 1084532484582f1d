package baton

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Kind is what an error is about; test for one with [errors.Is].
type Kind struct {
	name, text string
	retryable  bool
	parent     *Kind
}

// Every kind of error of this package. Errors of the sidecar are an [*Error] of one of them.
var (
	// ErrUnavailable: the sidecar or its Postgres is away. Retryable.
	ErrUnavailable = &Kind{name: "Unavailable", text: "the sidecar is away", retryable: true}
	// ErrDeadlineExceeded: no answer in time; it may have happened. Retryable.
	ErrDeadlineExceeded = &Kind{name: "DeadlineExceeded", text: "no answer in time", retryable: true}
	// ErrNotFound: what was named does not exist.
	ErrNotFound = &Kind{name: "NotFound", text: "not found"}
	// ErrAlreadyExists: there is one, and it differs.
	ErrAlreadyExists = &Kind{name: "AlreadyExists", text: "already exists"}
	// ErrConflict: a lost compare-and-set. Read again, then decide anew.
	ErrConflict = &Kind{name: "Conflict", text: "another version"}
	// ErrFailedPrecondition: the thing is in no state for this call.
	ErrFailedPrecondition = &Kind{name: "FailedPrecondition", text: "failed precondition"}
	// ErrFenced: this run's attempt or term is over. Stop the work. It is an ErrFailedPrecondition too.
	ErrFenced = &Kind{name: "Fenced", text: "fenced", parent: ErrFailedPrecondition}
	// ErrInvalidArgument: [Error.Violations] names each wrong field.
	ErrInvalidArgument = &Kind{name: "InvalidArgument", text: "invalid argument"}
	// ErrOutOfRange: a watch asked for changes that are no longer known. Begin again.
	ErrOutOfRange = &Kind{name: "OutOfRange", text: "out of range"}
	// ErrLimitExceeded: a documented limit.
	ErrLimitExceeded = &Kind{name: "LimitExceeded", text: "limit exceeded"}
	// ErrUnauthenticated: the token is missing or wrong.
	ErrUnauthenticated = &Kind{name: "Unauthenticated", text: "unauthenticated"}
	// ErrStateLoadFailed: stored state could not be read. Retryable.
	ErrStateLoadFailed = &Kind{name: "StateLoadFailed", text: "state could not be read", retryable: true}
	// ErrStatePersistFailed: state could not be written; nothing was acknowledged. Retryable.
	ErrStatePersistFailed = &Kind{name: "StatePersistFailed", text: "state could not be written", retryable: true}
	// ErrSchemaDecodeFailed: stored bytes do not fit the declared schema.
	ErrSchemaDecodeFailed = &Kind{name: "SchemaDecodeFailed", text: "state does not fit its schema"}
	// ErrHeartbeatFailed: a heartbeat could not be written. Retryable.
	ErrHeartbeatFailed = &Kind{name: "HeartbeatFailed", text: "heartbeat failed", retryable: true}
	// ErrLeaderHandoffFailed: leadership could not be taken or given up as asked. Retryable.
	ErrLeaderHandoffFailed = &Kind{name: "LeaderHandoffFailed", text: "hand-over failed", retryable: true}
	// ErrDeferredFailed: what was awaited was failed, or has expired.
	ErrDeferredFailed = &Kind{name: "DeferredFailed", text: "deferred failed"}
	// ErrClusterContextRequired: called outside a handler or hook.
	ErrClusterContextRequired = &Kind{name: "ClusterContextRequired",
		text: "no cluster context: call this with the context of a handler or a hook"}
	// ErrOther: a status that the contract does not promise; [Error.Code] says which.
	ErrOther = &Kind{name: "Other", text: "the call failed"}
)

func (k *Kind) Error() string { return "baton: " + k.text }

// Unwrap makes a kind match the wider one it belongs to.
func (k *Kind) Unwrap() error {
	if k.parent == nil {
		return nil
	}
	return k.parent
}

// Violation names one wrong field of a request.
type Violation struct{ Field, Problem string }

// Error is a failed call to the sidecar.
type Error struct {
	Kind    *Kind
	Code    codes.Code
	Message string
	// Reason is the typed reason that the sidecar gave, else the name of the kind.
	Reason string
	// RetryAfter is how long the sidecar asks to be left alone; 0: it did not say.
	RetryAfter time.Duration
	// Violations names each wrong field, with ErrInvalidArgument.
	Violations []Violation
	// Existing is what stands already, with ErrAlreadyExists; nil if it is not known, or not small.
	Existing []byte
}

func (e *Error) Error() string { return fmt.Sprintf("baton: %s: %s", e.Reason, e.Message) }

// Unwrap gives the kind, for [errors.Is].
func (e *Error) Unwrap() error { return e.Kind }

// Retryable tells whether asking again may help.
func (e *Error) Retryable() bool { return e.Kind.retryable }

// Retryable tells whether an error of this package is one where asking again may help.
func Retryable(err error) bool {
	var kind *Kind
	return errors.As(err, &kind) && kind.retryable
}

// isAway tells whether the sidecar, or its Postgres, was away; of that there are typed kinds too, for state.
func isAway(err error) bool {
	var failed *Error
	return errors.As(err, &failed) && (failed.Kind == ErrUnavailable || failed.Code == codes.Unavailable)
}

var kindByCode = map[codes.Code]*Kind{
	codes.Unavailable:        ErrUnavailable,
	codes.DeadlineExceeded:   ErrDeadlineExceeded,
	codes.NotFound:           ErrNotFound,
	codes.AlreadyExists:      ErrAlreadyExists,
	codes.Aborted:            ErrConflict,
	codes.FailedPrecondition: ErrFailedPrecondition,
	codes.InvalidArgument:    ErrInvalidArgument,
	codes.OutOfRange:         ErrOutOfRange,
	codes.ResourceExhausted:  ErrLimitExceeded,
	codes.Unauthenticated:    ErrUnauthenticated,
}

var kindByReason = map[string]*Kind{
	ErrStateLoadFailed.name:     ErrStateLoadFailed,
	ErrStatePersistFailed.name:  ErrStatePersistFailed,
	ErrSchemaDecodeFailed.name:  ErrSchemaDecodeFailed,
	ErrHeartbeatFailed.name:     ErrHeartbeatFailed,
	ErrLeaderHandoffFailed.name: ErrLeaderHandoffFailed,
	ErrFenced.name:              ErrFenced,
}

// errorOf makes the typed error of a failed call. Whoever cancelled the call is told so in the words of its context.
func errorOf(ctx context.Context, err error, onBehalfOfRun bool) error {
	if ctx.Err() != nil {
		return fmt.Errorf("baton: call given up: %w", context.Cause(ctx))
	}
	answer := status.Convert(err)
	failed := &Error{Code: answer.Code(), Message: answer.Message()}
	for _, detail := range answer.Details() {
		failed.take(detail)
	}
	failed.Kind = kindOf(failed.Reason, failed.Code, onBehalfOfRun)
	if failed.Reason == "" {
		failed.Reason = failed.Kind.name
	}
	return failed
}

func (e *Error) take(detail any) {
	switch detail := detail.(type) {
	case *errdetails.ErrorInfo:
		e.Reason = detail.GetReason()
		if existing, ok := detail.GetMetadata()["existing"]; ok {
			e.Existing, _ = base64.StdEncoding.DecodeString(existing) // damaged: not known
		}
	case *errdetails.RetryInfo:
		e.RetryAfter = detail.GetRetryDelay().AsDuration()
	case *errdetails.BadRequest:
		for _, violation := range detail.GetFieldViolations() {
			e.Violations = append(e.Violations, Violation{violation.GetField(), violation.GetDescription()})
		}
	}
}

func kindOf(reason string, code codes.Code, onBehalfOfRun bool) *Kind {
	if kind := kindByReason[reason]; kind != nil {
		return kind
	}
	kind := kindByCode[code]
	switch {
	case kind == nil:
		return ErrOther
	case kind == ErrFailedPrecondition && onBehalfOfRun:
		return ErrFenced // a refused run reference means nothing else
	}
	return kind
}
