package baton_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	baton "github.com/baton-sidecar/baton/clients/go"
	pb "github.com/baton-sidecar/baton/clients/go/batonv1"
	"github.com/baton-sidecar/baton/clients/go/internal/fake"
)

// The test binary is the program under test too, when it is told how long to drain.
func TestMain(m *testing.M) {
	if drain := os.Getenv("TEST_DRAIN"); drain != "" {
		program(drain)
		return
	}
	os.Exit(m.Run())
}

func program(drain string) {
	length, err := time.ParseDuration(drain)
	if err != nil {
		panic(err)
	}
	app, err := baton.New(baton.Config{Drain: length, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		panic(err)
	}
	app.Schedule("slow", func(ctx context.Context, attempt *baton.Attempt) (any, error) {
		if err := attempt.Heartbeat(ctx, baton.Message("begun")); err != nil {
			return nil, err
		}
		<-attempt.Draining()
		select {
		case <-time.After(200 * time.Millisecond):
			return "finished", nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	})
	app.Schedule("stuck", func(ctx context.Context, attempt *baton.Attempt) (any, error) {
		if err := attempt.Heartbeat(ctx, baton.Message("begun")); err != nil {
			return nil, err
		}
		<-ctx.Done()
		return nil, context.Cause(ctx)
	})
	app.OnLoseLeadership("", func(_ context.Context, _ baton.ClusterContext, reason pb.LossReason) error {
		fmt.Println("lost", reason)
		return nil
	})
	if err := app.Run(); err != nil {
		panic(err)
	}
}

type process struct {
	*exec.Cmd
	output strings.Builder
}

// launch starts the program and has it lead.
func launch(t *testing.T, sidecar *fake.Sidecar, api, drain string) *process {
	t.Helper()
	address := "unix://" + t.TempDir() + "/app.sock"
	launched := &process{Cmd: exec.Command(os.Args[0])}
	launched.Env = append(os.Environ(), "TEST_DRAIN="+drain, "BATON_APP_ADDRESS="+address, "BATON_API_ADDRESS="+api)
	launched.Stdout, launched.Stderr = &launched.output, os.Stderr
	if err := launched.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = launched.Process.Kill() })
	sidecar.Beside(t, address)
	lead(t, sidecar)
	return launched
}

func (p *process) signal(t *testing.T, signal os.Signal) {
	t.Helper()
	if err := p.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
}

// ended waits for the program, and tells how long that took.
func (p *process) ended(t *testing.T, output string) time.Duration {
	t.Helper()
	begun := time.Now()
	if err := p.Wait(); err != nil || p.output.String() != output {
		t.Errorf("ended with %v and %q, want %q", err, p.output.String(), output)
	}
	return time.Since(begun)
}

// G1: runs finish, OnLoseLeadership is answered, and only then the process ends.
func TestAfterSIGTERMItServesUntilLeadershipIsHandedOver(t *testing.T) {
	sidecar := fake.Start(t)
	launched := launch(t, sidecar, sidecar.Address, "20s")
	answers := make(chan *pb.ExecuteResponse, 1)
	go func() {
		answer, _ := sidecar.Execute(context.Background(), "slow", "")
		answers <- answer
	}()
	eventually(t, "the run has begun", func() bool { return sidecar.Said("slow") == "begun" })
	launched.signal(t, syscall.SIGTERM)
	if answer := <-answers; string(answer.GetSucceeded().GetResult()) != `"finished"` {
		t.Error(answer)
	}
	launched.ended(t, "lost LOSS_REASON_RESIGNED\n")
}

// A sidecar that does not answer any more never keeps the process.
func TestTheDrainTimeBoundsTheWait(t *testing.T) {
	launched := launch(t, fake.Start(t), "127.0.0.1:1", "300ms")
	launched.signal(t, syscall.SIGTERM)
	if took := launched.ended(t, "lost LOSS_REASON_SHUTDOWN\n"); took < 250*time.Millisecond || took > 30*time.Second {
		t.Errorf("took %v", took)
	}
}

// An impatient operator is obeyed.
func TestASecondSignalDoesNotWait(t *testing.T) {
	sidecar := fake.Start(t)
	launched := launch(t, sidecar, sidecar.Address, "60s")
	ended := make(chan error, 1)
	go func() {
		_, err := sidecar.Execute(context.Background(), "stuck", "")
		ended <- err
	}()
	eventually(t, "the run has begun", func() bool { return sidecar.Said("stuck") == "begun" })
	launched.signal(t, syscall.SIGINT)
	eventually(t, "the hand-over has begun", func() bool { return sidecar.Draining("default") })
	launched.signal(t, syscall.SIGINT)
	if took := launched.ended(t, "lost LOSS_REASON_SHUTDOWN\n"); took > 30*time.Second {
		t.Errorf("took %v", took)
	}
	if err := <-ended; err == nil {
		t.Error("the stuck run succeeded")
	}
}
