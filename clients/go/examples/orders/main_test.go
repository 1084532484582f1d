package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	pb "github.com/baton-sidecar/baton/clients/go/batonv1"
	"github.com/baton-sidecar/baton/clients/go/internal/fake"
)

// The test binary is the program too, when it is started with its address.
func TestMain(m *testing.M) {
	if os.Getenv("ORDERS_RUN") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// start runs the example in a process of its own, beside a fake that has it lead.
func start(t *testing.T) (sidecar *fake.Sidecar, ledger string) {
	t.Helper()
	sidecar, ledger = fake.Start(t), filepath.Join(t.TempDir(), "ledger")
	program := exec.Command(os.Args[0])
	program.Env = append(os.Environ(), "ORDERS_RUN=1", "ORDERS_LEDGER="+ledger, "ORDERS_STEP_SECONDS=0.05",
		"BATON_API_ADDRESS="+sidecar.Address)
	if testing.Verbose() {
		program.Stderr = os.Stderr
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	sidecar.Attached(t, 1)
	t.Cleanup(func() { // while the fake can still take leadership back
		if err := program.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		if err := program.Wait(); err != nil {
			t.Errorf("the program ended with %v", err)
		}
	})
	lead(t, sidecar)
	return sidecar, ledger
}

func lead(t *testing.T, sidecar *fake.Sidecar) {
	t.Helper()
	if _, err := sidecar.Lead(t.Context(), "default", fake.Trust); err != nil {
		t.Fatal(err)
	}
}

func deliver(t *testing.T, sidecar *fake.Sidecar, run *fake.Run) *pb.ExecuteResponse {
	t.Helper()
	answer, err := sidecar.Deliver(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// The report counts, and keeps what else is in its state; the flaky one needs three attempts.
func TestSchedules(t *testing.T) {
	sidecar, _ := start(t)
	for _, want := range []string{`{"report":1}`, `{"report":2}`} {
		answer := deliver(t, sidecar, sidecar.NewRun(pb.RunKind_RUN_KIND_SCHEDULE, "report", ""))
		if got := string(answer.GetSucceeded().GetResult()); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	flaky := sidecar.NewRun(pb.RunKind_RUN_KIND_TRIGGER, "flaky", "")
	for range 2 {
		if answer := deliver(t, sidecar, flaky); answer.GetFailed().GetMessage() == "" || !answer.GetFailed().GetRetryable() {
			t.Error(answer)
		}
	}
	if got := string(deliver(t, sidecar, flaky).GetSucceeded().GetResult()); got != `"succeeded at attempt 3"` {
		t.Error(got)
	}
}

// The counter goes on over terms, and a drain ends the singleton by itself.
func TestTheCoordinatorCountsOn(t *testing.T) {
	sidecar, _ := start(t)
	for _, until := range []string{`{"count":2}`, `{"count":3}`} {
		ended := make(chan *pb.ExecuteResponse, 1)
		go func() {
			answer, _ := sidecar.Deliver(context.Background(), sidecar.NewRun(pb.RunKind_RUN_KIND_SINGLETON, "coordinator", ""))
			ended <- answer
		}()
		for end := time.Now().Add(5 * time.Second); sidecar.Value("singleton-state:coordinator") != until; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("never counted to %s", until)
			}
		}
		sidecar.Drain("default")
		if answer := <-ended; answer.GetSucceeded() == nil {
			t.Error(answer)
		}
		if err := sidecar.Lose(t.Context(), "default", pb.LossReason_LOSS_REASON_RESIGNED); err != nil {
			t.Fatal(err)
		}
		lead(t, sidecar)
	}
}

// G5: every step of the order is done once, over two terms.
func TestAnOrderSurvivesTheEndOfATerm(t *testing.T) {
	sidecar, ledger := start(t)
	run := sidecar.NewRun(pb.RunKind_RUN_KIND_TRIGGER, "order-flow", `{"order":7}`)
	go func() {
		for sidecar.Seen(run.ID).Message != "charge" {
			time.Sleep(5 * time.Millisecond)
		}
		_ = sidecar.Lose(context.Background(), "default", pb.LossReason_LOSS_REASON_LEASE_LOST)
	}()
	if answer, err := sidecar.Deliver(t.Context(), run); err == nil {
		t.Fatalf("the first attempt was answered %v", answer)
	}
	lead(t, sidecar)
	answer := deliver(t, sidecar, run)
	if got := string(answer.GetSucceeded().GetResult()); got != `{"done":true,"order":7}` {
		t.Error(got)
	}
	if seen := sidecar.Seen(run.ID); seen.Progress != 1 || seen.Message != "notify" {
		t.Errorf("progress %+v", seen)
	}
	text, err := os.ReadFile(ledger)
	if err != nil {
		t.Fatal(err)
	}
	var steps []string
	attempts := map[uint32]bool{}
	for line := range strings.Lines(string(text)) {
		var done entry
		if err := json.Unmarshal([]byte(line), &done); err != nil {
			t.Fatal(err)
		}
		steps = append(steps, done.Step)
		attempts[done.Attempt] = true
	}
	if got := strings.Join(steps, " "); got != "reserve charge pack ship notify" || len(attempts) != 2 {
		t.Errorf("ledger: %s by attempts %v", got, attempts)
	}
}
