package baton_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	baton "github.com/baton-sidecar/baton/clients/go"
	pb "github.com/baton-sidecar/baton/clients/go/batonv1"
	"github.com/baton-sidecar/baton/clients/go/internal/fake"
)

func nothing(context.Context, *baton.Attempt) (any, error) { return nil, nil }

// The first message names the client, the process, what it takes and what it can execute.
func TestHelloNamesTheHandlers(t *testing.T) {
	sidecar := fake.Start(t)
	app := newApp(t, sidecar, baton.Config{Capacity: 7})
	app.Schedule("report", nothing)
	app.Schedule("cleanup", nothing)
	app.Singleton("coordinator", nothing)
	attach(t, app, sidecar)
	hello := sidecar.Attached(t, 1)[0].Hello
	if hello.GetClient() != "baton-go/"+baton.Version || hello.GetProcessId() != strconv.Itoa(os.Getpid()) ||
		hello.GetCapacity() != 7 || !slices.Equal(hello.GetSchedules(), []string{"cleanup", "report"}) ||
		!slices.Equal(hello.GetSingletons(), []string{"coordinator"}) {
		t.Errorf("hello %v", hello)
	}
}

// Trust comes with the stream: no watch is opened, and the app leads beyond the trust it was first given.
func TestTrustIsRenewedByTheStream(t *testing.T) {
	app, sidecar := beside(t, attach, func(*baton.App) {})
	const trust = 2 * time.Second
	if _, err := sidecar.Lead(t.Context(), "default", trust); err != nil {
		t.Fatal(err)
	}
	sidecar.Trust("default", time.Hour)
	for toldAt := time.Now(); time.Since(toldAt) < trust+time.Second; time.Sleep(10 * time.Millisecond) {
		if !app.IsLeader("") {
			t.Fatal("trust was not renewed")
		}
	}
	if calls := sidecar.Calls("/baton.v1.Leadership/Watch"); calls != 0 {
		t.Errorf("%d watches", calls)
	}
}

// G1: a broken stream ends the terms and cancels the runs; the process attaches again, and may lead again.
func TestABrokenStreamEndsTheTermsAndIsOpenedAgain(t *testing.T) {
	acts := make(events, 10)
	app, sidecar := beside(t, attach, func(app *baton.App) {
		app.Singleton("coordinator", func(ctx context.Context, attempt *baton.Attempt) (any, error) {
			acts.add("begun")
			<-ctx.Done()
			acts.add(attempt.CancelReason())
			return nil, context.Cause(ctx)
		})
		app.OnLoseLeadership("", func(_ context.Context, _ baton.ClusterContext, reason pb.LossReason) error {
			acts.add(reason.String())
			return nil
		})
	})
	for range 2 {
		first := sidecar.Attached(t, 1)[0]
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, _ = sidecar.Deliver(t.Context(), sidecar.NewRun(singleton, "coordinator", ""))
		}()
		acts.want(t, "begun")
		first.Break(status.Error(codes.Unavailable, "the sidecar stops"))
		acts.want(t, "LEASE_LOST", "LOSS_REASON_LEASE_LOST")
		<-ended
		<-first.Over()
		if app.IsLeader("") {
			t.Error("leads without a stream")
		}
		sidecar.Attached(t, 1)
		lead(t, sidecar)
	}
}

// A sidecar that was restarted is found again.
func TestARestartedSidecarIsFoundAgain(t *testing.T) {
	first := fake.Start(t)
	app := newApp(t, first, baton.Config{})
	app.Schedule("report", nothing)
	attach(t, app, first)
	lead(t, first)
	first.Stop()
	eventually(t, "the term ends with the sidecar", func() bool { return !app.IsLeader("") })
	second := fake.Start(t, fake.At(first.Address))
	second.Attached(t, 1)
	if _, err := second.Lead(t.Context(), "reports", fake.Trust); err != nil || !app.IsLeader("reports") {
		t.Error("does not lead at the new sidecar", err)
	}
}

// G1: a term that follows a broken stream begins only when everything of the term before has stopped.
func TestTheNextTermWaitsForTheLast(t *testing.T) {
	acts, release := make(events, 10), make(chan struct{})
	_, sidecar := beside(t, attach, func(app *baton.App) {
		app.Singleton("coordinator", func(ctx context.Context, attempt *baton.Attempt) (any, error) {
			acts.add("begun")
			<-ctx.Done()
			acts.add("told to stop")
			<-release
			acts.add("stopped")
			return nil, context.Cause(ctx)
		})
		app.OnBecomeLeader("", func(_ context.Context, cluster baton.ClusterContext) error {
			acts.add(fmt.Sprint("become ", cluster.Epoch))
			return nil
		})
		app.OnLoseLeadership("", func(_ context.Context, cluster baton.ClusterContext, _ pb.LossReason) error {
			acts.add(fmt.Sprint("lose ", cluster.Epoch))
			return nil
		})
	})
	acts.want(t, "become 101")
	first := sidecar.Attached(t, 1)[0]
	go func() { _, _ = sidecar.Deliver(context.Background(), sidecar.NewRun(singleton, "coordinator", "")) }()
	acts.want(t, "begun")
	first.Break(status.Error(codes.Unavailable, "gone"))
	acts.want(t, "told to stop")
	<-first.Over()
	sidecar.Attached(t, 1)
	led := make(chan error, 1)
	go func() {
		_, err := sidecar.Lead(context.Background(), "default", fake.Trust)
		led <- err
	}()
	close(release)
	if err := <-led; err != nil {
		t.Fatal(err)
	}
	acts.want(t, "stopped", "lose 101", "become 102")
}

// A run that the sidecar cancels is told to stop, and is not answered; its deadline is kept without a word of the sidecar.
func TestCancelsAndDeadlines(t *testing.T) {
	stopped := make(events, 2)
	_, sidecar := beside(t, attach, func(app *baton.App) {
		app.Schedule("slow", func(ctx context.Context, attempt *baton.Attempt) (any, error) {
			stopped.add("begun")
			<-ctx.Done()
			stopped.add(fmt.Sprint(attempt.CancelReason(), " ", context.Cause(ctx)))
			return nil, ctx.Err()
		})
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := sidecar.Execute(ctx, "slow", "")
		ended <- err
	}()
	stopped.want(t, "begun")
	cancel()
	<-ended
	stopped.want(t, "CALL_CANCELLED baton: the sidecar cancelled the run: cancelled by the test: context canceled")
	limited, end := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer end()
	if _, err := sidecar.Execute(limited, "slow", ""); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("answered %v", err)
	}
	stopped.want(t, "begun", "CALL_CANCELLED context deadline exceeded")
	process := sidecar.Attached(t, 1)[0]
	if err := process.Ping(t.Context(), 1); err != nil { // what was sent before has arrived
		t.Fatal(err)
	}
	if late := process.Unexpected(); len(late) != 0 {
		t.Errorf("answered after all: %v", late)
	}
}

// Pings are answered while handlers are busy, and before what waits to be sent.
func TestPingsAreAnsweredWhileHandlersRun(t *testing.T) {
	begun, release := make(chan struct{}, 100), make(chan struct{})
	_, sidecar := beside(t, attach, func(app *baton.App) {
		app.Schedule("slow", func(ctx context.Context, attempt *baton.Attempt) (any, error) {
			begun <- struct{}{}
			<-release
			return nil, nil
		})
	})
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			if _, err := sidecar.Execute(t.Context(), "slow", ""); err != nil {
				t.Error(err)
			}
		})
	}
	for range 100 {
		<-begun
	}
	process := sidecar.Attached(t, 1)[0]
	for number := range uint64(3) {
		if err := process.Ping(t.Context(), number+1); err != nil {
			t.Error(err)
		}
	}
	close(release)
	all.Wait()
	answered := 0
	for _, entries := range process.Frames() {
		answered += entries
	}
	if answered != 100 {
		t.Errorf("%d answers", answered)
	}
}

// An answer that the sidecar would not read fails its run, with a code that says why.
func TestAnAnswerThatIsTooLarge(t *testing.T) {
	sidecar := fake.Start(t, fake.Limits(4, 64<<10))
	app := newApp(t, sidecar, baton.Config{})
	app.Schedule("report", func(_ context.Context, attempt *baton.Attempt) (any, error) {
		var size int
		err := attempt.JSON(&size)
		return make([]byte, size), err
	})
	app.Schedule("step", func(ctx context.Context, attempt *baton.Attempt) (any, error) {
		_, err := baton.Step(ctx, attempt, "large", func(context.Context) ([]byte, error) { return make([]byte, 64<<10), nil })
		if !errors.Is(err, baton.ErrLimitExceeded) {
			t.Errorf("a large step: %v", err)
		}
		return nil, nil
	})
	attach(t, app, sidecar)
	lead(t, sidecar)
	small := must[*pb.ExecuteResponse](t)(sidecar.Execute(t.Context(), "report", strconv.Itoa(60<<10)))
	if len(small.GetSucceeded().GetResult()) != 60<<10 {
		t.Errorf("answered %.80v", small)
	}
	large := must[*pb.ExecuteResponse](t)(sidecar.Execute(t.Context(), "report", strconv.Itoa(64<<10)))
	if failed := large.GetFailed(); failed.GetCode() != "TOO_LARGE" || failed.GetRetryable() || !strings.Contains(failed.GetMessage(), "bytes") {
		t.Errorf("answered %.80v", large)
	}
	must[*pb.ExecuteResponse](t)(sidecar.Execute(t.Context(), "step", ""))
}

// records is a log that tests read.
type records struct {
	slog.Handler
	lines chan string
}

func (r records) Enabled(context.Context, slog.Level) bool { return true }
func (r records) Handle(_ context.Context, record slog.Record) error {
	if record.Level >= slog.LevelWarn {
		r.lines <- record.Message
	}
	return nil
}

// A sidecar that refuses the process is asked again; the reason is logged once per change, with what to do.
func TestRefusalsAreLoggedOnce(t *testing.T) {
	sidecar, lines := fake.Start(t), make(chan string, 100)
	wrong, away := status.Error(codes.Unauthenticated, "wrong"), status.Error(codes.Unavailable, "away")
	sidecar.RefuseAttach(away, away, wrong, wrong, status.Error(codes.InvalidArgument, "no"))
	app := must[*baton.App](t)(baton.New(baton.Config{Sidecar: sidecar.Address, Logger: slog.New(records{lines: lines})}))
	attach(t, app, sidecar)
	want := []string{
		"detached from the sidecar", "the sidecar refused the token: check BATON_API_TOKEN_FILE",
		"the sidecar refused what this app declares",
	}
	for _, line := range want {
		if got := <-lines; got != line {
			t.Errorf("logged %q, want %q", got, line)
		}
	}
	if len(lines) != 0 {
		t.Errorf("logged too much: %s", <-lines)
	}
}

// An older sidecar is named as the reason.
func TestAnOlderSidecarIsNamed(t *testing.T) {
	sidecar, lines := fake.Start(t, fake.WithoutAttach()), make(chan string, 100)
	app := must[*baton.App](t)(baton.New(baton.Config{Sidecar: sidecar.Address, Logger: slog.New(records{lines: lines})}))
	run(t, app, app.Attach)
	if line := <-lines; !strings.Contains(line, "upgrade the sidecar, or use App.Serve") {
		t.Errorf("logged %q", line)
	}
}

// Several processes of one pod attach to one sidecar; the end of the primary leaves the others attached.
func TestSeveralProcessesAttach(t *testing.T) {
	sidecar := fake.Start(t)
	apps := make([]*baton.App, 2)
	for i := range apps {
		apps[i] = newApp(t, sidecar, baton.Config{})
		run(t, apps[i], apps[i].Attach)
		sidecar.Attached(t, i+1)
	}
	lead(t, sidecar)
	if !apps[0].IsLeader("") || apps[1].IsLeader("") {
		t.Error("not the primary leads")
	}
	_ = apps[0].Close()
	sidecar.Attached(t, 1)
	lead(t, sidecar)
	if apps[0].IsLeader("") || !apps[1].IsLeader("") {
		t.Error("the other process did not take over")
	}
}
