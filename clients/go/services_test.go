package baton_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"

	baton "github.com/baton-sidecar/baton/clients/go"
	pb "github.com/baton-sidecar/baton/clients/go/batonv1"
	"github.com/baton-sidecar/baton/clients/go/internal/fake"
)

func connected(t *testing.T) (*baton.Sidecar, *fake.Sidecar) {
	t.Helper()
	sidecar := fake.Start(t)
	client := must[*baton.Sidecar](t)(baton.Connect(baton.Config{Sidecar: sidecar.Address}))
	t.Cleanup(func() { _ = client.Close() })
	return client, sidecar
}

func TestStateIsReadAndWritten(t *testing.T) {
	client, _ := connected(t)
	ctx, state := t.Context(), client.State
	if _, err := state.Get(ctx, "a"); !errors.Is(err, baton.ErrNotFound) {
		t.Fatal(err)
	}
	first := must[baton.Entry](t)(state.Put(ctx, "a", map[string]int{"n": 1}, baton.IfVersion(0), baton.TTL(time.Hour)))
	if string(first.Value) != `{"n":1}` || first.Version == 0 || first.ExpiresAt.Before(time.Now()) {
		t.Errorf("wrote %+v", first)
	}
	if _, err := state.Put(ctx, "a", 2, baton.IfVersion(0)); !errors.Is(err, baton.ErrConflict) {
		t.Error(err)
	}
	must[baton.Entry](t)(state.Put(ctx, "b", []byte("raw")))
	must[baton.Entry](t)(state.Put(ctx, "bb", "text", baton.RequestID("mine")))
	var read struct{ N int }
	if entry := must[baton.Entry](t)(state.GetStrong(ctx, "a")); entry.JSON(&read) != nil || read.N != 1 {
		t.Errorf("read %+v", entry)
	}
	var keys []string
	for entry, err := range state.List(ctx, "") {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, entry.Key)
	}
	if !slices.Equal(keys, []string{"a", "b", "bb"}) {
		t.Errorf("listed %v", keys)
	}
	if size := must[uint64](t)(state.Size(ctx, "b")); size != 2 {
		t.Errorf("size %d", size)
	}
	if _, err := state.Delete(ctx, "a", baton.IfVersion(99)); !errors.Is(err, baton.ErrConflict) {
		t.Error(err)
	}
	if !must[bool](t)(state.Delete(ctx, "a")) || must[bool](t)(state.Delete(ctx, "a")) || must[bool](t)(state.Has(ctx, "a")) {
		t.Error("deleting does not delete once")
	}
	if deleted := must[uint64](t)(state.Clear(ctx, "b")); deleted != 2 {
		t.Errorf("cleared %d", deleted)
	}
}

// No change of another writer is lost.
func TestModifyIsAtomic(t *testing.T) {
	client, sidecar := connected(t)
	var writers sync.WaitGroup
	for range 4 {
		writers.Go(func() {
			for range 5 {
				_, err := baton.Modify(t.Context(), client.State, "n", func(n int, exists bool) (int, error) {
					if exists != (n > 0) {
						t.Errorf("%d, but exists is %v", n, exists)
					}
					return n + 1, nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	if value := sidecar.Value("n"); value != "20" {
		t.Errorf("counted to %s", value)
	}
	stop := errors.New("stop")
	_, err := baton.Modify(t.Context(), client.State, "n", func(n int, _ bool) (int, error) { return 0, stop })
	if !errors.Is(err, stop) || sidecar.Value("n") != "20" {
		t.Errorf("%v, and now %s", err, sidecar.Value("n"))
	}
	if _, err := baton.Modify(t.Context(), client.State, "n", func(s string, _ bool) (string, error) { return s, nil }); err == nil {
		t.Error("a number became a text")
	}
}

// A stream that breaks is opened again after the last version seen; before any is known it is an error.
func TestWatchGoesOnByItself(t *testing.T) {
	client, sidecar := connected(t)
	for _, key := range []string{"a", "b", "c"} {
		must[baton.Entry](t)(client.State.Put(t.Context(), key, 1))
	}
	must[bool](t)(client.State.Delete(t.Context(), "a"))
	var told []string
	changes := must[iter.Seq2[baton.Change, error]](t)
	for change, err := range changes(client.State.WatchAfter(t.Context(), "", 0)) {
		if err != nil {
			t.Fatal(err)
		}
		if change.Deleted {
			told = append(told, "-"+change.Key)
			break
		}
		told = append(told, change.Key)
	}
	if !slices.Equal(told, []string{"a", "b", "c", "-a"}) {
		t.Errorf("told %v", told)
	}
	spoken := changes(client.State.Watch(t.Context(), ""))
	must[baton.Entry](t)(client.State.Put(t.Context(), "d", 1)) // after the watch was in place, before it is read
	for change, err := range spoken {
		if err != nil || change.Key != "d" {
			t.Error(change, err)
		}
		break
	}
	sidecar.Refuse(refusal(t, codes.Unavailable, &errdetails.ErrorInfo{Reason: "StateLoadFailed", Domain: "baton"}))
	for change, err := range changes(client.State.WatchAfter(t.Context(), "", 0)) { // Postgres was away
		if err != nil || change.Key != "a" {
			t.Error(change, err)
		}
		break
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	ending := changes(client.State.WatchAfter(ctx, "", 5))
	sidecar.Stop()
	for _, err := range ending {
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	}
	if _, err := client.State.Watch(t.Context(), ""); !errors.Is(err, baton.ErrUnavailable) {
		t.Error(err)
	}
}

// Before any version is known a broken stream is an error: going on would lose changes silently.
func TestAWatchThatWasToldNothingEndsWithItsStream(t *testing.T) {
	client, sidecar := connected(t)
	changes := must[iter.Seq2[baton.Change, error]](t)(client.State.Watch(t.Context(), ""))
	sidecar.Stop()
	for _, err := range changes {
		if !errors.Is(err, baton.ErrUnavailable) || !baton.Retryable(err) {
			t.Error(err)
		}
	}
}

// Ids rise, come from blocks, and no block is used for longer than a second.
func TestIdsComeFromBlocks(t *testing.T) {
	client, sidecar := connected(t)
	last := uint64(0)
	for range 150 {
		id := must[uint64](t)(client.NextID(t.Context()))
		if id <= last {
			t.Fatalf("%d after %d", id, last)
		}
		last = id
	}
	if calls := sidecar.Calls("/baton.v1.Ids/Generate"); calls != 2 {
		t.Errorf("%d blocks for 150 ids", calls)
	}
	time.Sleep(1100 * time.Millisecond)
	must[uint64](t)(client.NextID(t.Context()))
	if calls := sidecar.Calls("/baton.v1.Ids/Generate"); calls != 3 {
		t.Errorf("an old block was used")
	}
}

func TestSchedules(t *testing.T) {
	client, sidecar := connected(t)
	ctx, schedules, schedule := t.Context(), client.Schedules, must[*pb.Schedule](t)
	definition := &pb.Schedule{Name: "report", Timing: &pb.Schedule_Cron{Cron: "@daily"}}
	for name, got := range map[string]*pb.Schedule{
		"create": schedule(schedules.Create(ctx, definition)), "update": schedule(schedules.Update(ctx, definition)),
		"get": schedule(schedules.Get(ctx, "report")), "resume": schedule(schedules.Resume(ctx, "report")),
		"pause": schedule(schedules.Pause(ctx, "report", "why")),
	} {
		if got.GetName() != "report" || name == "pause" && got.GetPauseNote() != "why" {
			t.Errorf("%s: %v", name, got)
		}
	}
	if err := schedules.Delete(ctx, "report"); err != nil {
		t.Error(err)
	}
	id := must[uint64](t)(schedules.Trigger(ctx, "report", map[string]int{"n": 1}, baton.RequestID("r")))
	if again := must[uint64](t)(schedules.Trigger(ctx, "report", nil, baton.RequestID("r"))); again != id {
		t.Error("the same request made two runs")
	}
	if run := sidecar.Seen(id); string(run.Payload) != `{"n":1}` {
		t.Errorf("payload %s", run.Payload)
	}
	if other := must[uint64](t)(schedules.Trigger(ctx, "report", nil)); other == id {
		t.Error("two requests made one run")
	}
	if made := must[[]uint64](t)(schedules.Backfill(ctx, "report", time.Unix(0, 0), time.Unix(9, 0))); len(made) != 2 {
		t.Errorf("backfilled %v", made)
	}
	ticks := must[[]time.Time](t)(schedules.Preview(ctx, "report", 2, time.Unix(0, 0)))
	unstored := must[[]time.Time](t)(schedules.PreviewOf(ctx, definition, 2, time.Unix(0, 0)))
	if len(ticks) != 2 || !ticks[1].Equal(time.Unix(7200, 0)) || !slices.Equal(ticks, unstored) {
		t.Errorf("ticks %v and %v", ticks, unstored)
	}
	for want, list := range map[int]func(func(*pb.Schedule, error) bool){3: schedules.List(ctx), 4: schedules.ListAll(ctx)} {
		found := 0
		for _, err := range list {
			if err != nil {
				t.Fatal(err)
			}
			found++
		}
		if found != want {
			t.Errorf("listed %d, want %d", found, want)
		}
	}
}

// What stands already comes with the refusal.
func TestWhatStandsAlreadyIsTold(t *testing.T) {
	client, sidecar := connected(t)
	sidecar.Refuse(refusal(t, codes.AlreadyExists, &errdetails.ErrorInfo{
		Reason: "ValueStands", Metadata: map[string]string{"existing": "Im9uZSI="},
	}))
	_, err := client.Deferreds.Complete(t.Context(), "token", "two")
	var failed *baton.Error
	if !errors.As(err, &failed) || failed.Kind != baton.ErrAlreadyExists || string(failed.Existing) != `"one"` {
		t.Errorf("got %#v", err)
	}
}

func TestRunsSingletonsAndLeadership(t *testing.T) {
	app, sidecar := beside(t, serve, func(*baton.App) {})
	ctx := t.Context()
	id := must[uint64](t)(app.Schedules.Trigger(ctx, "report", nil))
	if run := must[*pb.Run](t)(app.Runs.Get(ctx, id)); run.GetName() != "report" {
		t.Error(run)
	}
	for run, err := range app.Runs.List(ctx, baton.RunFilter{Name: "report"}) {
		if err != nil || run.GetRunId() != id {
			t.Error(run, err)
		}
	}
	if !must[*pb.Run](t)(app.Runs.Cancel(ctx, id, "enough")).GetCancelRequested() {
		t.Error("not cancelled")
	}
	if must[*pb.Run](t)(app.Runs.Retry(ctx, id)).GetState() != pb.RunState_RUN_STATE_QUEUED {
		t.Error("not queued again")
	}
	if must[*pb.Singleton](t)(app.Singletons.Get(ctx, "a")).GetName() != "a" || len(must[[]*pb.Singleton](t)(app.Singletons.List(ctx))) != 3 {
		t.Error("singletons are not read")
	}
	if must[*pb.Leader](t)(app.Leadership.Get(ctx, "default")).GetEpoch() != app.Epoch("") || len(must[[]*pb.Leader](t)(app.Leadership.List(ctx))) != 1 {
		t.Error("leadership is not read")
	}
	must[*pb.Leader](t)(app.Leadership.Resign(ctx, "default"))
	for leader, err := range app.Leadership.Watch(ctx, "default") {
		if err != nil {
			t.Fatal(err)
		}
		if !leader.GetIsLeader() {
			break
		}
	}
	// Its own callback may come a moment after what others are told.
	eventually(t, "no leader after it resigned", func() bool { return !app.IsLeader("") })
	_ = sidecar
}
