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
	"strconv"
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
	// Address is where an app that serves listens for its sidecar; BATON_APP_ADDRESS, else [DefaultAppAddress].
	// If one of the two is set, Run serves; otherwise it attaches.
	Address string
	// Sidecar is where the sidecar's API is; BATON_API_ADDRESS, else [DefaultAPIAddress].
	Sidecar string
	// AppTokenFile holds the token that the sidecar must send to the app; BATON_APP_TOKEN_FILE, else none.
	AppTokenFile string
	// APITokenFile holds the token that the app sends to the sidecar; BATON_API_TOKEN_FILE, else none.
	APITokenFile string
	// Capacity is how many runs an attached app takes at once, singletons not counted; 1,500 if it is 0.
	Capacity uint32
	// Drain is how long a stopping app waits for its leadership to be taken back and its runs to end; 25 s if it is 0.
	Drain time.Duration
	// HideErrors keeps the text of unexpected errors out of the records of runs: only their type leaves the process.
	HideErrors bool
	// Revision orders builds in a rollout: what a higher one declares in code wins. BATON_REVISION, else 0: by the time at
	// which the declarations were first seen.
	Revision uint64
	// Cluster and Schema are for [Jobs.Enqueue] only: the name of the cluster (BATON_CLUSTER, else what the sidecar says)
	// and the Postgres schema of Baton (`baton` if it is empty).
	Cluster, Schema string
	// Logger is slog.Default() if it is nil.
	Logger *slog.Logger
}

// App is an app beside its sidecar: registered handlers and hooks, and the sidecar's services. Register everything
// first, then attach or serve it once.
type App struct {
	*Sidecar
	address   string
	serves    bool // Run serves, instead of attaching
	capacity  uint32
	drainTime time.Duration
	log       *slog.Logger
	token     *tokenFile
	executor  *executor
	declared  declarations
	revision  uint64
	leading   *leading
	attacher  *attacher

	mu       sync.Mutex
	listener net.Listener
	served   bool
	closing  chan struct{}
	closed   bool
}

// New makes an app. It fails only for a token file that cannot be read, or a bad address or BATON_REVISION.
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
	revision, err := revisionOf(config)
	if err != nil {
		return nil, err
	}
	address := cmp.Or(config.Address, os.Getenv("BATON_APP_ADDRESS"))
	leading := newLeading(sidecar, log)
	app := &App{
		Sidecar:   sidecar,
		address:   cmp.Or(address, DefaultAppAddress),
		serves:    address != "",
		capacity:  cmp.Or(config.Capacity, defaultCapacity),
		drainTime: cmp.Or(config.Drain, defaultDrain),
		log:       log,
		token:     token,
		executor:  newExecutor(sidecar, leading, log),
		declared:  newDeclarations(),
		revision:  revision,
		leading:   leading,
		closing:   make(chan struct{}),
	}
	app.executor.hideErrors = config.HideErrors
	app.attacher = newAttacher(app.executor, app.hello)
	return app, nil
}

func revisionOf(config Config) (uint64, error) {
	text := os.Getenv("BATON_REVISION")
	if config.Revision != 0 || text == "" {
		return config.Revision, nil
	}
	revision, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("baton: BATON_REVISION must be a whole number, not %q", text)
	}
	return revision, nil
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

// Run is a whole main program: it attaches to the sidecar until SIGTERM or SIGINT, or until the context ends; a second
// signal ends it at once. In Kubernetes the app gets SIGTERM before its sidecar does: it finishes its runs, and leaves
// when the sidecar has taken leadership back. An app with an address serves instead: see [Config].
func (a *App) Run(parent ...context.Context) error {
	ctx, cancel := context.WithCancel(cmp.Or(first(parent), context.Background()))
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
	if a.serves {
		return a.Serve(ctx)
	}
	return a.Attach(ctx)
}

// Attach dials the sidecar and receives work over one stream, until the context ends or Close is called. A stream that
// breaks is opened again. When the context ends, it asks the sidecar to hand over what this app leads, takes no new
// runs, and returns when its runs have ended or the drain time has passed.
func (a *App) Attach(ctx context.Context) error {
	if err := a.claim(); err != nil {
		return err
	}
	defer func() { _ = a.Sidecar.Close() }()
	detached := make(chan struct{})
	go func() {
		defer close(detached)
		a.attacher.run()
	}()
	select {
	case <-a.closing:
		a.attacher.stop()
	case <-ctx.Done():
		a.attacher.stop()
		a.drain()
	}
	ending, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	a.leading.endAll(ending)
	a.attacher.finish(ending)
	<-detached
	return nil
}

// Serve serves AppCallback at an address, else at that of the config, until the context ends or Close is called. When
// the context ends, it asks the sidecar to hand over what this app leads, and keeps serving until that is done or the
// drain time has passed.
func (a *App) Serve(ctx context.Context, address ...string) error {
	listening, err := a.listenAt(first(address))
	if err != nil {
		return err
	}
	if err := a.claim(); err != nil {
		return err
	}
	defer func() { _ = a.Sidecar.Close() }()
	a.leading.watches = true
	server, status := a.server()
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(a.listener) }()
	a.log.Info("serving", "address", listening)
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

func (a *App) server() (*grpc.Server, *health.Server) {
	status, callbacks := health.NewServer(), &callbacks{executor: a.executor, token: a.token}
	status.SetServingStatus(pb.AppCallback_ServiceDesc.ServiceName, grpc_health_v1.HealthCheckResponse_SERVING)
	server := grpc.NewServer(
		grpc.UnaryInterceptor(callbacks.enter),
		// The sidecar pings often, to notice a frozen app.
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Millisecond, PermitWithoutStream: true}),
	)
	pb.RegisterAppCallbackServer(server, callbacks)
	grpc_health_v1.RegisterHealthServer(server, status)
	return server, status
}

// Close ends Attach or Serve without handing over first. An app that never ran is closed by it too.
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

// claim makes sure that the app runs once.
func (a *App) claim() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.served || a.closed {
		return errors.New("baton: an app runs once")
	}
	a.served = true
	return nil
}

// listenAt listens at another address than the configured one, if one is given.
func (a *App) listenAt(address string) (string, error) {
	if address != "" {
		a.mu.Lock()
		a.address = address
		a.mu.Unlock()
	}
	return a.Listen()
}

// drain asks the sidecar to hand over what this app leads, and waits until it has, and until no run is left.
func (a *App) drain() {
	close(a.executor.stopping)
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
	if !a.executor.running.wait(ctx) {
		a.log.Warn("runs did not end in time", "drain", a.drainTime)
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
