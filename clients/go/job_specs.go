package baton

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/baton-sidecar/baton/clients/go/batonv1"
)

// How much a job weighs against others: 4:3:2:1.
const (
	PriorityCritical = pb.JobPriority_JOB_PRIORITY_CRITICAL
	PriorityHigh     = pb.JobPriority_JOB_PRIORITY_HIGH
	PriorityNormal   = pb.JobPriority_JOB_PRIORITY_NORMAL
	PriorityLow      = pb.JobPriority_JOB_PRIORITY_LOW
)

// What happens to a job that is not unique; see [JobUnique].
const (
	ConflictExisting = pb.JobConflict_JOB_CONFLICT_EXISTING
	ConflictReplace  = pb.JobConflict_JOB_CONFLICT_REPLACE
	ConflictReject   = pb.JobConflict_JOB_CONFLICT_REJECT
)

// Job is a job to submit.
type Job struct {
	// Name selects the handler.
	Name string
	// Payload is for the handler: bytes, or anything that JSON can say.
	Payload any
	Options JobOptions
}

// JobOptions say how a job is executed; a zero field has the default of the app's [JobDefaults], then of the queue.
type JobOptions struct {
	Queue    string
	Priority pb.JobPriority
	// DueAt or Delay: when it is due. Neither: now.
	DueAt time.Time
	Delay time.Duration
	// ExpiresAt: not started by then, it is skipped.
	ExpiresAt time.Time
	// Key: jobs with the same name and key run one at a time, in the order of submission, and share state.
	Key    string
	Unique *JobUnique
	Retry  RetryPolicy
	// Timeout is how long an attempt may take.
	Timeout time.Duration
	// Labels to filter by.
	Labels map[string]string
	// Batch counts jobs together; see [Jobs.SubmitBatch].
	Batch string
	// ContentType of the payload; application/json if it is empty.
	ContentType string
}

// JobUnique allows one job of a name and key, while one is live or within a time.
type JobUnique struct {
	// Key is what must be unique; empty: the payload.
	Key string
	// Window is since when an earlier job counts; 0: while it is live.
	Window time.Duration
	// OnConflict is what happens to the new job; [ConflictExisting] if it is not set.
	OnConflict pb.JobConflict
}

// JobDefaults are options of every job of a name that this app submits, where the job has none of its own.
type JobDefaults struct {
	Queue    string
	Priority pb.JobPriority
	Retry    RetryPolicy
	Timeout  time.Duration
}

// Job registers the handler of a job; the defaults are for jobs of that name that this app submits.
func (a *App) Job(name string, handler Handler, defaults ...JobDefaults) {
	register(a.executor.jobs, name, handler)
	if given, ok := only(name, defaults); ok {
		a.Jobs.defaults[name] = given
	}
}

// withDefaults adds what the app says about all jobs of a name.
func (j *Jobs) withDefaults(name string, options JobOptions) JobOptions {
	defaults := j.defaults[name]
	options.Queue = cmp.Or(options.Queue, defaults.Queue)
	options.Priority = cmp.Or(options.Priority, defaults.Priority)
	options.Retry = cmp.Or(options.Retry, defaults.Retry)
	options.Timeout = cmp.Or(options.Timeout, defaults.Timeout)
	return options
}

func (j *Jobs) specs(jobs []Job) ([]*pb.JobSpec, error) {
	specs := make([]*pb.JobSpec, 0, len(jobs))
	for _, job := range jobs {
		spec, err := j.spec(job)
		if err != nil {
			return nil, err
		}
		specs = append(specs, spec)
	}
	return specs, nil
}

func (j *Jobs) spec(job Job) (*pb.JobSpec, error) {
	options := j.withDefaults(job.Name, job.Options)
	payload, err := optional(job.Payload)
	if err != nil {
		return nil, fmt.Errorf("baton: job %s: %w", job.Name, err)
	}
	spec := &pb.JobSpec{
		Name: job.Name, Payload: payload, ContentType: options.ContentType, Queue: options.Queue,
		Priority: options.Priority, ExpiresAt: timestamp(options.ExpiresAt), Key: options.Key,
		Retry: options.Retry.message(), Timeout: duration(options.Timeout), Labels: options.Labels, Batch: options.Batch,
	}
	switch {
	case !options.DueAt.IsZero() && options.Delay != 0:
		return nil, errDueTwice
	case !options.DueAt.IsZero():
		spec.Due = &pb.JobSpec_DueAt{DueAt: timestamppb.New(options.DueAt)}
	case options.Delay != 0:
		spec.Due = &pb.JobSpec_Delay{Delay: durationpb.New(options.Delay)}
	}
	if unique := options.Unique; unique != nil {
		spec.Unique = &pb.JobUnique{Key: unique.Key, Window: duration(unique.Window), OnConflict: unique.OnConflict}
	}
	return spec, nil
}

var errDueTwice = errors.New("baton: a job has DueAt or Delay, not both")
