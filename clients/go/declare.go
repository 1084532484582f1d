package baton

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "github.com/baton-sidecar/baton/clients/go/batonv1"
)

// Which missed ticks run; see [ScheduleOptions].
const (
	CatchUpLatest = pb.CatchUp_CATCH_UP_LATEST
	CatchUpAll    = pb.CatchUp_CATCH_UP_ALL
	CatchUpNone   = pb.CatchUp_CATCH_UP_NONE
)

// What happens to a tick that is due while an earlier one is still running; see [ScheduleOptions].
const (
	OverlapAllow   = pb.Overlap_OVERLAP_ALLOW
	OverlapSkip    = pb.Overlap_OVERLAP_SKIP
	OverlapQueue   = pb.Overlap_OVERLAP_QUEUE
	OverlapReplace = pb.Overlap_OVERLAP_REPLACE
)

// ScheduleOptions declares a schedule in code, with the keys of the configuration file; a zero field has the default of
// the file. A schedule of the file with the same name wins. Only an attached app declares.
type ScheduleOptions struct {
	// Cron, Every or At: when it runs. One of them.
	Cron  string
	Every time.Duration
	At    time.Time
	// Timezone of Cron, an IANA name; UTC if it is empty.
	Timezone string
	Group    string
	// Disabled: ticks are recorded as skipped.
	Disabled bool
	// Payload is for the handler: bytes, or anything that JSON can say.
	Payload     any
	ContentType string
	// StartAt and EndAt bound the ticks; zero: no bound.
	StartAt, EndAt   time.Time
	ExpectedInterval time.Duration
	SkipIfOlderThan  time.Duration
	CatchUp          pb.CatchUp
	CatchUpMax       uint32
	Overlap          pb.Overlap
	Retry            RetryPolicy
	// Timeout cancels an attempt; zero: none.
	Timeout time.Duration
	Jitter  time.Duration
	// PingURL is fetched after each success.
	PingURL string
	State   StatePolicy
}

// SingletonOptions declares a singleton in code; a zero field has the default of the configuration file. A singleton of
// the file with the same name wins. Only an attached app declares.
type SingletonOptions struct {
	Group            string
	ExpectedInterval time.Duration
	RestartAfter     time.Duration
	State            StatePolicy
}

// RetryPolicy is how failed attempts are retried; a zero field has its default: 3 attempts, 1 s, 1 min.
type RetryPolicy struct {
	// Attempts in all, the first included.
	Attempts uint32
	// Initial is the wait before the second attempt; each further one is twice as long, up to Max.
	Initial, Max time.Duration
}

// StatePolicy declares the owned state of a singleton or schedule.
type StatePolicy struct {
	Version uint32
	// Initial is the state before the first run, and Schema its JSON Schema: bytes of JSON, or what JSON can say.
	Initial, Schema any
	TTL             time.Duration
}

// declarations are what the code declares, by name.
type declarations struct {
	schedules  map[string]*pb.Schedule
	singletons map[string]*pb.DeclaredSingleton
}

func newDeclarations() declarations {
	return declarations{make(map[string]*pb.Schedule), make(map[string]*pb.DeclaredSingleton)}
}

// into puts the declarations into a hello, by name.
func (d declarations) into(hello *pb.Hello) {
	for _, name := range slices.Sorted(maps.Keys(d.schedules)) {
		hello.DeclaredSchedules = append(hello.DeclaredSchedules, d.schedules[name])
	}
	for _, name := range slices.Sorted(maps.Keys(d.singletons)) {
		hello.DeclaredSingletons = append(hello.DeclaredSingletons, d.singletons[name])
	}
}

// Schedule registers the handler of a schedule, for its ticks and for triggers, and with options declares when it runs.
// Without options the configuration file or the API says that. A second one of that name panics, as do options without
// exactly one of Cron, Every and At.
func (a *App) Schedule(name string, handler Handler, options ...ScheduleOptions) {
	register(a.executor.schedules, name, handler)
	if given, ok := only(name, options); ok {
		a.declared.schedules[name] = given.declare(name)
	}
}

// Singleton registers the handler of a singleton, which runs for as long as the term lasts, and with options declares it.
func (a *App) Singleton(name string, handler Handler, options ...SingletonOptions) {
	register(a.executor.singletons, name, handler)
	if given, ok := only(name, options); ok {
		a.declared.singletons[name] = given.declare(name)
	}
}

// only is the options that were given, at most once.
func only[T any](name string, options []T) (given T, ok bool) {
	if len(options) > 1 {
		panic(fmt.Sprintf("baton: %q has options twice", name))
	}
	return first(options), len(options) == 1
}

func (o ScheduleOptions) declare(name string) *pb.Schedule {
	schedule := &pb.Schedule{
		Name: name, Group: o.Group, Timezone: o.Timezone, ContentType: o.ContentType, Payload: encoded(name, o.Payload),
		StartAt: timestamp(o.StartAt), EndAt: timestamp(o.EndAt), ExpectedInterval: duration(o.ExpectedInterval),
		SkipIfOlderThan: duration(o.SkipIfOlderThan), CatchUp: o.CatchUp, CatchUpMax: o.CatchUpMax, Overlap: o.Overlap,
		Retry: o.Retry.message(), Timeout: duration(o.Timeout), Jitter: duration(o.Jitter), PingUrl: o.PingURL,
		State: o.State.message(name),
	}
	if o.Disabled {
		schedule.Enabled = new(bool)
	}
	o.time(schedule)
	return schedule
}

// time sets when the schedule runs.
func (o ScheduleOptions) time(schedule *pb.Schedule) {
	timings := 0
	if o.Cron != "" {
		timings++
		schedule.Timing = &pb.Schedule_Cron{Cron: o.Cron}
	}
	if o.Every != 0 {
		timings++
		schedule.Timing = &pb.Schedule_Every{Every: durationpb.New(o.Every)}
	}
	if !o.At.IsZero() {
		timings++
		schedule.Timing = &pb.Schedule_At{At: timestamppb.New(o.At)}
	}
	if timings != 1 {
		panic(fmt.Sprintf("baton: schedule %q needs one of Cron, Every and At", schedule.Name))
	}
}

func (o SingletonOptions) declare(name string) *pb.DeclaredSingleton {
	return &pb.DeclaredSingleton{
		Name: name, Group: o.Group, ExpectedInterval: duration(o.ExpectedInterval),
		RestartAfter: duration(o.RestartAfter), State: o.State.message(name),
	}
}

func (p RetryPolicy) message() *pb.RetryPolicy {
	if p == (RetryPolicy{}) {
		return nil
	}
	return &pb.RetryPolicy{Attempts: p.Attempts, Initial: duration(p.Initial), Max: duration(p.Max)}
}

func (p StatePolicy) message(name string) *pb.StatePolicy {
	if p.Version == 0 && p.Initial == nil && p.Schema == nil && p.TTL == 0 {
		return nil
	}
	return &pb.StatePolicy{
		Version: p.Version, Initial: encoded(name, p.Initial), Schema: encoded(name, p.Schema), Ttl: duration(p.TTL),
	}
}

// encoded is a value of a declaration; one that JSON cannot say is a mistake in the program.
func encoded(name string, value any) []byte {
	data, err := optional(value)
	if err != nil {
		panic(fmt.Sprintf("baton: %q: %v", name, err))
	}
	return data
}

// duration is unset for 0.
func duration(length time.Duration) *durationpb.Duration {
	if length == 0 {
		return nil
	}
	return durationpb.New(length)
}

// timestamp is unset for the zero time.
func timestamp(at time.Time) *timestamppb.Timestamp {
	if at.IsZero() {
		return nil
	}
	return timestamppb.New(at)
}
