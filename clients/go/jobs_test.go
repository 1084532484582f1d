package baton_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	baton "github.com/baton-sidecar/baton/clients/go"
	pb "github.com/baton-sidecar/baton/clients/go/batonv1"
	"github.com/baton-sidecar/baton/clients/go/internal/fake"
)

// worker runs an app that leads nothing.
func worker(t *testing.T, way way, register func(*baton.App)) (*baton.App, *fake.Sidecar) {
	t.Helper()
	sidecar := fake.Start(t)
	app := newApp(t, sidecar, baton.Config{})
	register(app)
	way(t, app, sidecar)
	return app, sidecar
}

func wait(t *testing.T, app *baton.App, id uint64) *pb.Job {
	t.Helper()
	return must[*pb.Job](t)(app.Jobs.Wait(t.Context(), id))
}

// A job needs no term: it is submitted, executed with all that belongs to it, and waited for.
func TestAJobIsExecuted(t *testing.T) { eachWay(t, testAJobIsExecuted) }

func testAJobIsExecuted(t *testing.T, way way) {
	seen := make(chan *baton.Attempt, 1)
	app, sidecar := worker(t, way, func(app *baton.App) {
		app.Job("send-mail", func(ctx context.Context, attempt *baton.Attempt) (any, error) {
			seen <- attempt
			paid, err := baton.Step(ctx, attempt, "charge", one)
			if err != nil {
				return nil, err
			}
			return paid + 1, attempt.Heartbeat(ctx, baton.Progress(0.5))
		}, baton.JobDefaults{Queue: "mail", Priority: baton.PriorityHigh, Timeout: time.Hour, Retry: baton.RetryPolicy{Attempts: 5}})
	})
	submitted := must[baton.Submitted](t)(app.Jobs.Submit(t.Context(), "send-mail", map[string]string{"to": "a"}, baton.JobOptions{
		Key: "a", Labels: map[string]string{"tenant": "7"}, Batch: "b", Priority: baton.PriorityLow,
	}))
	if job := wait(t, app, submitted.ID); job.GetOutcome() != pb.Outcome_OUTCOME_SUCCEEDED || string(job.GetResult()) != "2" {
		t.Errorf("ended as %v", job)
	}
	attempt := <-seen
	info := attempt.Job
	if attempt.Kind != pb.RunKind_RUN_KIND_JOB || attempt.Number != 1 || attempt.Cluster.Group != "" || attempt.Cluster.IsLeader ||
		attempt.Cluster.Cluster != "test" || attempt.Cluster.EntityType != "job" || attempt.Cluster.EntityID != "a" {
		t.Errorf("attempt %+v", attempt)
	}
	if info == nil || info.Queue != "mail" || info.Key != "a" || info.Priority != baton.PriorityLow || info.Batch != "b" ||
		info.Labels["tenant"] != "7" || info.Rescues != 0 || info.SubmittedAt.IsZero() {
		t.Errorf("job %+v", info)
	}
	spec := sidecar.Submissions()[0].GetJobs()[0]
	if spec.GetRetry().GetAttempts() != 5 || spec.GetTimeout().AsDuration() != time.Hour || spec.GetQueue() != "mail" {
		t.Errorf("the defaults of the app are missing: %v", spec)
	}
}

// A snoozed job comes again at its time, not before, and keeps the state of its key; its follow-ups are submitted.
func TestSnoozeAndFollowUps(t *testing.T) {
	acts := make(events, 10)
	app, sidecar := worker(t, attach, func(app *baton.App) {
		app.Job("poll", func(ctx context.Context, attempt *baton.Attempt) (any, error) {
			var polls int
			if err := attempt.State().JSON(&polls); err != nil {
				return nil, err
			}
			acts.add(fmt.Sprint("poll ", polls))
			switch polls {
			case 0:
				return nil, baton.Snooze{After: time.Hour, State: polls + 1}
			case 1:
				return nil, baton.Snooze{Until: time.Date(2030, 1, 1, 3, 0, 0, 0, time.UTC), State: polls + 1}
			}
			follow := baton.Job{Name: "done", Payload: polls, Options: baton.JobOptions{Delay: time.Minute}}
			return baton.Result{Value: polls, State: 0, Jobs: []baton.Job{follow}}, nil
		})
		app.Job("done", func(ctx context.Context, attempt *baton.Attempt) (any, error) {
			acts.add("done " + string(attempt.Payload) + " in " + attempt.Job.Queue)
			return nil, attempt.PutState(ctx, 1)
		}, baton.JobDefaults{Queue: "last"})
	})
	polling := must[baton.Submitted](t)(app.Jobs.Submit(t.Context(), "poll", nil, baton.JobOptions{Key: "7"}))
	waits := func() bool {
		return must[*pb.Job](t)(app.Jobs.Get(t.Context(), polling.ID)).GetState() == pb.RunState_RUN_STATE_WAITING
	}
	for _, next := range []string{"poll 0", "poll 1"} {
		acts.want(t, next)
		eventually(t, "the job waits", waits)
		sidecar.Advance(59 * time.Minute)
		acts.want(t)
		sidecar.Advance(time.Hour)
	}
	acts.want(t, "poll 2")
	if job := wait(t, app, polling.ID); job.GetAttempt() != 3 || job.GetFailures() != 0 {
		t.Errorf("ended as %v", job)
	}
	acts.want(t)
	sidecar.Advance(time.Minute)
	acts.want(t, "done 2 in last")
	if value := sidecar.Value("job-state:poll/7"); value != "0" {
		t.Errorf("state %s", value)
	}
	for job, err := range app.Jobs.List(t.Context(), &pb.JobFilter{Name: "done"}) {
		if err != nil {
			t.Fatal(err)
		}
		if ended := wait(t, app, job.GetJobId()); ended.GetError() != "baton: a job without a key has no state" {
			t.Errorf("ended as %v", ended)
		}
	}
}

// G14: a job is cancelled when its stream breaks, and is delivered again when the process is back.
func TestAJobSurvivesABrokenStream(t *testing.T) {
	acts := make(events, 10)
	app, sidecar := worker(t, attach, func(app *baton.App) {
		app.Job("slow", func(ctx context.Context, attempt *baton.Attempt) (any, error) {
			if attempt.Number == 2 {
				return attempt.Job.Rescues, nil
			}
			acts.add("begun")
			<-ctx.Done()
			acts.add(attempt.CancelReason())
			return nil, ctx.Err()
		})
	})
	submitted := must[baton.Submitted](t)(app.Jobs.Submit(t.Context(), "slow", nil))
	acts.want(t, "begun")
	sidecar.Attached(t, 1)[0].Break(status.Error(codes.Unavailable, "gone"))
	acts.want(t, baton.CancelDetached)
	if job := wait(t, app, submitted.ID); string(job.GetResult()) != "1" || job.GetFailures() != 0 {
		t.Errorf("ended as %v", job)
	}
}

// G18: a stopping app takes no new job, lets the running one finish, and only then leaves.
func TestAStoppingAppFinishesItsJobs(t *testing.T) {
	sidecar, acts := fake.Start(t), make(events, 10)
	app := newApp(t, sidecar, baton.Config{})
	release := make(chan struct{})
	app.Job("slow", func(ctx context.Context, attempt *baton.Attempt) (any, error) {
		acts.add("begun")
		<-attempt.Draining()
		acts.add("draining")
		<-release
		return "finished", ctx.Err()
	})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- app.Attach(ctx) }()
	process := sidecar.Attached(t, 1)[0]
	client := must[*baton.Sidecar](t)(baton.Connect(baton.Config{Sidecar: sidecar.Address}))
	defer func() { _ = client.Close() }()
	running := must[baton.Submitted](t)(client.Jobs.Submit(t.Context(), "slow", nil))
	acts.want(t, "begun")
	stop()
	acts.want(t, "draining")
	eventually(t, "the process says that it leaves", func() bool { return process.Capacity() == 0 })
	request := &pb.ExecuteRequest{Context: &pb.ClusterContext{EntityType: "job"}, RunId: 1, Kind: pb.RunKind_RUN_KIND_JOB, Name: "slow"}
	if _, err := process.Execute(t.Context(), request); status.Code(err) != codes.Unavailable {
		t.Errorf("a new job was answered %v", err)
	}
	close(release)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	<-process.Over()
	if job := must[*pb.Job](t)(client.Jobs.Wait(t.Context(), running.ID)); string(job.GetResult()) != `"finished"` {
		t.Errorf("ended as %v", job)
	}
}

// Submit is repeated with the same id while the sidecar is away; many are stored by one call; a duplicate is named.
func TestSubmitting(t *testing.T) {
	client, sidecar := connected(t)
	ctx, jobs := t.Context(), client.Jobs
	sidecar.Refuse(refusal(t, codes.Unavailable))
	unique := baton.JobOptions{Unique: &baton.JobUnique{Key: "u"}}
	first := must[baton.Submitted](t)(jobs.Submit(ctx, "mail", 1, unique))
	if again := must[baton.Submitted](t)(jobs.Submit(ctx, "mail", 1, unique)); !again.Duplicate || again.ID != first.ID {
		t.Errorf("%v after %v", again, first)
	}
	due := time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC)
	many := must[[]baton.Submitted](t)(jobs.SubmitMany(ctx, []baton.Job{{Name: "a"}, {Name: "b", Options: baton.JobOptions{DueAt: due}}}))
	if len(many) != 2 || many[0].ID == many[1].ID || many[0].Duplicate {
		t.Errorf("submitted %v", many)
	}
	must[[]baton.Submitted](t)(jobs.SubmitBatch(ctx, "night", []baton.Job{{Name: "a"}, {Name: "a"}}, &baton.Job{Name: "report"}))
	requests := sidecar.Submissions()
	if last := requests[3]; last.GetBatch() != "night" || last.GetOnComplete().GetName() != "report" || last.GetJobs()[1].GetBatch() != "night" {
		t.Errorf("request %v", last)
	}
	if requests[2].GetJobs()[1].GetDueAt().AsTime() != due || requests[0].GetRequestId() == requests[1].GetRequestId() {
		t.Errorf("requests %v", requests)
	}
	if batch := must[*pb.JobsGetBatchResponse](t)(jobs.Batch(ctx, "night")); batch.GetTotal() != 2 {
		t.Errorf("batch %v", batch)
	}
	if _, err := jobs.Submit(ctx, "mail", 1, baton.JobOptions{DueAt: due, Delay: time.Hour}); err == nil {
		t.Error("due twice")
	}
}

// Jobs are watched, listed, cancelled, moved; dead letters are listed, counted, replayed and discarded.
func TestJobsAreSteered(t *testing.T) {
	app, _ := worker(t, attach, func(app *baton.App) {
		app.Job("fail", func(context.Context, *baton.Attempt) (any, error) { return nil, baton.Fail{Message: "never"} })
		app.Job("later", nothing)
	})
	ctx, jobs := t.Context(), app.Jobs
	dead := must[baton.Submitted](t)(jobs.Submit(ctx, "fail", nil))
	if job := wait(t, app, dead.ID); job.GetOutcome() != pb.Outcome_OUTCOME_FAILED || job.GetError() != "never" {
		t.Errorf("ended as %v", job)
	}
	var letters []uint64
	for job, err := range jobs.Dead(ctx, nil) {
		letters = append(letters, must[*pb.Job](t)(job, err).GetJobId())
	}
	if !slices.Equal(letters, []uint64{dead.ID}) {
		t.Errorf("dead letters %v", letters)
	}
	all := &pb.JobFilter{Name: "fail"}
	for want, count := range map[uint32]func() (uint32, error){
		1: func() (uint32, error) { return jobs.ReplayAll(ctx, all, true) },
		0: func() (uint32, error) { return jobs.Replay(ctx, 1) },
	} {
		if got := must[uint32](t)(count()); got != want {
			t.Errorf("%d dead letters, want %d", got, want)
		}
	}
	must[uint32](t)(jobs.Replay(ctx, dead.ID))
	if job := wait(t, app, dead.ID); job.GetAttempt() != 2 {
		t.Errorf("replayed: %v", job)
	}
	if counted, removed := must[uint32](t)(jobs.DiscardAll(ctx, all, true)), must[uint32](t)(jobs.Discard(ctx, dead.ID)); counted != 1 || removed != 1 {
		t.Errorf("discarded %d of %d", removed, counted)
	}
	later := baton.JobOptions{Delay: time.Hour}
	first, second := must[baton.Submitted](t)(jobs.Submit(ctx, "later", nil, later)), must[baton.Submitted](t)(jobs.Submit(ctx, "later", nil, later))
	if cancelled, requested, err := jobs.Cancel(ctx, "not needed", first.ID); cancelled != 1 || requested != 0 || err != nil {
		t.Error(cancelled, requested, err)
	}
	moved := must[*pb.Job](t)(jobs.Reschedule(ctx, second.ID, time.Date(2029, 1, 1, 0, 0, 0, 0, time.UTC)))
	if moved.GetDueAt().AsTime().Year() != 2029 {
		t.Errorf("moved %v", moved)
	}
	var states []pb.RunState
	for job, err := range jobs.Watch(ctx, second.ID) {
		states = append(states, must[*pb.Job](t)(job, err).GetState())
	}
	if len(states) == 0 || states[len(states)-1] != pb.RunState_RUN_STATE_ENDED {
		t.Errorf("watched %v", states)
	}
	if cancelled, _, err := jobs.CancelAll(ctx, "", &pb.JobFilter{Name: "later"}); cancelled != 0 || err != nil {
		t.Error(cancelled, err)
	}
	if _, err := jobs.Get(ctx, 1); !errors.Is(err, baton.ErrNotFound) {
		t.Error(err)
	}
}

// Queues are read, paused and resumed.
func TestQueues(t *testing.T) {
	client, _ := connected(t)
	ctx, jobs := t.Context(), client.Jobs
	if queues := must[[]*pb.Queue](t)(jobs.Stats(ctx, "mail")); len(queues) != 1 || queues[0].GetReady() != 3 {
		t.Errorf("queues %v", queues)
	}
	if paused := must[*pb.Queue](t)(jobs.PauseQueue(ctx, "mail", "too many")); !paused.GetPaused() || paused.GetPauseNote() != "too many" {
		t.Errorf("paused %v", paused)
	}
	if resumed := must[*pb.Queue](t)(jobs.ResumeQueue(ctx, "mail")); resumed.GetPaused() {
		t.Errorf("resumed %v", resumed)
	}
}
