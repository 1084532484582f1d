package baton

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"

	pb "github.com/baton-sidecar/baton/clients/go/batonv1"
)

const (
	defaultDrain = 25 * time.Second // the sidecar's own drain time (20 s) and a margin
	stopTimeout  = 2 * time.Second
)

// Config says where things are. Of its zero value the environment decides, then the defaults. Addresses are
// `host:port` or `unix:///path`.
type Config struct {
	// Address is where the app listens for its sidecar; BATON_APP_ADDRESS, else [DefaultAppAddress].
	Address string
	// Sidecar is where the sidecar's API is; BATON_API_ADDRESS, else [DefaultAPIAddress].
	Sidecar string
	// AppTokenFile holds the token that the sidecar must send to the app; BATON_APP_TOKEN_FILE, else none.
	AppTokenFile string
	// APITokenFile holds the token that the app sends to the sidecar; BATON_API_TOKEN_FILE, else none.
	APITokenFile string
	// Drain is how long a stopping app waits for its leadership to be taken back; 25 s if it is 0.
	Drain time.Duration
	// Logger is slog.Default() if it is nil.
	Logger *slog.Logger
}

// App is an app beside its sidecar: registered handlers and hooks, and the sidecar's services. Register everything
// first, then serve it once.
type App struct {
	*Sidecar
	address   string
	drainTime time.Duration
	log       *slog.Logger
	callbacks *callbacks
	leading   *leading

	mu       sync.Mutex
	listener net.Listener
	served   bool
	closing  chan struct{}
	closed   bool
}

// New makes an app. It fails only for a token file that cannot be read, or an address that is none.
func New(config Config) (*App, error) {
	log := cmp.Or(config.Logger, slog.Default())
	token, err := openToken(cmp.Or(config.AppTokenFile, os.Getenv("BATON_APP_TOKEN_FILE")), log)
	if err != nil {
		return nil, err
	}
	sidecar, err := Connect(config)
	if err != nil {
		return nil, err
	}
	leading := newLeading(sidecar, log)
	return &App{
		Sidecar:   sidecar,
		address:   cmp.Or(config.Address, os.Getenv("BATON_APP_ADDRESS"), DefaultAppAddress),
		drainTime: cmp.Or(config.Drain, defaultDrain),
		log:       log,
		leading:   leading,
		closing:   make(chan struct{}),
		callbacks: &callbacks{
			sidecar: sidecar, leading: leading, token: token, log: log,
			schedules: make(map[string]Handler), singletons: make(map[string]Handler),
		},
	}, nil
}

// Schedule registers the handler of a schedule, for its ticks and for triggers. A second one of that name panics.
func (a *App) Schedule(name string, handler Handler) { register(a.callbacks.schedules, name, handler) }

// Singleton registers the handler of a singleton: it runs for as long as the term lasts.
func (a *App) Singleton(name string, handler Handler) {
	register(a.callbacks.singletons, name, handler)
}

// OnBecomeLeader registers what is done before the first run of a term. Its context ends with the call, or the term:
// for work of a whole term use a singleton.
func (a *App) OnBecomeLeader(group string, hook BecomeHook) {
	register(a.leading.onBecome, groupOf(group), hook)
}

// OnLoseLeadership registers what is done when a term is over. Its answer lets the successor begin.
func (a *App) OnLoseLeadership(group string, hook LoseHook) {
	register(a.leading.onLose, groupOf(group), hook)
}

// IsLeader tells whether this app may act as leader of a group at this instant; never true past the trust time.
func (a *App) IsLeader(group string) bool { return a.Epoch(group) != 0 }

// Epoch is the fencing token of the term this app leads in now; 0 if it does not lead.
func (a *App) Epoch(group string) uint64 { return a.leading.epoch(groupOf(group)) }

// Listen begins to listen and gives the address, with the port that was chosen for port 0. [App.Serve] does it by
// itself; call it before to know the address.
func (a *App) Listen() (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.listener == nil {
		listener, err := listen(a.address)
		if err != nil {
			return "", err
		}
		a.listener = listener
	}
	if a.listener.Addr().Network() == "unix" {
		return a.address, nil
	}
	return a.listener.Addr().String(), nil
}

// Run is a whole main program: it serves until SIGTERM or SIGINT; a second one ends it at once. In Kubernetes the app
// gets SIGTERM before its sidecar does: it keeps answering until the sidecar has taken leadership back.
func (a *App) Run() error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	defer signal.Stop(signals)
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		for _, stop := range []func(){cancel, func() { _ = a.Close() }} {
			select {
			case <-signals:
				stop()
			case <-ended:
				return
			}
		}
	}()
	return a.Serve(ctx)
}

// Serve serves the app until the context ends or Close is called. When the context ends, it asks the sidecar to hand
// over what this app leads, and keeps serving until that is done or the drain time has passed.
func (a *App) Serve(ctx context.Context) error {
	address, err := a.begin()
	if err != nil {
		return err
	}
	defer func() { _ = a.Sidecar.Close() }()
	status := health.NewServer()
	status.SetServingStatus(pb.AppCallback_ServiceDesc.ServiceName, grpc_health_v1.HealthCheckResponse_SERVING)
	server := grpc.NewServer(
		grpc.UnaryInterceptor(a.callbacks.enter),
		// The sidecar pings often, to notice a frozen app.
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Millisecond, PermitWithoutStream: true}),
	)
	pb.RegisterAppCallbackServer(server, a.callbacks)
	grpc_health_v1.RegisterHealthServer(server, status)
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(a.listener) }()
	a.log.Info("serving", "address", address)
	select {
	case err := <-failed:
		return err
	case <-a.closing:
	case <-ctx.Done():
		a.drain()
	}
	status.Shutdown()
	ending, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	a.leading.endAll(ending)
	stop(server)
	return nil
}

// Close ends Serve without handing over first. An app that was never served is closed by it too.
func (a *App) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil
	}
	a.closed = true
	close(a.closing)
	if a.served {
		return nil
	}
	if a.listener != nil {
		_ = a.listener.Close()
	}
	return a.Sidecar.Close()
}

func (a *App) begin() (string, error) {
	address, err := a.Listen()
	if err != nil {
		return "", err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.served || a.closed {
		return "", errors.New("baton: an app is served once")
	}
	a.served = true
	return address, nil
}

// drain asks the sidecar to hand over what this app leads, and waits until it has.
func (a *App) drain() {
	ctx, cancel := context.WithTimeout(context.Background(), a.drainTime)
	defer cancel()
	go func() {
		select {
		case <-a.closing:
			cancel()
		case <-ctx.Done():
		}
	}()
	for _, cluster := range a.leading.stop() {
		go func() {
			if _, err := a.Leadership.Resign(ctx, cluster.Group); err != nil && ctx.Err() == nil {
				a.log.Warn("resigning", "group", cluster.Group, "error", err) // it may be handing over already, or be gone
			}
		}()
	}
	if !a.leading.waitIdle(ctx) {
		a.log.Warn("leadership was not taken back in time", "drain", a.drainTime)
	}
}

// stop lets open calls finish, but not for long.
func stop(server *grpc.Server) {
	timer := time.AfterFunc(stopTimeout, server.Stop)
	defer timer.Stop()
	server.GracefulStop()
}

func register[F any](registry map[string]F, name string, function F) {
	if _, taken := registry[name]; taken {
		panic(fmt.Sprintf("baton: %q is registered already", name))
	}
	registry[name] = function
}
