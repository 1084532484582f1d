// An example app: what a shop might leave to Baton. It behaves like the examples of the other clients, so that one
// cluster can mix them.
//
//	report       a schedule that counts its own runs in its owned state
//	flaky        a schedule whose first attempts fail
//	coordinator  a singleton: one in the whole cluster, its counter survives every change of leader
//	order-flow   five durable steps; each is recorded in the ledger once it is done
//
// Start it beside a sidecar: go run ./examples/orders --sidecar 127.0.0.1:9401
// With --address 127.0.0.1:50051 it serves AppCallback there instead of attaching.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"time"

	baton "github.com/baton-sidecar/baton/clients/go"
	pb "github.com/baton-sidecar/baton/clients/go/batonv1"
)

func main() {
	address := flag.String("address", "", "serve AppCallback at this address (BATON_APP_ADDRESS); else attach")
	sidecar := flag.String("sidecar", "", "the sidecar (BATON_API_ADDRESS, 127.0.0.1:9401)")
	flag.Parse()
	if err := run(baton.Config{Address: *address, Sidecar: *sidecar}); err != nil {
		slog.Error("orders", "error", err)
		os.Exit(1)
	}
}

func run(config baton.Config) error {
	app, err := baton.New(config)
	if err != nil {
		return err
	}
	app.OnBecomeLeader(baton.DefaultGroup, become)
	app.OnLoseLeadership(baton.DefaultGroup, lose)
	app.Schedule("report", report)
	app.Schedule("flaky", flaky)
	app.Schedule("order-flow", orderFlow)
	app.Singleton("coordinator", coordinator)
	return app.Run()
}

func become(_ context.Context, cluster baton.ClusterContext) error {
	slog.Info("leader", "group", cluster.Group, "epoch", cluster.Epoch)
	return nil
}

func lose(_ context.Context, cluster baton.ClusterContext, reason pb.LossReason) error {
	slog.Info("no longer leader", "group", cluster.Group, "epoch", cluster.Epoch, "reason", reason)
	return nil
}

func report(_ context.Context, attempt *baton.Attempt) (any, error) {
	state := map[string]any{}
	if err := attempt.State().JSON(&state); err != nil {
		return nil, err
	}
	before, _ := state["reports"].(float64)
	number := int(before) + 1
	state["reports"] = number
	slog.Info("report", "number", number, "due", attempt.ScheduledAt)
	return baton.Result{Value: map[string]int{"report": number}, State: state}, nil
}

func flaky(_ context.Context, attempt *baton.Attempt) (any, error) {
	if attempt.Number < 3 {
		return nil, baton.Retry{Message: fmt.Sprintf("attempt %d always fails", attempt.Number)}
	}
	slog.Info("flaky succeeded", "attempt", attempt.Number)
	return fmt.Sprintf("succeeded at attempt %d", attempt.Number), nil
}

func coordinator(ctx context.Context, attempt *baton.Attempt) (any, error) {
	var state struct {
		Count int `json:"count"`
	}
	if err := attempt.State().JSON(&state); err != nil {
		return nil, err
	}
	for {
		state.Count++
		if err := attempt.PutState(ctx, state); err != nil {
			return nil, err
		}
		if err := attempt.Heartbeat(ctx, baton.Message(fmt.Sprintf("count %d", state.Count))); err != nil {
			return nil, err
		}
		slog.Info("coordinator counts", "count", state.Count)
		select {
		case <-time.After(time.Second):
		case <-attempt.Draining(): // leave at once: nobody has to wait
			return nil, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func orderFlow(ctx context.Context, attempt *baton.Attempt) (any, error) {
	payload := struct {
		Order any `json:"order"`
	}{attempt.RunID}
	if err := attempt.JSON(&payload); err != nil {
		return nil, baton.Fail{Message: "the payload is not an order"}
	}
	for number, name := range []string{"reserve", "charge", "pack", "ship", "notify"} {
		_, err := baton.Step(ctx, attempt, name, func(ctx context.Context) (string, error) {
			return name, perform(ctx, entry{payload.Order, attempt.RunID, name, attempt.Number})
		})
		if err != nil {
			return nil, err
		}
		progress := baton.Progress(float64(number+1) / 5)
		if err := attempt.Heartbeat(ctx, progress, baton.Message(name)); err != nil {
			return nil, err
		}
	}
	return map[string]any{"order": payload.Order, "done": true}, nil
}

// entry is one line of the ledger.
type entry struct {
	Order   any    `json:"order"`
	Run     uint64 `json:"run"`
	Step    string `json:"step"`
	Attempt uint32 `json:"attempt"`
}

// perform is one step of an order: it takes its time, then leaves a line in the ledger.
func perform(ctx context.Context, done entry) error {
	seconds, err := strconv.ParseFloat(cmp.Or(os.Getenv("ORDERS_STEP_SECONDS"), "0.2"), 64)
	if err != nil {
		return err
	}
	select {
	case <-time.After(time.Duration(seconds * float64(time.Second))):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if path := os.Getenv("ORDERS_LEDGER"); path != "" {
		if err := record(path, done); err != nil {
			return err
		}
	}
	slog.Info("order", "order", done.Order, "step", done.Step)
	return nil
}

func record(path string, done entry) error {
	line, err := json.Marshal(done)
	if err != nil {
		return err
	}
	ledger, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = ledger.Write(append(line, '\n'))
	return errors.Join(err, ledger.Sync(), ledger.Close())
}
