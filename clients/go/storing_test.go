package baton_test

import (
	"context"
	"errors"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	baton "github.com/baton-sidecar/baton/clients/go"
	pb "github.com/baton-sidecar/baton/clients/go/batonv1"
)

func one(context.Context) (int, error) { return 1, nil }

// Steps and heartbeats of a run that came by the stream travel over it, with the errors of the calls.
func TestStepsTravelOverTheStream(t *testing.T) {
	outcomes := make(chan error, 10)
	_, sidecar := beside(t, attach, func(app *baton.App) {
		app.Schedule("order", func(ctx context.Context, attempt *baton.Attempt) (any, error) {
			for _, step := range []string{"a", "b", "c"} {
				_, err := baton.Step(ctx, attempt, step, one)
				outcomes <- err
			}
			return nil, attempt.Heartbeat(ctx, baton.Progress(1), baton.Message("done"))
		})
	})
	sidecar.Refuse(
		status.Error(codes.AlreadyExists, "another value"),
		status.Error(codes.Unavailable, "the database is away"), // waited out
	)
	run := sidecar.NewRun(scheduled, "order", "")
	must[*pb.ExecuteResponse](t)(sidecar.Deliver(t.Context(), run))
	var failed *baton.Error
	if err := <-outcomes; !errors.As(err, &failed) || failed.Kind != baton.ErrAlreadyExists || string(failed.Existing) != "first" {
		t.Errorf("got %#v", err)
	}
	for range 2 {
		if err := <-outcomes; err != nil {
			t.Error(err)
		}
	}
	if seen := sidecar.Seen(run.ID); seen.Progress != 1 || seen.Message != "done" {
		t.Errorf("run %+v", seen)
	}
	for _, method := range []string{"Checkpoint", "Heartbeat"} {
		if calls := sidecar.Calls("/baton.v1.Runs/" + method); calls != 0 {
			t.Errorf("%d calls of %s", calls, method)
		}
	}
}

// A step that waits for its answer when the stream breaks has failed; the sidecar may have stored it.
func TestPendingStepsFailWithTheStream(t *testing.T) {
	failed := make(chan error, 2)
	_, sidecar := beside(t, attach, func(app *baton.App) {
		app.Schedule("order", func(ctx context.Context, attempt *baton.Attempt) (any, error) {
			late := context.WithoutCancel(ctx)
			_, err := baton.Step(late, attempt, "a", one)
			failed <- err
			failed <- attempt.Heartbeat(late)
			return nil, err
		})
	})
	sidecar.Silence()
	process := sidecar.Attached(t, 1)[0]
	go func() { _, _ = sidecar.Execute(context.Background(), "order", "") }()
	eventually(t, "the step was sent", func() bool { return sidecar.Calls("stored") > 0 })
	process.Break(status.Error(codes.Unavailable, "the sidecar stops"))
	for range 2 {
		if err := <-failed; !errors.Is(err, baton.ErrUnavailable) || !baton.Retryable(err) {
			t.Errorf("got %v", err)
		}
	}
}
