package baton_test

import (
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	baton "github.com/baton-sidecar/baton/clients/go"
	pb "github.com/baton-sidecar/baton/clients/go/batonv1"
	"github.com/baton-sidecar/baton/clients/go/internal/fake"
)

// Every key of the configuration file can be declared in code, and arrives in hello; a handler alone declares nothing.
func TestDeclarationsAreSentInHello(t *testing.T) {
	sidecar := fake.Start(t)
	app := newApp(t, sidecar, baton.Config{Revision: 12})
	at := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	app.Schedule("cleanup", nothing, baton.ScheduleOptions{
		Cron: "0 2 * * *", Timezone: "Europe/Berlin", Group: "reports", Payload: map[string]int{"days": 30},
		StartAt: at, EndAt: at.AddDate(1, 0, 0), ExpectedInterval: time.Hour, SkipIfOlderThan: time.Minute,
		CatchUp: baton.CatchUpAll, CatchUpMax: 7, Overlap: baton.OverlapSkip, Disabled: true, ContentType: "text/plain",
		Retry: baton.RetryPolicy{Attempts: 5, Initial: time.Second, Max: time.Minute}, Timeout: time.Hour,
		Jitter: 2 * time.Second, PingURL: "https://example.org/", State: baton.StatePolicy{
			Version: 2, Initial: map[string]int{"n": 1}, Schema: []byte(`{}`), TTL: time.Hour,
		},
	})
	app.Schedule("often", nothing, baton.ScheduleOptions{Every: 30 * time.Second})
	app.Schedule("once", nothing, baton.ScheduleOptions{At: at})
	app.Schedule("handler-only", nothing)
	app.Singleton("coordinator", nothing, baton.SingletonOptions{
		Group: "reports", ExpectedInterval: time.Minute, RestartAfter: time.Second, State: baton.StatePolicy{Version: 3},
	})
	app.Singleton("undeclared", nothing)
	attach(t, app, sidecar)
	hello := sidecar.Attached(t, 1)[0].Hello
	want := &pb.Hello{}
	if err := protojson.Unmarshal([]byte(`{
		"revision": 12, "schedules": ["cleanup", "handler-only", "often", "once"],
		"singletons": ["coordinator", "undeclared"],
		"declaredSchedules": [
			{"name": "cleanup", "group": "reports", "cron": "0 2 * * *", "timezone": "Europe/Berlin", "enabled": false,
			 "payload": "eyJkYXlzIjozMH0=", "contentType": "text/plain", "startAt": "2027-01-01T00:00:00Z",
			 "endAt": "2028-01-01T00:00:00Z", "expectedInterval": "3600s", "skipIfOlderThan": "60s",
			 "catchUp": "CATCH_UP_ALL", "catchUpMax": 7, "overlap": "OVERLAP_SKIP",
			 "retry": {"attempts": 5, "initial": "1s", "max": "60s"}, "timeout": "3600s", "jitter": "2s",
			 "pingUrl": "https://example.org/",
			 "state": {"version": 2, "initial": "eyJuIjoxfQ==", "schema": "e30=", "ttl": "3600s"}},
			{"name": "often", "every": "30s"}, {"name": "once", "at": "2027-01-01T00:00:00Z"}],
		"declaredSingletons": [{"name": "coordinator", "group": "reports", "expectedInterval": "60s", "restartAfter": "1s",
			"state": {"version": 3}}]}`), want); err != nil {
		t.Fatal(err)
	}
	want.Client, want.ProcessId, want.Capacity = hello.GetClient(), hello.GetProcessId(), hello.GetCapacity()
	if !proto.Equal(hello, want) {
		t.Errorf("got  %v\nwant %v", hello, want)
	}
}

// Declarations that cannot be meant are refused at the start of the program.
func TestContradictoryDeclarationsPanic(t *testing.T) {
	app := newApp(t, fake.Start(t), baton.Config{})
	for name, options := range map[string][]baton.ScheduleOptions{
		"two timings": {{Cron: "@daily", Every: time.Hour}},
		"no timing":   {{Group: "reports"}},
		"two options": {{Cron: "@daily"}, {Timezone: "UTC"}},
		"not JSON":    {{Cron: "@daily", Payload: func() {}}},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s was accepted", name)
				}
			}()
			app.Schedule(name, nothing, options...)
		}()
	}
}

// The revision comes from the environment when it is not given, and must be a number.
func TestTheRevisionComesFromTheEnvironment(t *testing.T) {
	sidecar := fake.Start(t)
	t.Setenv("BATON_REVISION", "41")
	app := newApp(t, sidecar, baton.Config{})
	attach(t, app, sidecar)
	if revision := sidecar.Attached(t, 1)[0].Hello.GetRevision(); revision != 41 {
		t.Errorf("revision %d", revision)
	}
	t.Setenv("BATON_REVISION", "new")
	if _, err := baton.New(baton.Config{}); err == nil {
		t.Error("a revision that is no number was accepted")
	}
}
