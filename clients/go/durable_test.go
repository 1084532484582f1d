package baton_test

import (
	"context"
	"errors"
	"testing"
	"time"

	baton "github.com/baton-sidecar/baton/clients/go"
	pb "github.com/baton-sidecar/baton/clients/go/batonv1"
)

type charge struct {
	Amount int `json:"amount"`
	secret int // not in JSON: a step that ran must not return more than one that was remembered
}

// G5: a later attempt gets its checkpoints and skips what was done, whatever the kind.
func TestStoredStepsAreNotRunAgain(t *testing.T) { eachWay(t, testStoredStepsAreNotRunAgain) }

func testStoredStepsAreNotRunAgain(t *testing.T, way way) {
	done := make(events, 10)
	_, sidecar := beside(t, way, func(app *baton.App) {
		app.Schedule("order", func(ctx context.Context, attempt *baton.Attempt) (any, error) {
			paid, err := baton.Step(ctx, attempt, "charge", func(context.Context) (charge, error) {
				done.add("charge")
				return charge{7, 8}, nil
			})
			if err != nil || paid != (charge{Amount: 7}) {
				t.Errorf("charge %v, %v", paid, err)
			}
			box, err := baton.Step(ctx, attempt, "pack", func(context.Context) ([]byte, error) {
				done.add("pack")
				return []byte("\x00\xffbox"), nil
			})
			if err != nil || string(box) != "\x00\xffbox" {
				t.Errorf("pack %q, %v", box, err)
			}
			loose, err := baton.Step(ctx, attempt, "any", func(context.Context) (any, error) { return []byte("b"), nil })
			if raw, ok := loose.([]byte); err != nil || !ok || string(raw) != "b" {
				t.Errorf("any %v, %v", loose, err)
			}
			if attempt.Number == 1 {
				return nil, baton.Retry{Message: "crashed"}
			}
			return attempt.Number, nil
		})
	})
	run := sidecar.NewRun(scheduled, "order", "")
	if answer := must[*pb.ExecuteResponse](t)(sidecar.Deliver(t.Context(), run)); !answer.GetFailed().GetRetryable() {
		t.Errorf("answered %v", answer)
	}
	answer := must[*pb.ExecuteResponse](t)(sidecar.Deliver(t.Context(), run))
	if string(answer.GetSucceeded().GetResult()) != "2" {
		t.Errorf("answered %v", answer)
	}
	done.want(t, "charge", "pack")
	// As the other languages store them: an order may begin on a pod of one and end on a pod of another.
	for i, want := range []string{`{"amount":7}`, "\x00\x00\xffbox", "\x00b"} {
		if got := string(sidecar.Seen(run.ID).Checkpoints[i].Value); got != want {
			t.Errorf("stored %q, want %q", got, want)
		}
	}
}

// Only what a step returned is remembered: after an error it runs again, and a name is used once in an attempt.
func TestStepsThatFail(t *testing.T) { eachWay(t, testStepsThatFail) }

func testStepsThatFail(t *testing.T, way way) {
	tries := 0
	_, sidecar := beside(t, way, func(app *baton.App) {
		app.Schedule("order", func(ctx context.Context, attempt *baton.Attempt) (any, error) {
			return baton.Step(ctx, attempt, "charge", func(context.Context) (int, error) {
				if tries++; tries == 1 {
					return 0, errors.New("declined")
				}
				return tries, nil
			})
		})
		app.Schedule("twice", func(ctx context.Context, attempt *baton.Attempt) (any, error) {
			one := func(context.Context) (int, error) { return 1, nil }
			if _, err := baton.Step(ctx, attempt, "same", one); err != nil {
				return nil, err
			}
			return baton.Step(ctx, attempt, "same", one)
		})
		app.Schedule("changed", func(ctx context.Context, attempt *baton.Attempt) (any, error) {
			if attempt.Number == 1 {
				_, err := baton.Step(ctx, attempt, "s", func(context.Context) ([]byte, error) { return []byte("x"), nil })
				return nil, err
			}
			return baton.Step(ctx, attempt, "s", func(context.Context) (int, error) { return 1, nil })
		})
	})
	run := sidecar.NewRun(scheduled, "order", "")
	must[*pb.ExecuteResponse](t)(sidecar.Deliver(t.Context(), run))
	answer := must[*pb.ExecuteResponse](t)(sidecar.Deliver(t.Context(), run))
	if string(answer.GetSucceeded().GetResult()) != "2" {
		t.Errorf("answered %v", answer)
	}
	answer = must[*pb.ExecuteResponse](t)(sidecar.Execute(t.Context(), "twice", ""))
	if answer.GetFailed().GetRetryable() || answer.GetFailed().GetCode() != "StepNameReused" {
		t.Errorf("answered %v", answer)
	}
	run = sidecar.NewRun(scheduled, "changed", "")
	must[*pb.ExecuteResponse](t)(sidecar.Deliver(t.Context(), run))
	if answer := must[*pb.ExecuteResponse](t)(sidecar.Deliver(t.Context(), run)); answer.GetFailed() == nil {
		t.Errorf("bytes became a number: %v", answer)
	}
}

// The same name of one run is the same token; the first completion stands; awaiting asks again and again.
func TestADeferredIsAwaitedOverAttempts(t *testing.T) { eachWay(t, testADeferredIsAwaitedOverAttempts) }

func testADeferredIsAwaitedOverAttempts(t *testing.T, way way) {
	tokens := make(chan string, 2)
	app, sidecar := beside(t, way, func(app *baton.App) {
		app.Schedule("approval", func(ctx context.Context, attempt *baton.Attempt) (any, error) {
			boss, err := attempt.Deferred(ctx, "boss")
			if err != nil {
				return nil, err
			}
			tokens <- boss.Token
			if attempt.Number == 1 {
				return nil, baton.Retry{Message: "restarted"}
			}
			return baton.Await[map[string]bool](ctx, boss)
		})
	})
	run := sidecar.NewRun(scheduled, "approval", "")
	must[*pb.ExecuteResponse](t)(sidecar.Deliver(t.Context(), run))
	first := <-tokens
	go func() {
		if second := <-tokens; second != first {
			t.Errorf("token %s, then %s", first, second)
		}
		time.Sleep(300 * time.Millisecond) // longer than the fake waits in one call
		for range 2 {
			if _, err := app.Deferreds.Complete(context.Background(), first, map[string]bool{"ok": true}); err != nil {
				t.Error(err)
			}
		}
	}()
	answer := must[*pb.ExecuteResponse](t)(sidecar.Deliver(t.Context(), run))
	if string(answer.GetSucceeded().GetResult()) != `{"ok":true}` {
		t.Errorf("answered %v", answer)
	}
	if _, err := app.Deferreds.Complete(t.Context(), first, 0); !errors.Is(err, baton.ErrAlreadyExists) {
		t.Error(err)
	}
}

// Awaiting one that was failed or has expired is an error; bytes come as they are.
func TestDeferredsThatFail(t *testing.T) {
	app, _ := beside(t, serve, func(*baton.App) {})
	ctx := t.Context()
	create := must[baton.Deferred](t)
	failed := create(app.Deferreds.Create(ctx, "failed"))
	must[*pb.Deferred](t)(app.Deferreds.Fail(ctx, failed.Token, "refused"))
	if _, err := baton.Await[any](ctx, failed); !errors.Is(err, baton.ErrDeferredFailed) || err.Error() != "baton: DeferredFailed: refused" {
		t.Error(err)
	}
	expiring := create(app.Deferreds.Create(ctx, "expiring", baton.TTL(50*time.Millisecond)))
	if _, err := baton.Await[any](ctx, expiring); !errors.Is(err, baton.ErrDeferredFailed) {
		t.Error(err)
	}
	raw := create(app.Deferreds.Create(ctx, "raw"))
	must[*pb.Deferred](t)(app.Deferreds.Complete(ctx, raw.Token, []byte("\xff")))
	if value, err := baton.Await[[]byte](ctx, app.Deferreds.Of(raw.Token)); err != nil || string(value) != "\xff" {
		t.Error(value, err)
	}
	if _, err := baton.Await[int](ctx, raw); !errors.Is(err, baton.ErrDeferredFailed) {
		t.Error(err)
	}
	pending, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	if _, err := baton.Await[int](pending, create(app.Deferreds.Create(ctx, "never"))); err == nil {
		t.Error("awaited what never came")
	}
	if got := must[*pb.Deferred](t)(app.Deferreds.Get(ctx, raw.Token)); got.Name != "raw" {
		t.Error(got)
	}
	if _, err := app.Deferreds.Get(ctx, "no such token"); !errors.Is(err, baton.ErrNotFound) {
		t.Error(err)
	}
}
