package baton_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	baton "github.com/baton-sidecar/baton/clients/go"
	pb "github.com/baton-sidecar/baton/clients/go/batonv1"
	"github.com/baton-sidecar/baton/clients/go/internal/fake"
)

// G1: IsLeader is never true past the trust time. The app ends the term by itself: what runs is cancelled, the loss hook
// runs once, and a sidecar that still believes in the term is asked to hand it over.
func TestTrustEndsWithoutRenewal(t *testing.T) { eachWay(t, testTrustEndsWithoutRenewal) }

func testTrustEndsWithoutRenewal(t *testing.T, way way) {
	sidecar, stopped, losses := fake.Start(t), make(chan error, 1), make(events, 10)
	app := newApp(t, sidecar, baton.Config{})
	begun := make(chan struct{})
	app.Singleton("coordinator", func(ctx context.Context, attempt *baton.Attempt) (any, error) {
		close(begun)
		<-ctx.Done()
		stopped <- context.Cause(ctx)
		return nil, ctx.Err()
	})
	app.OnLoseLeadership("", func(ctx context.Context, cluster baton.ClusterContext, reason pb.LossReason) error {
		losses.add(fmt.Sprint(reason, cluster.Epoch, app.IsLeader("")))
		return nil
	})
	way(t, app, sidecar)
	sidecar.Freeze(true)
	const trust = 2 * time.Second
	toldAt := time.Now()
	if _, err := sidecar.Lead(t.Context(), "default", trust); err != nil {
		t.Fatal(err)
	}
	answeredAt := time.Now()
	ended := make(chan error, 1)
	go func() {
		_, err := sidecar.Deliver(t.Context(), sidecar.NewRun(singleton, "coordinator", ""))
		ended <- err
	}()
	<-begun
	for askedAt := time.Now(); app.IsLeader(""); askedAt = time.Now() {
		if askedAt.After(answeredAt.Add(trust)) {
			t.Fatal("trusted for too long")
		}
		time.Sleep(time.Millisecond)
	}
	if time.Since(toldAt) < trust {
		t.Error("trust ended before its time")
	}
	if cause := <-stopped; !errors.Is(cause, baton.Cancelled{Group: "default", Epoch: 101, Reason: "TRUST_EXPIRED"}) ||
		!errors.Is(cause, context.Canceled) {
		t.Errorf("stopped because of %v", cause)
	}
	if code := status.Code(<-ended); code != codes.Unavailable {
		t.Errorf("the cut-off attempt was answered %v", code)
	}
	losses.want(t, "LOSS_REASON_LEASE_LOST 101 false")
	eventually(t, "the sidecar is asked to hand over", func() bool { return sidecar.Draining("default") })
	if _, err := sidecar.Execute(t.Context(), "coordinator", ""); status.Code(err) != codes.Unavailable {
		t.Errorf("after the trust time: %v", err)
	}
	if err := sidecar.Lose(t.Context(), "default", leaseLost); err != nil {
		t.Errorf("the loss of a term that ended by itself: %v", err)
	}
	losses.want(t)
}

// A sidecar that takes trust back before its time ends the term itself, and says why.
func TestTrustThatIsTakenBack(t *testing.T) { eachWay(t, testTrustThatIsTakenBack) }

func testTrustThatIsTakenBack(t *testing.T, way way) {
	sidecar, stopped, losses := fake.Start(t), make(chan string, 1), make(events, 10)
	app := newApp(t, sidecar, baton.Config{})
	begun := make(chan struct{})
	app.Singleton("coordinator", func(ctx context.Context, attempt *baton.Attempt) (any, error) {
		close(begun)
		<-ctx.Done()
		stopped <- attempt.CancelReason()
		return nil, ctx.Err()
	})
	app.OnLoseLeadership("", func(_ context.Context, _ baton.ClusterContext, reason pb.LossReason) error {
		losses.add(reason.String())
		return nil
	})
	way(t, app, sidecar)
	if _, err := sidecar.Lead(t.Context(), "default", time.Hour); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = sidecar.Deliver(context.Background(), sidecar.NewRun(singleton, "coordinator", "")) }()
	<-begun
	sidecar.Distrust("default")
	if reason := <-stopped; reason != baton.CancelTrustExpired || app.IsLeader("") {
		t.Errorf("stopped because of %s", reason)
	}
	losses.want(t)
	if err := sidecar.Lose(t.Context(), "default", pb.LossReason_LOSS_REASON_FENCED); err != nil {
		t.Fatal(err)
	}
	losses.want(t, "LOSS_REASON_FENCED")
}

// G1: while the sidecar renews, the app leads beyond the trust it was first given.
func TestTrustIsRenewedByTheWatch(t *testing.T) {
	app, sidecar := beside(t, serve, func(*baton.App) {})
	if _, err := sidecar.Lead(t.Context(), "default", time.Second); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if !app.IsLeader("") {
			t.Fatal("trust was not renewed")
		}
	}
}

// The client reconnects by itself: an API that was away renews trust once it is back.
func TestTheWatchSurvivesASidecarThatComesBack(t *testing.T) {
	first := fake.Start(t)
	first.Stop()
	app := newApp(t, first, baton.Config{})
	serve(t, app, first)
	const trust = 3 * time.Second
	if _, err := first.Lead(t.Context(), "default", trust); err != nil {
		t.Fatal(err)
	}
	toldAt := time.Now()
	second := fake.Start(t, fake.At(first.Address)).Beside(t, must[string](t)(app.Listen()))
	// The same epoch, as the watch of a sidecar that came back to its term would tell it.
	if epoch, err := second.Lead(t.Context(), "default", time.Hour); err != nil || epoch != 101 {
		t.Fatal(epoch, err)
	}
	eventually(t, "the first trust has passed", func() bool { return time.Since(toldAt) > trust })
	if !app.IsLeader("") {
		t.Error("trust was not renewed")
	}
}
