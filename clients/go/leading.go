package baton

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	pb "github.com/baton-sidecar/baton/clients/go/batonv1"
)

// A process that was frozen finds the expired timer before the renewal that waits in the socket.
const renewalSlack = 100 * time.Millisecond

var (
	errNotLed   = errors.New("baton: not in this term")
	errStopping = errors.New("baton: the app is stopping")
	errRefused  = errors.New("baton: this term was refused")
	errOldNews  = errors.New("baton: this term is known, or over")
)

type (
	// BecomeHook is called before the first run of a term; an error refuses the term.
	BecomeHook func(ctx context.Context, cluster ClusterContext) error
	// LoseHook is called when a term is over and all its handlers have returned.
	LoseHook func(ctx context.Context, cluster ClusterContext, reason pb.LossReason) error
)

// leading is a term from its beginning to its end: hooks, watch, attempts, and their cancellation.
//
// Guarantees: the become hook of a term begins only when everything of the term before has ended; what runs in a term
// is told to stop as soon as the term ends or its trust has run out; and lose returns only when all of it has
// stopped, because its answer lets the successor begin.
type leading struct {
	sidecar  *Sidecar
	onBecome map[string]BecomeHook
	onLose   map[string]LoseHook
	log      *slog.Logger
	clock    func() time.Duration
	// watches: Leadership.Watch renews trust. An attached app is told in its stream.
	watches bool

	mu       sync.Mutex
	groups   map[string]*group
	stopping bool
	live     int           // terms that are open or being ended
	idle     chan struct{} // closed while there are none
}

func newLeading(sidecar *Sidecar, log *slog.Logger) *leading {
	idle := make(chan struct{})
	close(idle)
	return &leading{
		sidecar: sidecar, log: log, clock: boottime, idle: idle,
		onBecome: make(map[string]BecomeHook), onLose: make(map[string]LoseHook), groups: make(map[string]*group),
	}
}

// epoch is the term in which this app may act as leader at this instant; 0: it may not.
func (l *leading) epoch(name string) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if open := l.group(name).open; open != nil && open.leads(l.clock()) {
		return open.cluster.Epoch
	}
	return 0
}

// become opens the term, unless it is old news; it returns when the hook is through.
func (l *leading) become(
	ctx context.Context, cluster ClusterContext, request *pb.OnBecomeLeaderRequest, arrivedAt time.Duration,
) error {
	l.mu.Lock()
	g := l.group(cluster.Group)
	l.mu.Unlock()
	given := trustOf(request, arrivedAt, clockIsBoottime)
	running, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	for {
		g.hook.Lock()
		enforcing, stop := context.WithCancel(context.Background())
		next := newTerm(cluster, given, stop, cancel)
		next.arrivedAt = arrivedAt
		before, err := l.open(ctx, g, next)
		if before == nil && err == nil {
			defer g.hook.Unlock()
			if l.watches {
				go l.watch(enforcing, next)
			}
			go l.enforce(enforcing, next)
			return l.takeUp(running, next)
		}
		stop()
		g.hook.Unlock()
		if before == nil {
			return ignored(err)
		}
		if err := before.wait(ctx); err != nil {
			l.log.Warn("the term before did not end well", "group", cluster.Group, "error", err)
		}
	}
}

// open opens a term, or gives the end of the term before, which must be waited for, or says why not.
func (l *leading) open(ctx context.Context, g *group, next *term) (before *ending, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case l.stopping:
		return nil, errStopping
	case g.open != nil && g.open.refused && g.open.cluster.Epoch == next.cluster.Epoch:
		return nil, errRefused
	case !g.isNews(next.cluster.Epoch):
		return nil, errOldNews
	case g.open != nil: // the end of the term before was never told
		return l.close(ctx, g, g.open.cluster, pb.LossReason_LOSS_REASON_UNSPECIFIED, g.open.cluster.Epoch), nil
	case g.ending != nil && !g.ending.isOver():
		return g.ending, nil
	}
	g.open, g.ending = next, nil
	if g.heard != nil && g.heardAt >= next.arrivedAt { // a renewal that came before the term was opened
		next.hear(g.heard, g.heardAt)
	}
	if l.live++; l.live == 1 {
		l.idle = make(chan struct{})
	}
	l.log.Info("leading", "group", next.cluster.Group, "epoch", next.cluster.Epoch)
	return nil, nil
}

// takeUp runs the hook. If it fails, or nobody waits for its answer any more, the term is refused.
func (l *leading) takeUp(ctx context.Context, opened *term) error {
	refuse := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		opened.refuse()
	}
	unwatched := context.AfterFunc(ctx, refuse)
	var err error
	if hook := l.onBecome[opened.cluster.Group]; hook != nil {
		err = guarded(func() error { return hook(ctx, opened.cluster) })
	}
	unwatched()
	if ctx.Err() != nil && err == nil { // not what `unwatched` tells: it may be a moment behind
		err = context.Cause(ctx)
	}
	if err != nil {
		refuse()
	}
	return err
}

// lose ends the term at once, and returns when all of it has stopped, or when nobody waits for the answer any more.
func (l *leading) lose(ctx context.Context, cluster ClusterContext, reason pb.LossReason, epoch uint64) error {
	return l.beginLoss(ctx, cluster, reason, epoch).wait(ctx)
}

// beginLoss ends the term at once and does not wait; nil: there is nothing to wait for.
func (l *leading) beginLoss(ctx context.Context, cluster ClusterContext, reason pb.LossReason, epoch uint64) *ending {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.group(cluster.Group)
	ending := l.close(ctx, g, cluster, reason, epoch)
	if ending != nil && epoch == 0 && ending.isOver() {
		return nil // a sidecar that makes contact must not be told of an old failure for ever
	}
	return ending
}

// close closes the open term of a group, if the epoch covers it, and gives the end of the last term. The lock is held.
func (l *leading) close(
	ctx context.Context, g *group, cluster ClusterContext, reason pb.LossReason, epoch uint64,
) *ending {
	if closed := g.close(epoch); closed != nil {
		closed.end(closed.overBecause(reason))
		g.ending = &ending{done: make(chan struct{})}
		cluster.Epoch, cluster.IsLeader = closed.cluster.Epoch, false
		go l.end(context.WithoutCancel(ctx), g, closed, cluster, reason, g.ending)
		l.log.Info("no longer leading", "group", cluster.Group, "epoch", cluster.Epoch, "reason", reason)
	}
	return g.ending
}

// end waits until all of a closed term has stopped, then calls the hook.
func (l *leading) end(
	ctx context.Context, g *group, closed *term, cluster ClusterContext, reason pb.LossReason, ending *ending,
) {
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.live--; l.live == 0 {
			close(l.idle)
		}
		close(ending.done)
	}()
	closed.all.Wait()
	g.hook.Lock()
	defer g.hook.Unlock()
	if hook := l.onLose[cluster.Group]; hook != nil {
		scope := scope{cluster: cluster, sidecar: l.sidecar}
		if above, ok := scopeOf(ctx); ok {
			scope.traceparent = above.traceparent
		}
		if ending.err = guarded(func() error { return hook(withScope(ctx, scope), cluster, reason) }); ending.err != nil {
			l.log.Error("the hook for losing leadership failed", "group", cluster.Group, "error", ending.err)
		}
	}
}

// start runs an attempt in its term: the term's end is its end too. The context is cancelled with the cause; `done`
// must be called when the attempt has returned.
func (l *leading) start(
	ctx context.Context, name string, epoch uint64,
) (running context.Context, draining <-chan struct{}, done func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	open := l.group(name).open
	if open == nil || open.cluster.Epoch != epoch || open.trust.left(l.clock()) <= 0 {
		return nil, nil, nil, errNotLed
	}
	running, cancel := context.WithCancelCause(ctx)
	key := new(execution)
	open.running[key] = cancel
	open.all.Add(1)
	return running, open.draining, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(open.running, key)
		open.all.Done()
		cancel(nil)
	}, nil
}

// stop lets no more terms in, and gives the groups that are led.
func (l *leading) stop() []ClusterContext {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopping = true
	var led []ClusterContext
	for _, g := range l.groups {
		if g.open != nil {
			led = append(led, g.open.cluster)
		}
	}
	return led
}

// endAll ends every term because the app stops; it waits no longer than the context lasts.
func (l *leading) endAll(ctx context.Context) {
	l.stop()
	l.detach()
	l.waitIdle(ctx)
}

// detach ends every term at once: the stream to the sidecar broke, or the app stops. It does not wait.
func (l *leading) detach() {
	l.mu.Lock()
	defer l.mu.Unlock()
	reason := pb.LossReason_LOSS_REASON_LEASE_LOST
	if l.stopping {
		reason = pb.LossReason_LOSS_REASON_SHUTDOWN
	}
	for _, g := range l.groups {
		if g.open != nil { // a hook that fails is logged where it fails
			l.close(context.Background(), g, g.open.cluster, reason, g.open.cluster.Epoch)
		}
	}
}

// hear takes in a renewal of trust that came in the stream.
func (l *leading) hear(leader *pb.Leader, readAt time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.group(groupOf(leader.GetGroup()))
	g.heard, g.heardAt = leader, readAt
	if g.open != nil {
		g.open.hear(leader, readAt)
	}
}

// waitIdle tells whether no term is open or being ended any more.
func (l *leading) waitIdle(ctx context.Context) bool {
	l.mu.Lock()
	idle := l.idle
	l.mu.Unlock()
	select {
	case <-idle:
		return true
	case <-ctx.Done():
		return false
	}
}

func (l *leading) group(name string) *group {
	found := l.groups[name]
	if found == nil {
		found = &group{}
		l.groups[name] = found
	}
	return found
}

// ignored lets old news pass: a message that came late is answered with OK.
func ignored(err error) error {
	if errors.Is(err, errOldNews) {
		return nil
	}
	return err
}

// guarded turns a panic into an error: what the app does wrong in one call must not end its others.
func guarded(work func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = panicked{value, debug.Stack()}
		}
	}()
	return work()
}
