package baton

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/baton-sidecar/baton/clients/go/batonv1"
)

// Result is a success with a value, a new owned state and further jobs; all are committed together.
type Result struct {
	// Value is kept with the run: nil for none, bytes, or anything that JSON can say.
	Value any
	// State replaces the owned state: bytes, or anything that JSON can say. nil leaves it as it is.
	State any
	// Jobs are submitted with the outcome, at most 100.
	Jobs []Job
}

// Skip is returned by a handler that declines its run: no error, no retry.
type Skip struct{ Reason string }

func (s Skip) Error() string { return "skipped: " + s.Reason }

// Retry is returned by a handler whose attempt failed where another may do better.
type Retry struct {
	Message string
	// After is the earliest time from now for the next attempt; 0: the schedule's back-off.
	After time.Duration
	// Code is a short code of the app's own.
	Code string
	// State replaces the owned state although the attempt failed; nil leaves it as it is.
	State any
}

func (r Retry) Error() string { return r.Message }

// Fail is returned by a handler whose run has failed for good.
type Fail struct {
	Message string
	// Code is a short code of the app's own.
	Code string
	// State replaces the owned state although the run failed; nil leaves it as it is.
	State any
}

func (f Fail) Error() string { return f.Message }

// Snooze is returned by the handler of a job that is to be delivered again later. It uses no retry, and the slot is free
// meanwhile.
type Snooze struct {
	// After or Until: when it is delivered again. Until counts if both are set.
	After time.Duration
	Until time.Time
	// State replaces the state of the job's key; nil leaves it as it is.
	State any
}

func (s Snooze) Error() string {
	if !s.Until.IsZero() {
		return "snoozed until " + s.Until.Format(time.RFC3339)
	}
	return "snoozed for " + s.After.String()
}

const (
	codeBytesMax    = 255
	messageBytesMax = 4 << 10
)

// answered is what a handler's success becomes.
func answered(value any, jobs *Jobs) (*pb.ExecuteResponse, error) {
	result, ok := value.(Result)
	if !ok {
		result = Result{Value: value}
	}
	succeeded := &pb.Succeeded{}
	var err error
	if result.Value != nil {
		if succeeded.Result, err = encode(result.Value); err != nil {
			return nil, err
		}
	}
	if succeeded.State, err = optional(result.State); err != nil {
		return nil, err
	}
	if succeeded.Jobs, err = jobs.specs(result.Jobs); err != nil {
		return nil, err
	}
	return &pb.ExecuteResponse{Outcome: &pb.ExecuteResponse_Succeeded{Succeeded: succeeded}}, nil
}

// declared is the outcome that a handler chose by its error; nil: it chose none.
func declared(err error) (*pb.ExecuteResponse, error) {
	var skip Skip
	var retry Retry
	var fail Fail
	var snooze Snooze
	switch {
	case errors.As(err, &skip):
		skipped := &pb.Skipped{Reason: text(skip.Reason)}
		return &pb.ExecuteResponse{Outcome: &pb.ExecuteResponse_Skipped{Skipped: skipped}}, nil
	case errors.As(err, &retry):
		failed := &pb.Failed{Message: text(retry.Message), Code: text(retry.Code), Retryable: true}
		if retry.After > 0 {
			failed.RetryAfter = durationpb.New(retry.After)
		}
		return withState(failed, retry.State)
	case errors.As(err, &fail):
		return withState(&pb.Failed{Message: text(fail.Message), Code: text(fail.Code)}, fail.State)
	case errors.As(err, &snooze):
		return snooze.response()
	}
	return nil, nil
}

func (s Snooze) response() (*pb.ExecuteResponse, error) {
	snoozed := &pb.Snoozed{Until: &pb.Snoozed_After{After: durationpb.New(s.After)}}
	if !s.Until.IsZero() {
		snoozed.Until = &pb.Snoozed_At{At: timestamppb.New(s.Until)}
	}
	var err error
	snoozed.State, err = optional(s.State)
	return &pb.ExecuteResponse{Outcome: &pb.ExecuteResponse_Snoozed{Snoozed: snoozed}}, err
}

// unexpected is the outcome of any other error: its type and its text. The text may hold secrets; then it is hidden.
func unexpected(err error, hidden bool) *pb.ExecuteResponse {
	name := typeName(err)
	message := "unhandled " + name
	if !hidden {
		message = cut(text(said(err)))
	}
	failed := &pb.Failed{Message: message, Code: name[:min(len(name), codeBytesMax)], Retryable: true}
	return &pb.ExecuteResponse{Outcome: &pb.ExecuteResponse_Failed{Failed: failed}}
}

// said is the text of an error. The stack of a panic is for the log only.
func said(err error) string {
	var panicked panicked
	if errors.As(err, &panicked) {
		return fmt.Sprintf("panic: %v", panicked.value)
	}
	return err.Error()
}

func withState(failed *pb.Failed, state any) (*pb.ExecuteResponse, error) {
	var err error
	failed.State, err = optional(state)
	return &pb.ExecuteResponse{Outcome: &pb.ExecuteResponse_Failed{Failed: failed}}, err
}

// text is what can be sent: the output of a command, for one, may hold what is no UTF-8.
func text(given string) string { return strings.ToValidUTF8(given, "\uFFFD") }

// cut shortens a text to what is kept of it, at the end of a character.
func cut(given string) string {
	if len(given) <= messageBytesMax {
		return given
	}
	return strings.ToValidUTF8(given[:messageBytesMax], "")
}

// typeName is the type of an error below the text that fmt.Errorf put around it, or of ours the reason.
func typeName(err error) string {
	var failed *Error
	if errors.As(err, &failed) {
		return failed.Reason
	}
	name := reflect.TypeOf(err).String()
	if inner := errors.Unwrap(err); inner != nil && name == "*fmt.wrapError" {
		return typeName(inner)
	}
	return name
}

// panicked is what a handler or hook that panicked is taken to have returned.
type panicked struct {
	value any
	stack []byte
}

func (p panicked) Error() string { return fmt.Sprintf("panic: %v\n%s", p.value, p.stack) }
