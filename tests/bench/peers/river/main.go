// A River client as a user would write it: elected leader or not, with periodic jobs.
//
//	river setup PROFILE URL FILE    brings the schema up to date
//	river lead  PROFILE URL FILE    a line in FILE each time it becomes leader
//	river ticks PROFILE URL FILE    BENCH_PLAN as periodic jobs; a line in FILE for each run
//
// River offers no setting for its election: 5 s between attempts, 15 s until a leader is given up.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"
)

type plan map[string]struct {
	Count   int   `json:"count"`
	Seconds []int `json:"seconds"`
}

// atSeconds is due in those seconds of every minute.
type atSeconds []int

func (s atSeconds) Next(after time.Time) time.Time {
	next := after.Truncate(time.Second).Add(time.Second)
	for !slices.Contains(s, next.Second()) {
		next = next.Add(time.Second)
	}
	return next
}

type tick struct {
	Class string `json:"class"`
	Index int    `json:"index"`
}

func (tick) Kind() string { return "tick" }

type worker struct {
	river.WorkerDefaults[tick]
	note func(class string, due time.Time)
}

func (w *worker) Work(_ context.Context, job *river.Job[tick]) error {
	w.note(job.Args.Class, job.ScheduledAt)
	return nil
}

func unix(at time.Time) float64 { return float64(at.UnixMicro()) / 1e6 }

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func config(profile string) *river.Config {
	if profile == "default" { // 100 workers is what River's own examples say; there is no default
		return &river.Config{Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 100}}}
	}
	return &river.Config{
		FetchCooldown:     5 * time.Millisecond,
		FetchPollInterval: 100 * time.Millisecond,
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 1000}},
	}
}

func periodic(text string) []*river.PeriodicJob {
	var jobs []*river.PeriodicJob
	var wanted plan
	must(json.Unmarshal([]byte(text), &wanted))
	for class, due := range wanted {
		for index := range due.Count {
			jobs = append(jobs, river.NewPeriodicJob(
				atSeconds(due.Seconds),
				func() (river.JobArgs, *river.InsertOpts) { return tick{class, index}, nil },
				nil,
			))
		}
	}
	return jobs
}

func main() {
	mode, profile, url, path := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	settings, err := pgxpool.ParseConfig(url)
	must(err)
	if profile != "default" {
		settings.MaxConns = 16
	}
	pool, err := pgxpool.NewWithConfig(ctx, settings)
	must(err)
	driver := riverpgxv5.New(pool)
	if mode == "setup" {
		migrator, err := rivermigrate.New(driver, nil)
		must(err)
		_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
		must(err)
		return
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	must(err)
	note := func(class string, due time.Time) {
		fmt.Fprintf(file, "%.6f %s %.6f\n", unix(time.Now()), class, unix(due))
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, &worker{note: note})
	config := config(profile)
	config.Workers = workers
	if mode == "ticks" {
		config.PeriodicJobs = periodic(os.Getenv("BENCH_PLAN"))
	} else {
		config.Hooks = []rivertype.Hook{river.HookPeriodicJobsStartFunc(
			func(context.Context, *rivertype.HookPeriodicJobsStartParams) error {
				note("lead", time.Now())
				return nil
			},
		)}
	}
	client, err := river.NewClient(driver, config)
	must(err)
	must(client.Start(context.Background()))
	if mode == "ticks" {
		note("ready", time.Now())
	}
	<-ctx.Done()
	must(client.Stop(context.Background()))
}
