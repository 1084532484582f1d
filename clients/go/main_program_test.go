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

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

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

// launch starts the program, serving or attached, and has it lead.
func launch(t *testing.T, sidecar *fake.Sidecar, api, drain string, serves bool) *process {
	t.Helper()
	launched := &process{Cmd: exec.Command(os.Args[0])}
	launched.Env = append(os.Environ(), "TEST_DRAIN="+drain, "BATON_API_ADDRESS="+api)
	address := "unix://" + t.TempDir() + "/app.sock"
	if serves {
		launched.Env = append(launched.Env, "BATON_APP_ADDRESS="+address)
	}
	launched.Stdout, launched.Stderr = &launched.output, os.Stderr
	if err := launched.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = launched.Process.Kill() })
	if serves {
		sidecar.Beside(t, address)
	} else {
		sidecar.Attached(t, 1)
	}
	lead(t, sidecar)
	return launched
}

// eachProgram runs a test with a program that serves, and with one that attaches.
func eachProgram(t *testing.T, test func(t *testing.T, serves bool)) {
	t.Run("serve", func(t *testing.T) { test(t, true) })
	t.Run("attach", func(t *testing.T) { test(t, false) })
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
	eachProgram(t, testAfterSIGTERMItServesUntilLeadershipIsHandedOver)
}

func testAfterSIGTERMItServesUntilLeadershipIsHandedOver(t *testing.T, serves bool) {
	sidecar := fake.Start(t)
	launched := launch(t, sidecar, sidecar.Address, "20s", serves)
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
	launched := launch(t, fake.Start(t), "127.0.0.1:1", "300ms", true)
	launched.signal(t, syscall.SIGTERM)
	if took := launched.ended(t, "lost LOSS_REASON_SHUTDOWN\n"); took < 250*time.Millisecond || took > 30*time.Second {
		t.Errorf("took %v", took)
	}
}

// Runs that do not end are cancelled when the drain time is over, and answered so that no retry is used.
func TestTheDrainTimeBoundsTheRunsOfAnAttachedProgram(t *testing.T) {
	sidecar := fake.Start(t)
	launched := launch(t, sidecar, sidecar.Address, "300ms", false)
	process := sidecar.Attached(t, 1)[0]
	ended := make(chan error, 1)
	go func() {
		_, err := sidecar.Execute(context.Background(), "stuck", "")
		ended <- err
	}()
	eventually(t, "the run has begun", func() bool { return sidecar.Said("stuck") == "begun" })
	launched.signal(t, syscall.SIGTERM)
	if err := <-ended; status.Code(err) != codes.Unavailable {
		t.Errorf("the stuck run was answered %v", err)
	}
	launched.ended(t, "lost LOSS_REASON_SHUTDOWN\n")
	<-process.Over()
	if process.Capacity() != 0 {
		t.Error("the process did not say that it leaves")
	}
}

// An impatient operator is obeyed.
func TestASecondSignalDoesNotWait(t *testing.T) {
	eachProgram(t, testASecondSignalDoesNotWait)
}

func testASecondSignalDoesNotWait(t *testing.T, serves bool) {
	sidecar := fake.Start(t)
	launched := launch(t, sidecar, sidecar.Address, "60s", serves)
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
