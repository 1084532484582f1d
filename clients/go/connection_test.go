package baton_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	baton "github.com/baton-sidecar/baton/clients/go"
	pb "github.com/baton-sidecar/baton/clients/go/batonv1"
	"github.com/baton-sidecar/baton/clients/go/internal/fake"
)

func refusal(t *testing.T, code codes.Code, details ...protoadapt.MessageV1) error {
	t.Helper()
	return must[*status.Status](t)(status.New(code, "no").WithDetails(details...)).Err()
}

// ErrorInfo decides the kind, else the code; each kind says whether asking again may help.
func TestErrorsAreTyped(t *testing.T) {
	reason := func(name string) []protoadapt.MessageV1 {
		return []protoadapt.MessageV1{&errdetails.ErrorInfo{Reason: name, Domain: "baton"}}
	}
	for name, test := range map[string]struct {
		code      codes.Code
		details   []protoadapt.MessageV1
		kind      *baton.Kind
		retryable bool
	}{
		"StateLoadFailed":     {codes.DataLoss, reason("StateLoadFailed"), baton.ErrStateLoadFailed, true},
		"StatePersistFailed":  {codes.Internal, reason("StatePersistFailed"), baton.ErrStatePersistFailed, true},
		"SchemaDecodeFailed":  {codes.DataLoss, reason("SchemaDecodeFailed"), baton.ErrSchemaDecodeFailed, false},
		"HeartbeatFailed":     {codes.Internal, reason("HeartbeatFailed"), baton.ErrHeartbeatFailed, true},
		"LeaderHandoffFailed": {codes.Aborted, reason("LeaderHandoffFailed"), baton.ErrLeaderHandoffFailed, true},
		"Fenced":              {codes.FailedPrecondition, reason("Fenced"), baton.ErrFenced, false},
		"SomethingNew":        {codes.Aborted, reason("SomethingNew"), baton.ErrConflict, false},
		"NotFound":            {codes.NotFound, nil, baton.ErrNotFound, false},
		"AlreadyExists":       {codes.AlreadyExists, nil, baton.ErrAlreadyExists, false},
		"Conflict":            {codes.Aborted, nil, baton.ErrConflict, false},
		"FailedPrecondition":  {codes.FailedPrecondition, nil, baton.ErrFailedPrecondition, false},
		"OutOfRange":          {codes.OutOfRange, nil, baton.ErrOutOfRange, false},
		"LimitExceeded":       {codes.ResourceExhausted, nil, baton.ErrLimitExceeded, false},
		"Unauthenticated":     {codes.Unauthenticated, nil, baton.ErrUnauthenticated, false},
		"DeadlineExceeded":    {codes.DeadlineExceeded, nil, baton.ErrDeadlineExceeded, true},
		"Other":               {codes.Internal, nil, baton.ErrOther, false},
	} {
		t.Run(name, func(t *testing.T) {
			client, sidecar := connected(t)
			sidecar.Refuse(refusal(t, test.code, test.details...))
			_, err := client.State.Has(t.Context(), "a")
			var failed *baton.Error
			if !errors.As(err, &failed) || failed.Kind != test.kind || failed.Reason != name || failed.Code != test.code {
				t.Errorf("got %#v", err)
			}
			if baton.Retryable(err) != test.retryable || failed.Retryable() != test.retryable {
				t.Errorf("retryable is %v", failed.Retryable())
			}
		})
	}
}

func TestInvalidArgumentsAreNamed(t *testing.T) {
	client, sidecar := connected(t)
	sidecar.Refuse(refusal(t, codes.InvalidArgument, &errdetails.BadRequest{
		FieldViolations: []*errdetails.BadRequest_FieldViolation{{Field: "key", Description: "too long"}},
	}))
	_, err := client.State.Has(t.Context(), "a")
	var failed *baton.Error
	if !errors.As(err, &failed) || failed.Kind != baton.ErrInvalidArgument || len(failed.Violations) != 1 ||
		failed.Violations[0] != (baton.Violation{Field: "key", Problem: "too long"}) {
		t.Errorf("got %#v", err)
	}
}

// UNAVAILABLE is waited out, as long as RetryInfo says; what must not happen twice is not repeated.
func TestCallsAreRepeatedWhileTheSidecarIsAway(t *testing.T) {
	client, sidecar := connected(t)
	const delay = 300 * time.Millisecond
	sidecar.Refuse(refusal(t, codes.Unavailable), refusal(t, codes.Unavailable, &errdetails.RetryInfo{RetryDelay: durationpb.New(delay)}))
	begun := time.Now()
	must[bool](t)(client.State.Has(t.Context(), "a"))
	if calls := sidecar.Calls("/baton.v1.State/Has"); calls != 3 || time.Since(begun) < delay {
		t.Errorf("%d calls in %v", calls, time.Since(begun))
	}
	typed := refusal(t, codes.Unavailable, &errdetails.ErrorInfo{Reason: "StatePersistFailed", Domain: "baton"})
	sidecar.Refuse(typed)
	must[baton.Entry](t)(client.State.Put(t.Context(), "a", 1))
	if calls := sidecar.Calls("/baton.v1.State/Put"); calls != 2 {
		t.Errorf("%d calls", calls)
	}
	sidecar.Refuse(refusal(t, codes.Unavailable))
	if _, err := client.State.Delete(t.Context(), "a"); !errors.Is(err, baton.ErrUnavailable) {
		t.Error(err)
	}
	if calls := sidecar.Calls("/baton.v1.State/Delete"); calls != 1 {
		t.Errorf("%d calls", calls)
	}
	sidecar.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	begun = time.Now()
	if _, err := client.State.Has(ctx, "a"); err == nil || time.Since(begun) > time.Second {
		t.Errorf("%v after %v", err, time.Since(begun))
	}
}

// G12: without its token neither side is answered; health needs none, as the kubelet has none.
func TestTokensAreCheckedBothWays(t *testing.T) {
	dir := t.TempDir()
	files := map[string]string{"app": "app-secret\n", "api": "api-secret\n"}
	for name, token := range files {
		write(t, filepath.Join(dir, name), token)
	}
	sidecar := fake.Start(t, fake.Tokens("app-secret", "api-secret"))
	app := newApp(t, sidecar, baton.Config{AppTokenFile: filepath.Join(dir, "app"), APITokenFile: filepath.Join(dir, "api")})
	serve(t, app, sidecar)
	lead(t, sidecar)
	must[[]*pb.Leader](t)(app.Leadership.List(t.Context()))
	address := must[string](t)(app.Listen())
	for _, wrong := range []string{"app-secreT", ""} {
		stranger := fake.Start(t, fake.Tokens(wrong, "")).Beside(t, address)
		_, err := stranger.App.OnLoseLeadership(t.Context(), &pb.OnLoseLeadershipRequest{})
		if status.Code(err) != codes.Unauthenticated || !app.IsLeader("") {
			t.Errorf("%q: %v", wrong, err)
		}
	}
	for _, service := range []string{"", "baton.v1.AppCallback"} {
		if answer := healthOf(t, address, service); answer.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
			t.Errorf("%q: %v", service, answer)
		}
	}
	write(t, filepath.Join(dir, "api"), "wrong-now")
	if _, err := app.Leadership.List(t.Context()); !errors.Is(err, baton.ErrUnauthenticated) {
		t.Error(err)
	}
}

func healthOf(t *testing.T, address, service string) *grpc_health_v1.HealthCheckResponse {
	t.Helper()
	channel := must[*grpc.ClientConn](t)(grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials())))
	defer func() { _ = channel.Close() }()
	request := &grpc_health_v1.HealthCheckRequest{Service: service}
	return must[*grpc_health_v1.HealthCheckResponse](t)(grpc_health_v1.NewHealthClient(channel).Check(t.Context(), request))
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// G12: a token that was asked for and is not there never means: no token.
func TestAMissingTokenStopsTheStart(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "empty"), "\n")
	for _, file := range []string{"empty", "missing"} {
		if _, err := baton.New(baton.Config{AppTokenFile: filepath.Join(dir, file)}); err == nil {
			t.Errorf("%s: an app without its token", file)
		}
		t.Setenv("BATON_API_TOKEN_FILE", filepath.Join(dir, file))
		if _, err := baton.Connect(baton.Config{}); err == nil {
			t.Errorf("%s: a client without its token", file)
		}
	}
}

// Addresses come from the environment when not given, and may be socket files; a stale one is replaced.
func TestSocketFilesAndTheEnvironment(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.sock")
	stale := must[*net.UnixListener](t)(net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"}))
	stale.SetUnlinkOnClose(false)
	_ = stale.Close()
	sidecar := fake.Start(t)
	t.Setenv("BATON_APP_ADDRESS", "unix://"+path)
	t.Setenv("BATON_API_ADDRESS", sidecar.Address)
	app := must[*baton.App](t)(baton.New(baton.Config{Logger: slog.New(slog.DiscardHandler)}))
	app.Schedule("report", func(ctx context.Context, attempt *baton.Attempt) (any, error) {
		return app.State.Has(ctx, "a")
	})
	serve(t, app, sidecar)
	lead(t, sidecar)
	answer := must[*pb.ExecuteResponse](t)(sidecar.Execute(t.Context(), "report", ""))
	if string(answer.GetSucceeded().GetResult()) != "false" {
		t.Error(answer)
	}
	if mode := must[os.FileInfo](t)(os.Stat(path)).Mode().Perm(); mode != 0o660 {
		t.Errorf("mode %o", mode)
	}
	if _, err := newApp(t, sidecar, baton.Config{Address: "unix://" + path}).Listen(); err == nil {
		t.Error("two apps share a socket")
	}
	write(t, path+".txt", "precious")
	if _, err := newApp(t, sidecar, baton.Config{Address: "unix:" + path + ".txt"}).Listen(); err == nil {
		t.Error("a file that is no socket was replaced")
	}
}

// `traceparent` of a callback comes back on what its handler asks of the sidecar.
func TestTheTraceGoesOn(t *testing.T) { eachWay(t, testTheTraceGoesOn) }

func testTheTraceGoesOn(t *testing.T, way way) {
	sidecar := fake.Start(t, fake.Traceparent("00-1-2-01"))
	app := newApp(t, sidecar, baton.Config{})
	app.Schedule("report", func(ctx context.Context, attempt *baton.Attempt) (any, error) {
		return app.State.Has(ctx, "a")
	})
	way(t, app, sidecar)
	lead(t, sidecar)
	must[*pb.ExecuteResponse](t)(sidecar.Execute(t.Context(), "report", ""))
	if trace := sidecar.Metadata().Get("traceparent"); len(trace) != 1 || trace[0] != "00-1-2-01" {
		t.Errorf("trace %v", trace)
	}
}

// An app is served once, on a port of its own.
func TestAnAppIsServedOnce(t *testing.T) {
	app, sidecar := beside(t, serve, func(*baton.App) {})
	if err := app.Serve(t.Context()); err == nil {
		t.Error("served twice")
	}
	if _, err := newApp(t, sidecar, baton.Config{Address: must[string](t)(app.Listen())}).Listen(); err == nil {
		t.Error("two apps share a port")
	}
	unserved := newApp(t, sidecar, baton.Config{})
	must[string](t)(unserved.Listen())
	if err := errors.Join(unserved.Close(), unserved.Close()); err != nil {
		t.Error(err)
	}
	if err := unserved.Serve(t.Context()); err == nil {
		t.Error("served after it was closed")
	}
}
