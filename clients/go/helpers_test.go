package baton_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	baton "github.com/baton-sidecar/baton/clients/go"
	pb "github.com/baton-sidecar/baton/clients/go/batonv1"
	"github.com/baton-sidecar/baton/clients/go/internal/fake"
)

const (
	scheduled = pb.RunKind_RUN_KIND_SCHEDULE
	singleton = pb.RunKind_RUN_KIND_SINGLETON
	leaseLost = pb.LossReason_LOSS_REASON_LEASE_LOST
)

// newApp makes an app beside a fake; what it logs is not wanted in the output.
func newApp(t *testing.T, sidecar *fake.Sidecar, config baton.Config) *baton.App {
	t.Helper()
	config.Sidecar, config.Logger = sidecar.Address, slog.New(slog.DiscardHandler)
	if config.Address == "" {
		config.Address = "127.0.0.1:0"
	}
	app, err := baton.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return app
}

// way makes a fake the sidecar of an app, until the test ends.
type way func(*testing.T, *baton.App, *fake.Sidecar)

// eachWay runs a test with an app that serves, and with one that attaches.
func eachWay(t *testing.T, test func(*testing.T, way)) {
	for name, way := range map[string]way{"serve": serve, "attach": attach} {
		t.Run(name, func(t *testing.T) { test(t, way) })
	}
}

func serve(t *testing.T, app *baton.App, sidecar *fake.Sidecar) {
	t.Helper()
	address, err := app.Listen()
	if err != nil {
		t.Fatal(err)
	}
	run(t, app, func(ctx context.Context) error { return app.Serve(ctx) })
	sidecar.Beside(t, address)
}

func attach(t *testing.T, app *baton.App, sidecar *fake.Sidecar) {
	t.Helper()
	run(t, app, app.Attach)
	sidecar.Attached(t, 1)
}

// run runs an app until the test ends.
func run(t *testing.T, app *baton.App, blocking func(context.Context) error) {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- blocking(context.Background()) }()
	t.Cleanup(func() {
		_ = app.Close()
		if err := <-ended; err != nil {
			t.Errorf("the app ended with %v", err)
		}
	})
}

// beside runs an app that leads the default group.
func beside(t *testing.T, way way, register func(*baton.App)) (*baton.App, *fake.Sidecar) {
	t.Helper()
	sidecar := fake.Start(t)
	app := newApp(t, sidecar, baton.Config{})
	register(app)
	way(t, app, sidecar)
	lead(t, sidecar)
	return app, sidecar
}

func lead(t *testing.T, sidecar *fake.Sidecar) uint64 {
	t.Helper()
	epoch, err := sidecar.Lead(t.Context(), "default", fake.Trust)
	if err != nil {
		t.Fatalf("lead: %v", err)
	}
	return epoch
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(60 * time.Second); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

func must[T any](t *testing.T) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// log is a list of events that several goroutines write.
type events chan string

func (e events) add(event string) { e <- event }

func (e events) want(t *testing.T, wanted ...string) {
	t.Helper()
	for _, event := range wanted {
		select {
		case got := <-e:
			if got != event {
				t.Fatalf("got %q, want %q", got, event)
			}
		case <-time.After(60 * time.Second):
			t.Fatalf("%q never came", event)
		}
	}
	select {
	case got := <-e:
		t.Fatalf("unexpected %q", got)
	default:
	}
}
