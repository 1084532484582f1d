package baton_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	baton "github.com/baton-sidecar/baton/clients/go"
	pb "github.com/baton-sidecar/baton/clients/go/batonv1"
	"github.com/baton-sidecar/baton/clients/go/internal/fake"
)

// Payload, state, identity and memory of the run arrive as they were sent; result and state go back.
func TestAHandlerSeesTheWholeRequest(t *testing.T) { eachWay(t, testAHandlerSeesTheWholeRequest) }

func testAHandlerSeesTheWholeRequest(t *testing.T, way way) {
	seen := make(chan *baton.Attempt, 2)
	app, sidecar := beside(t, way, func(app *baton.App) {
		app.Schedule("report", func(ctx context.Context, attempt *baton.Attempt) (any, error) {
			seen <- attempt
			var state struct{ Count int }
			if err := attempt.State().JSON(&state); err != nil {
				return nil, err
			}
			if cluster, err := baton.Cluster(ctx); err != nil || cluster != attempt.Cluster {
				t.Errorf("the context says %v, %v", cluster, err)
			}
			return baton.Result{Value: map[string]int{"rows": 3}, State: map[string]int{"count": state.Count + 1}}, nil
		})
	})
	run := sidecar.NewRun(scheduled, "report", `{"day":"monday"}`)
	answer := must[*pb.ExecuteResponse](t)(sidecar.Deliver(t.Context(), run))
	must[*pb.ExecuteResponse](t)(sidecar.Execute(t.Context(), "report", ""))
	if result := string(answer.GetSucceeded().GetResult()); result != `{"rows":3}` {
		t.Errorf("result %s", result)
	}
	if state := sidecar.Value("schedule-state:report"); state != `{"count":2}` {
		t.Errorf("state %s", state)
	}
	first := <-seen
	var payload struct{ Day string }
	if err := first.JSON(&payload); err != nil || payload.Day != "monday" {
		t.Errorf("payload %v, %v", payload, err)
	}
	if first.RunID != run.ID || first.Number != 1 || first.Cluster.Epoch != app.Epoch("") ||
		first.IdempotencyKey != "report" || first.Metadata.GetRunCount() != 7 || !first.Deadline.IsZero() ||
		time.Since(first.ScheduledAt) > time.Minute {
		t.Errorf("attempt %+v", first)
	}
	if first.Cluster.EntityType != "schedule" || first.Cluster.EntityID != "report" || first.Cluster.Cluster != "test" {
		t.Errorf("cluster %+v", first.Cluster)
	}
}

// Returning a value or an error becomes an outcome; of an unexpected error the type and the text are kept.
func TestAnswers(t *testing.T) { eachWay(t, testAnswers) }

func testAnswers(t *testing.T, way way) {
	for name, test := range map[string]struct {
		value any
		err   error
		want  string
	}{
		"nothing":   {nil, nil, `succeeded:{}`},
		"bytes":     {[]byte("raw"), nil, `succeeded:{result:"raw"}`},
		"json":      {[]int{1, 2}, nil, `succeeded:{result:"[1,2]"}`},
		"state":     {baton.Result{State: []byte{}}, nil, `succeeded:{state:""}`},
		"skip":      {nil, baton.Skip{Reason: "holiday"}, `skipped:{reason:"holiday"}`},
		"retry":     {nil, baton.Retry{Message: "later", After: 2 * time.Second}, `failed:{message:"later" retryable:true retry_after:{seconds:2}}`},
		"wrapped":   {nil, fmt.Errorf("x: %w", baton.Retry{Message: "later", State: 5}), `failed:{message:"later" retryable:true state:"5"}`},
		"fail":      {nil, baton.Fail{Message: "never", Code: "NO", State: "s"}, `failed:{message:"never" code:"NO" state:"\"s\""}`},
		"not UTF-8": {nil, baton.Fail{Message: "no \xff"}, `failed:{message:"no �"}`},
		"error":     {nil, errors.New("hunter2"), `failed:{message:"hunter2" code:"*errors.errorString" retryable:true}`},
		"inner":     {nil, fmt.Errorf("hunter2: %w", &fs.PathError{Op: "open", Path: "p", Err: errors.New("x")}), `failed:{message:"hunter2: open p: x" code:"*fs.PathError" retryable:true}`},
		"ours":      {nil, fmt.Errorf("hunter2: %w", &baton.Error{Kind: baton.ErrFenced, Reason: "Fenced", Message: "late"}), `failed:{message:"hunter2: baton: Fenced: late" code:"Fenced" retryable:true}`},
		"not JSON":  {func() {}, nil, `failed:{message:"json: unsupported type: func()" code:"*json.UnsupportedTypeError" retryable:true}`},
		"bad state": {nil, baton.Fail{Message: "no", State: func() {}}, `failed:{message:"no; its state cannot be encoded: json: unsupported type: func()" code:"*fmt.wrapErrors" retryable:true}`},
		"snooze":    {nil, baton.Snooze{After: time.Minute}, `failed:{message:"baton: only a job can be snoozed" code:"*errors.errorString" retryable:true}`},
		"panic":     {"panic", nil, `failed:{message:"panic: hunter2" code:"baton.panicked" retryable:true}`},
	} {
		t.Run(name, func(t *testing.T) {
			_, sidecar := beside(t, way, func(app *baton.App) {
				app.Schedule("report", func(ctx context.Context, attempt *baton.Attempt) (any, error) {
					if test.value == "panic" {
						panic("hunter2")
					}
					return test.value, test.err
				})
			})
			answer := must[*pb.ExecuteResponse](t)(sidecar.Execute(t.Context(), "report", ""))
			// The text form has spaces at random, so that nobody relies on it.
			if got := strings.ReplaceAll(answer.String(), "  ", " "); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// A message is cut at 4 KiB, between two characters; HideErrors keeps all but the type inside the process.
func TestLongAndHiddenErrors(t *testing.T) {
	for name, test := range map[string]struct {
		hide bool
		want string
	}{
		"long":   {false, strings.Repeat("é", 2048)},
		"hidden": {true, "unhandled *errors.errorString"},
	} {
		t.Run(name, func(t *testing.T) {
			sidecar := fake.Start(t)
			app := newApp(t, sidecar, baton.Config{HideErrors: test.hide})
			app.Schedule("report", func(context.Context, *baton.Attempt) (any, error) {
				return nil, errors.New(strings.Repeat("é", 5000))
			})
			attach(t, app, sidecar)
			lead(t, sidecar)
			failed := must[*pb.ExecuteResponse](t)(sidecar.Execute(t.Context(), "report", "")).GetFailed()
			if failed.GetMessage() != test.want || failed.GetCode() != "*errors.errorString" {
				t.Errorf("answered %.100v", failed)
			}
		})
	}
}

// Undeliverable, so that it uses up no retry: another pod may know the handler.
func TestUnknownHandlers(t *testing.T) { eachWay(t, testUnknownHandlers) }

func testUnknownHandlers(t *testing.T, way way) {
	_, sidecar := beside(t, way, func(app *baton.App) {
		app.Singleton("report", func(context.Context, *baton.Attempt) (any, error) { return nil, nil })
	})
	if _, err := sidecar.Execute(t.Context(), "report", ""); status.Code(err) != codes.NotFound {
		t.Errorf("a schedule got the singleton's handler: %v", err)
	}
	must[*pb.ExecuteResponse](t)(sidecar.Deliver(t.Context(), sidecar.NewRun(singleton, "report", "")))
}

// A cancelled call, as by Runs.Cancel, reaches the handler through its context; the term goes on.
func TestACancelledCallCancelsItsHandler(t *testing.T) {
	eachWay(t, testACancelledCallCancelsItsHandler)
}

func testACancelledCallCancelsItsHandler(t *testing.T, way way) {
	begun, stopped := make(chan struct{}), make(chan string, 1)
	app, sidecar := beside(t, way, func(app *baton.App) {
		app.Schedule("slow", func(ctx context.Context, attempt *baton.Attempt) (any, error) {
			close(begun)
			<-ctx.Done()
			stopped <- attempt.CancelReason()
			return nil, ctx.Err()
		})
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-begun; cancel() }()
	if _, err := sidecar.Execute(ctx, "slow", ""); status.Code(err) != codes.Canceled {
		t.Error(err)
	}
	if reason := <-stopped; reason != baton.CancelCall {
		t.Errorf("stopped because of %s", reason)
	}
	if !app.IsLeader("") {
		t.Error("the term ended with the call")
	}
}

// G3: nothing that an attempt writes after its term is accepted.
func TestAnOldAttemptIsFenced(t *testing.T) { eachWay(t, testAnOldAttemptIsFenced) }

func testAnOldAttemptIsFenced(t *testing.T, way way) {
	begun, refused := make(chan struct{}), make(chan error, 4)
	_, sidecar := beside(t, way, func(app *baton.App) {
		app.Singleton("coordinator", func(ctx context.Context, attempt *baton.Attempt) (any, error) {
			close(begun)
			<-ctx.Done()
			refused <- attempt.Heartbeat(ctx) // the context of the attempt ends its calls, and says why
			late := context.WithoutCancel(ctx)
			refused <- attempt.PutState(late, 1)
			refused <- attempt.Heartbeat(late)
			_, err := baton.Step(late, attempt, "s", func(context.Context) (int, error) { return 1, nil })
			refused <- err
			return nil, err
		})
	})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = sidecar.Deliver(t.Context(), sidecar.NewRun(singleton, "coordinator", ""))
	}()
	<-begun
	if err := sidecar.Lose(t.Context(), "default", leaseLost); err != nil {
		t.Fatal(err)
	}
	<-ended
	if err := <-refused; !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "LEASE_LOST") {
		t.Errorf("got %v", err)
	}
	for range 3 {
		if err := <-refused; !errors.Is(err, baton.ErrFenced) || !errors.Is(err, baton.ErrFailedPrecondition) {
			t.Errorf("got %v, want fenced", err)
		}
	}
	if value := sidecar.Value("singleton-state:coordinator"); value != "" {
		t.Errorf("wrote %s", value)
	}
}

// Progress and owned state are visible before the run ends.
func TestHeartbeatsAndStateAreWrittenWhileItRuns(t *testing.T) {
	eachWay(t, testHeartbeatsAndStateAreWrittenWhileItRuns)
}

func testHeartbeatsAndStateAreWrittenWhileItRuns(t *testing.T, way way) {
	_, sidecar := beside(t, way, func(app *baton.App) {
		app.Singleton("coordinator", func(ctx context.Context, attempt *baton.Attempt) (any, error) {
			return nil, errors.Join(
				attempt.PutState(ctx, map[string]int{"count": 1}),
				attempt.Heartbeat(ctx, baton.Progress(0.5), baton.Message("half way")),
				attempt.Heartbeat(ctx),
			)
		})
	})
	run := sidecar.NewRun(singleton, "coordinator", "")
	answer := must[*pb.ExecuteResponse](t)(sidecar.Deliver(t.Context(), run))
	seen := sidecar.Seen(run.ID)
	if answer.GetSucceeded() == nil || seen.Progress != 0.5 || seen.Message != "half way" {
		t.Errorf("run %+v, answer %v", seen, answer)
	}
	if value := sidecar.Value("singleton-state:coordinator"); value != `{"count":1}` {
		t.Errorf("state %s", value)
	}
}

// Outside a handler the cluster context is missing, and said to be.
func TestTheClusterContextIsRequired(t *testing.T) { eachWay(t, testTheClusterContextIsRequired) }

func testTheClusterContextIsRequired(t *testing.T, way way) {
	if _, err := baton.Cluster(t.Context()); !errors.Is(err, baton.ErrClusterContextRequired) {
		t.Error(err)
	}
	if _, err := baton.NextID(t.Context()); !errors.Is(err, baton.ErrClusterContextRequired) {
		t.Error(err)
	}
	_, sidecar := beside(t, way, func(app *baton.App) {
		app.Schedule("report", func(ctx context.Context, attempt *baton.Attempt) (any, error) { return baton.NextID(ctx) })
	})
	answer := must[*pb.ExecuteResponse](t)(sidecar.Execute(t.Context(), "report", ""))
	if len(answer.GetSucceeded().GetResult()) == 0 {
		t.Errorf("answered %v", answer)
	}
}

// A second handler of one name is a mistake, said at once.
func TestNamesAreRegisteredOnce(t *testing.T) {
	_, _ = beside(t, serve, func(app *baton.App) {
		handler := func(context.Context, *baton.Attempt) (any, error) { return nil, nil }
		app.Schedule("report", handler)
		app.Singleton("report", handler)
		defer func() {
			if recover() == nil {
				t.Error("registered twice")
			}
		}()
		app.Schedule("report", handler)
	})
}
