package baton_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	baton "github.com/baton-sidecar/baton/clients/go"
	pb "github.com/baton-sidecar/baton/clients/go/batonv1"
	"github.com/baton-sidecar/baton/clients/go/internal/fake"
)

func became(epoch uint64, trust time.Duration) *pb.OnBecomeLeaderRequest {
	return &pb.OnBecomeLeaderRequest{
		Context: &pb.ClusterContext{Group: "default", Epoch: epoch, IsLeader: true}, TrustedFor: durationpb.New(trust),
	}
}

func lost(epoch uint64) *pb.OnLoseLeadershipRequest {
	return &pb.OnLoseLeadershipRequest{
		Context: &pb.ClusterContext{Epoch: epoch}, Reason: pb.LossReason_LOSS_REASON_SHUTDOWN,
	}
}

// told serves an app whose hooks record what they are told; nobody has said anything about leadership yet.
func told(t *testing.T, way way) (*baton.App, *fake.Sidecar, events) {
	t.Helper()
	sidecar, events := fake.Start(t), make(events, 100)
	sidecar.Freeze(true) // the watch of the fake knows nothing of the epochs used here
	app := newApp(t, sidecar, baton.Config{})
	app.OnBecomeLeader("", func(ctx context.Context, cluster baton.ClusterContext) error {
		events.add(fmt.Sprintf("become %d", cluster.Epoch))
		return nil
	})
	app.OnLoseLeadership("", func(ctx context.Context, cluster baton.ClusterContext, reason pb.LossReason) error {
		events.add(fmt.Sprintf("lose %d", cluster.Epoch))
		return nil
	})
	way(t, app, sidecar)
	return app, sidecar, events
}

// G1: the app leads from OnBecomeLeader to OnLoseLeadership, and its hooks see it so.
func TestATermOpensAndClosesWithItsHooks(t *testing.T) {
	eachWay(t, testATermOpensAndClosesWithItsHooks)
}

func testATermOpensAndClosesWithItsHooks(t *testing.T, way way) {
	sidecar, events := fake.Start(t), make(events, 100)
	app := newApp(t, sidecar, baton.Config{})
	app.OnBecomeLeader("default", func(ctx context.Context, cluster baton.ClusterContext) error {
		events.add(fmt.Sprint("become ", cluster.IsLeader, app.IsLeader("")))
		return nil
	})
	app.OnLoseLeadership("default", func(ctx context.Context, cluster baton.ClusterContext, reason pb.LossReason) error {
		if below, err := baton.Cluster(ctx); err != nil || below != cluster {
			t.Errorf("the context says %v, %v", below, err)
		}
		events.add(fmt.Sprint(reason, cluster.IsLeader, app.IsLeader("")))
		return nil
	})
	way(t, app, sidecar)
	if app.IsLeader("") {
		t.Error("leads before anybody said so")
	}
	epoch := lead(t, sidecar)
	if !app.IsLeader("default") || app.Epoch("") != epoch || app.IsLeader("reports") {
		t.Errorf("leads in %d, want %d", app.Epoch(""), epoch)
	}
	if err := sidecar.Lose(t.Context(), "default", leaseLost); err != nil {
		t.Fatal(err)
	}
	if app.IsLeader("") || app.Epoch("") != 0 {
		t.Error("leads after the loss")
	}
	events.want(t, "become true true", "LOSS_REASON_LEASE_LOST false false")
}

// G1: late messages of lost terms open nothing and end nothing; epoch 0 ends any term.
func TestWhichMessagesOpenAndEndTerms(t *testing.T) { eachWay(t, testWhichMessagesOpenAndEndTerms) }

func testWhichMessagesOpenAndEndTerms(t *testing.T, way way) {
	for name, test := range map[string]struct {
		messages []any
		leads    uint64
		events   []string
	}{
		"lost ones are ignored": {
			[]any{became(7, time.Minute), lost(7), became(7, time.Minute), became(6, time.Minute)}, 0,
			[]string{"become 7", "lose 7"},
		},
		"a loss of a term never known counts": {
			[]any{lost(9), became(8, time.Minute), became(10, time.Minute)}, 10, []string{"become 10"},
		},
		"an old loss ends nothing":         {[]any{became(7, time.Minute), lost(6)}, 7, []string{"become 7"}},
		"a later loss ends it":             {[]any{became(7, time.Minute), lost(8)}, 0, []string{"become 7", "lose 7"}},
		"the same twice is one term":       {[]any{became(7, time.Minute), became(7, time.Minute)}, 7, []string{"become 7"}},
		"zero ends any, once":              {[]any{became(7, time.Minute), lost(0), lost(0)}, 0, []string{"become 7", "lose 7"}},
		"after zero the same is old":       {[]any{became(7, time.Minute), lost(0), became(7, time.Minute)}, 0, []string{"become 7", "lose 7"}},
		"zero before any term is no epoch": {[]any{lost(0), became(1, time.Minute)}, 1, []string{"become 1"}},
		"a newer term ends the older": {
			[]any{became(7, time.Minute), became(8, time.Minute)}, 8, []string{"become 7", "lose 7", "become 8"},
		},
		"trust that is over is none": {[]any{became(7, 0)}, 0, []string{"become 7"}},
	} {
		t.Run(name, func(t *testing.T) {
			app, sidecar, events := told(t, way)
			for _, message := range test.messages {
				var err error
				switch message := message.(type) {
				case *pb.OnBecomeLeaderRequest:
					_, err = sidecar.App.OnBecomeLeader(t.Context(), message)
				case *pb.OnLoseLeadershipRequest:
					_, err = sidecar.App.OnLoseLeadership(t.Context(), message)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if app.Epoch("") != test.leads {
				t.Errorf("leads in %d, want %d", app.Epoch(""), test.leads)
			}
			events.want(t, test.events...)
			_ = app.Close()
		})
	}
}

// G1: after a failed hook the app does not lead, although its sidecar still says so; no text of the error leaves.
func TestAFailingHookRefusesTheTerm(t *testing.T) { eachWay(t, testAFailingHookRefusesTheTerm) }

func testAFailingHookRefusesTheTerm(t *testing.T, way way) {
	for name, fail := range map[string]func() error{
		"error": func() error { return fmt.Errorf("password=hunter2: %w", context.DeadlineExceeded) },
		"panic": func() error { panic("password=hunter2") },
	} {
		t.Run(name, func(t *testing.T) {
			sidecar, losses := fake.Start(t), make(events, 10)
			app := newApp(t, sidecar, baton.Config{})
			app.OnBecomeLeader("", func(context.Context, baton.ClusterContext) error { return fail() })
			app.OnLoseLeadership("", func(_ context.Context, _ baton.ClusterContext, reason pb.LossReason) error {
				losses.add(reason.String())
				return nil
			})
			way(t, app, sidecar)
			epoch, err := sidecar.Lead(t.Context(), "default", fake.Trust)
			if status.Code(err) != codes.Internal || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("answered %v", err)
			}
			if _, err := sidecar.App.OnBecomeLeader(t.Context(), became(epoch, time.Minute)); err == nil {
				t.Error("a refused term was taken up when asked again")
			}
			for range 50 {
				if app.IsLeader("") {
					t.Fatal("leads in a term that it refused")
				}
				time.Sleep(10 * time.Millisecond)
			}
			if err := sidecar.Lose(t.Context(), "default", leaseLost); err != nil {
				t.Fatal(err)
			}
			losses.want(t, "LOSS_REASON_LEASE_LOST")
		})
	}
}

// G1: a hook whose answer nobody waits for any more leaves no term behind.
func TestAHookThatIsTooSlowRefusesTheTerm(t *testing.T) {
	sidecar, hooked := fake.Start(t), make(chan struct{})
	app := newApp(t, sidecar, baton.Config{})
	app.OnBecomeLeader("", func(ctx context.Context, _ baton.ClusterContext) error {
		<-ctx.Done()
		close(hooked)
		return nil // as if all were well
	})
	serve(t, app, sidecar)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := sidecar.Lead(ctx, "default", fake.Trust); status.Code(err) != codes.DeadlineExceeded {
		t.Fatal(err)
	}
	<-hooked
	for range 30 {
		time.Sleep(10 * time.Millisecond)
		if app.IsLeader("") {
			t.Fatal("leads in a term that it took up too late")
		}
	}
}

// G1: OnLoseLeadership is answered, and a successor let in, only after the last act.
func TestLosingWaitsUntilHandlersHaveStopped(t *testing.T) {
	eachWay(t, testLosingWaitsUntilHandlersHaveStopped)
}

func testLosingWaitsUntilHandlersHaveStopped(t *testing.T, way way) {
	acts := make(events, 10)
	app, sidecar := beside(t, way, func(app *baton.App) {
		app.Singleton("coordinator", func(ctx context.Context, attempt *baton.Attempt) (any, error) {
			acts.add("begun")
			<-ctx.Done()
			time.Sleep(100 * time.Millisecond)
			acts.add("stopped")
			return nil, context.Cause(ctx)
		})
		app.OnLoseLeadership("", func(context.Context, baton.ClusterContext, pb.LossReason) error {
			acts.add("hook")
			return nil
		})
	})
	ended := make(chan error, 1)
	go func() {
		_, err := sidecar.Deliver(t.Context(), sidecar.NewRun(singleton, "coordinator", ""))
		ended <- err
	}()
	acts.want(t, "begun")
	if err := sidecar.Lose(t.Context(), "default", leaseLost); err != nil {
		t.Fatal(err)
	}
	acts.want(t, "stopped", "hook")
	if err := <-ended; status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "LEASE_LOST") {
		t.Errorf("answered %v", err)
	}
	if app.IsLeader("") {
		t.Error("still leads")
	}
}

// A lose hook that fails is told to the sidecar, without its text, each time it asks; but a sidecar may make contact
// again.
func TestAFailingLoseHookIsNoAcknowledgement(t *testing.T) {
	eachWay(t, testAFailingLoseHookIsNoAcknowledgement)
}

func testAFailingLoseHookIsNoAcknowledgement(t *testing.T, way way) {
	_, sidecar := beside(t, way, func(app *baton.App) {
		app.OnLoseLeadership("", func(context.Context, baton.ClusterContext, pb.LossReason) error {
			return errors.New("password=hunter2")
		})
	})
	for range 2 {
		err := sidecar.Lose(t.Context(), "default", leaseLost)
		if status.Code(err) != codes.Internal || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("answered %v", err)
		}
	}
	if _, err := sidecar.App.OnLoseLeadership(t.Context(), lost(0)); err != nil {
		t.Errorf("first contact: %v", err)
	}
}

// G1: neither an old term's Execute nor one of a term not yet known is begun.
func TestRunsOfOtherTermsAreRefused(t *testing.T) { eachWay(t, testRunsOfOtherTermsAreRefused) }

func testRunsOfOtherTermsAreRefused(t *testing.T, way way) {
	begun := make(events, 10)
	app, sidecar := beside(t, way, func(app *baton.App) {
		app.Schedule("report", func(ctx context.Context, attempt *baton.Attempt) (any, error) {
			begun.add("begun")
			return nil, nil
		})
	})
	for _, epoch := range []uint64{app.Epoch("") - 1, app.Epoch("") + 1} {
		request := &pb.ExecuteRequest{Context: &pb.ClusterContext{Epoch: epoch}, Name: "report"}
		if _, err := sidecar.App.Execute(t.Context(), request); status.Code(err) != codes.Unavailable {
			t.Errorf("epoch %d: %v", epoch, err)
		}
	}
	begun.want(t)
	must[*pb.ExecuteResponse](t)(sidecar.Execute(t.Context(), "report", ""))
	begun.want(t, "begun")
}

// A handler learns from the watch that a hand-over has begun, and may end by itself.
func TestDrainingIsToldToHandlers(t *testing.T) { eachWay(t, testDrainingIsToldToHandlers) }

func testDrainingIsToldToHandlers(t *testing.T, way way) {
	begun := make(events, 1)
	_, sidecar := beside(t, way, func(app *baton.App) {
		app.Schedule("late", func(ctx context.Context, attempt *baton.Attempt) (any, error) {
			begun.add(attempt.CancelReason())
			<-ctx.Done()
			begun.add(attempt.CancelReason())
			return nil, ctx.Err()
		})
		app.Schedule("report", func(ctx context.Context, attempt *baton.Attempt) (any, error) {
			select {
			case <-attempt.Draining():
				return nil, errors.New("told too early")
			default:
			}
			begun.add("begun")
			<-attempt.Draining()
			return "drained", nil
		})
	})
	go func() {
		<-begun
		sidecar.Drain("default")
	}()
	answer := must[*pb.ExecuteResponse](t)(sidecar.Execute(t.Context(), "report", ""))
	if string(answer.GetSucceeded().GetResult()) != `"drained"` {
		t.Errorf("answered %v", answer)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = sidecar.Execute(t.Context(), "late", "")
	}()
	begun.want(t, "")
	if err := sidecar.Lose(t.Context(), "default", leaseLost); err != nil {
		t.Fatal(err)
	}
	begun.want(t, baton.CancelHandover)
	<-ended
}

// Groups are independent of each other.
func TestGroupsAreLedApart(t *testing.T) { eachWay(t, testGroupsAreLedApart) }

func testGroupsAreLedApart(t *testing.T, way way) {
	app, sidecar := beside(t, way, func(*baton.App) {})
	if _, err := sidecar.Lead(t.Context(), "reports", fake.Trust); err != nil {
		t.Fatal(err)
	}
	if err := sidecar.Lose(t.Context(), "default", leaseLost); err != nil {
		t.Fatal(err)
	}
	if app.IsLeader("") || !app.IsLeader("reports") {
		t.Error("the loss of one group touched another")
	}
}
