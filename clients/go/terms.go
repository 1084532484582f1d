package baton

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	pb "github.com/baton-sidecar/baton/clients/go/batonv1"
)

// Which groups this app leads, in which term, and until when it may believe so:
//
//	no term -- OnBecomeLeader(e), e above every epoch lost --> term e
//	term e  -- OnLoseLeadership(0, or an epoch >= e), or OnBecomeLeader(above e) --> no term, e lost
//
// Nothing here waits, reads a clock or locks: that is the business of leading.

// trust is until when a term may be believed in. The zero value: the sidecar said nothing about trust, so the app
// never counts as leader by itself, and its handlers end only with the term.
type trust struct {
	known bool
	until time.Duration
}

type trustMessage interface {
	GetTrustedFor() *durationpb.Duration
	GetTrustedUntilBoottime() *durationpb.Duration
}

// trustOf is the trust given by a message that was read at a time: the earlier of its two readings.
func trustOf(message trustMessage, readAt time.Duration, isBoottime bool) trust {
	given := trust{until: math.MaxInt64}
	if length := message.GetTrustedFor(); length != nil {
		given.known = true
		if length.AsDuration() < math.MaxInt64-readAt {
			given.until = readAt + length.AsDuration()
		}
	}
	if end := message.GetTrustedUntilBoottime(); end != nil && isBoottime {
		given = trust{true, min(given.until, end.AsDuration())}
	}
	return given
}

// left is the time that trust still lasts; without any trust time it never ends.
func (t trust) left(now time.Duration) time.Duration {
	if !t.known {
		return math.MaxInt64
	}
	return t.until - now
}

// term is one leadership of one group, with what runs in it.
type term struct {
	cluster ClusterContext
	trust   trust
	// given is the last trust that the sidecar gave; it outlasts trust that was taken back.
	given trust
	// arrivedAt is when OnBecomeLeader came.
	arrivedAt time.Duration
	// refused: the app did not take the term up. Nothing may renew it.
	refused  bool
	drains   bool
	draining chan struct{}
	// stop ends the watch over this term, and cancelHook the hook that takes it up.
	stop       context.CancelFunc
	cancelHook context.CancelCauseFunc
	running    map[*execution]context.CancelCauseFunc
	all        sync.WaitGroup
}

// execution is one attempt that runs in a term.
type execution struct{ _ byte } // not empty: pointers to it must differ

func newTerm(
	cluster ClusterContext, trust trust, stop context.CancelFunc, cancelHook context.CancelCauseFunc,
) *term {
	return &term{
		cluster: cluster, trust: trust, given: trust, stop: stop, cancelHook: cancelHook,
		draining: make(chan struct{}), running: make(map[*execution]context.CancelCauseFunc),
	}
}

// leads tells whether the app may act as leader at this instant.
func (t *term) leads(now time.Duration) bool { return t.trust.known && t.trust.left(now) > 0 }

// hear takes in a message of Leadership.Watch: only the newest counts, even where it ends sooner.
func (t *term) hear(leader *pb.Leader, readAt time.Duration) {
	if t.refused {
		return
	}
	if !leader.GetIsLeader() || leader.GetEpoch() != t.cluster.Epoch {
		t.distrust()
		return
	}
	if t.trust = trustOf(leader, readAt, clockIsBoottime); t.trust.known {
		t.given = t.trust
	} else {
		t.distrust() // a renewal must say for how long
	}
	if leader.GetDraining() && !t.drains {
		t.drains = true
		close(t.draining)
	}
}

// distrust ends trust at once; only a later message of this very term can bring it back.
func (t *term) distrust() { t.trust = trust{known: true} }

// refuse is for a term that was not taken up: nothing brings it back.
func (t *term) refuse() {
	t.refused = true
	t.distrust()
	t.stop()
}

// end tells everything that belongs to the term to stop.
func (t *term) end(cause error) {
	t.stop()
	t.cancelHook(cause)
	t.cancel(cause)
}

// cancel tells all that runs to stop, and whether anything did run.
func (t *term) cancel(cause error) bool {
	for _, cancel := range t.running {
		cancel(cause)
	}
	return len(t.running) > 0
}

// Why a handler had to stop, as [Cancelled.Reason]; else it is the name of the reason that came with the loss of
// leadership, such as LEASE_LOST.
const (
	// CancelHandover: the time to drain is over.
	CancelHandover = "HANDOVER"
	// CancelTrustExpired: the sidecar is gone, frozen or cut off.
	CancelTrustExpired = "TRUST_EXPIRED"
	// CancelCall: the run was cancelled, replaced or took too long, or the term is lost.
	CancelCall = "CALL_CANCELLED"
	// CancelDetached: the stream to the sidecar broke while a job ran.
	CancelDetached = "DETACHED"
)

// Cancelled is the cause of a handler's or hook's context when its term ended, or of a job's when its app stops or was
// detached: then it names no group. It is a context.Canceled too.
type Cancelled struct {
	Group  string
	Epoch  uint64
	Reason string
}

func (c Cancelled) Error() string {
	if c.Group == "" {
		return "baton: " + c.Reason
	}
	return fmt.Sprintf("baton: term %d of %s: %s", c.Epoch, c.Group, c.Reason)
}

// Unwrap gives context.Canceled.
func (c Cancelled) Unwrap() error { return context.Canceled }

func (t *term) cancelled(reason string) error {
	return Cancelled{t.cluster.Group, t.cluster.Epoch, reason}
}

// overBecause is the cause for what runs when the term is closed.
func (t *term) overBecause(reason pb.LossReason) error {
	if t.drains {
		return t.cancelled(CancelHandover)
	}
	return t.cancelled(strings.TrimPrefix(reason.String(), "LOSS_REASON_"))
}

// group is the leadership of one group over time.
type group struct {
	// hook is held while a hook runs: those of one group never overlap.
	hook sync.Mutex
	// open is the term that was not lost yet, trusted or not.
	open   *term
	lost   uint64
	ending *ending
	// heard is the last renewal that came in a stream.
	heard   *pb.Leader
	heardAt time.Duration
}

// ending is the end of a term: done when all that ran has stopped and the hook has returned.
type ending struct {
	done chan struct{}
	err  error
}

// wait gives the error of the hook, or of a context that ended before it returned.
func (e *ending) wait(ctx context.Context) error {
	if e == nil {
		return nil
	}
	select {
	case <-e.done:
		return e.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (e *ending) isOver() bool {
	select {
	case <-e.done:
		return true
	default:
		return false
	}
}

// isNews tells whether OnBecomeLeader with this epoch opens a term: above all lost and held.
func (g *group) isNews(epoch uint64) bool {
	return epoch > g.lost && (g.open == nil || epoch > g.open.cluster.Epoch)
}

// close ends the open term if the epoch is 0 or not below it, and remembers what was lost.
func (g *group) close(epoch uint64) *term {
	g.lost = max(g.lost, epoch)
	if g.open == nil || 0 < epoch && epoch < g.open.cluster.Epoch {
		return nil
	}
	closed := g.open
	g.lost, g.open = max(g.lost, closed.cluster.Epoch), nil
	return closed
}
