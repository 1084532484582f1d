package baton

import (
	"context"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/baton-sidecar/baton/clients/go/batonv1"
)

// Version is the version of this library, as the sidecar is told.
const Version = "0.2.0"

const (
	defaultCapacity   = 1500
	attachPauseFirst  = 100 * time.Millisecond
	attachPauseMax    = 2 * time.Second
	streamEndsTimeout = time.Second
)

// attacher keeps the app attached: one session at a time, and a new one whenever it breaks.
type attacher struct {
	executor *executor
	hello    func() *pb.Hello
	log      *slog.Logger

	reported string // the last failure that was logged

	mu       sync.Mutex
	session  *session
	stopping bool
	stopped  chan struct{} // closed with stopping
}

func newAttacher(executor *executor, hello func() *pb.Hello) *attacher {
	return &attacher{executor: executor, hello: hello, log: executor.log, stopped: make(chan struct{})}
}

// run attaches, again and again, until stop is called and the last stream has ended.
func (a *attacher) run() {
	for pauses := newWaits(attachPauseFirst, attachPauseMax); ; {
		session := a.next()
		if session == nil {
			return
		}
		welcomed, err := session.run(a.hello())
		if a.isStopping() {
			return
		}
		if welcomed {
			pauses, a.reported = newWaits(attachPauseFirst, attachPauseMax), ""
		}
		pause := pauses.next()
		if a.report(err) {
			pause = attachPauseMax
		}
		select {
		case <-time.After(pause):
		case <-a.stopped:
			return
		}
	}
}

// next is a new session; nil: the app stops.
func (a *attacher) next() *session {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stopping {
		return nil
	}
	a.session = newSession(a.executor)
	return a.session
}

func (a *attacher) isStopping() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.stopping
}

// report logs why the app is not attached, once per change, and tells whether trying again soon cannot help.
func (a *attacher) report(err error) (refused bool) {
	said, level := "detached from the sidecar", slog.LevelWarn
	switch status.Code(err) {
	case codes.Unimplemented:
		said = "the sidecar is too old for AppStream.Attach: upgrade the sidecar, or use App.Serve"
	case codes.Unauthenticated:
		said = "the sidecar refused the token: check BATON_API_TOKEN_FILE"
	case codes.InvalidArgument:
		said = "the sidecar refused what this app declares"
	}
	refused = said != "detached from the sidecar"
	if refused {
		level = slog.LevelError
	}
	if reason := said + ": " + err.Error(); reason != a.reported {
		a.reported = reason
		a.log.Log(context.Background(), level, said, "error", err)
	}
	return refused
}

// stop attaches no more, and tells the sidecar that this process takes no new runs.
func (a *attacher) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stopping {
		return
	}
	a.stopping = true
	close(a.stopped)
	if a.session != nil {
		a.session.out.send(func(m *pb.AttachRequest) { m.Capacity = new(uint32) })
	}
}

// finish cancels what still runs, sends the last answers and ends the stream. The context bounds the wait for handlers.
func (a *attacher) finish(ctx context.Context) {
	a.mu.Lock()
	session := a.session
	a.mu.Unlock()
	if session == nil {
		return
	}
	session.cancelAll()
	a.executor.running.wait(ctx)
	ending, cancel := context.WithTimeout(context.Background(), streamEndsTimeout)
	defer cancel()
	session.finish(ending)
}

// hello says what this process is, what it can do and what its code declares.
func (a *App) hello() *pb.Hello {
	hello := &pb.Hello{
		Client:     "baton-go/" + Version,
		ProcessId:  strconv.Itoa(os.Getpid()),
		Capacity:   a.capacity,
		Singletons: slices.Sorted(maps.Keys(a.executor.singletons)),
		Schedules:  slices.Sorted(maps.Keys(a.executor.schedules)),
		Jobs:       slices.Sorted(maps.Keys(a.executor.jobs)),
		Revision:   a.revision,
	}
	a.declared.into(hello)
	return hello
}
