package baton

import (
	"context"
	"errors"
	"log/slog"
	"time"

	pb "github.com/baton-sidecar/baton/clients/go/batonv1"
)

// watch renews trust for as long as the term is open; a broken stream is opened again.
func (l *leading) watch(ctx context.Context, open *term) {
	level := slog.LevelWarn
	for pauses := newWaits(100*time.Millisecond, time.Second); ; {
		for leader, err := range l.sidecar.Leadership.Watch(ctx, open.cluster.Group) {
			readAt := l.clock() // first: what was held up must not stretch trust
			if err != nil {
				if ctx.Err() == nil {
					l.log.Log(ctx, level, "watching leadership", "group", open.cluster.Group, "error", err)
				}
				level = slog.LevelDebug // once is enough until it works again
				break
			}
			l.mu.Lock()
			open.hear(leader, readAt)
			l.mu.Unlock()
			pauses, level = newWaits(100*time.Millisecond, time.Second), slog.LevelWarn
		}
		if !sleep(ctx, pauses.next()) {
			return
		}
	}
}

// enforce ends a term whose trust was not renewed in time, without waiting for the sidecar to end it.
func (l *leading) enforce(ctx context.Context, open *term) {
	for {
		l.mu.Lock()
		left := open.trust.left(l.clock())
		l.mu.Unlock()
		if !sleep(ctx, min(max(left, 0), time.Second)+renewalSlack) { // timers stand still while the machine sleeps
			return
		}
		if l.expire(open) {
			l.giveBack(open.cluster)
			return
		}
	}
}

// expire cancels what runs in a term that is not trusted any more, and tells whether it ended the term. A sidecar that
// takes trust back before its time ends the term itself: it knows the reason.
func (l *leading) expire(open *term) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock()
	if open.trust.left(now) > 0 {
		return false
	}
	open.cancel(open.cancelled(CancelTrustExpired))
	g := l.group(open.cluster.Group)
	if open.given.left(now) > 0 || g.open != open {
		return false
	}
	l.log.Warn("trust has run out", "group", open.cluster.Group, "epoch", open.cluster.Epoch)
	l.close(context.Background(), g, open.cluster, pb.LossReason_LOSS_REASON_LEASE_LOST, open.cluster.Epoch)
	return true
}

// giveBack asks the sidecar to hand over a term that this app has ended by itself. A sidecar that was only slow would
// otherwise believe in the term, and nothing would run.
func (l *leading) giveBack(cluster ClusterContext) {
	ctx := context.Background()
	for pauses := newWaits(100*time.Millisecond, 2*time.Second); l.isOver(cluster); {
		leader, err := l.sidecar.Leadership.Get(ctx, cluster.Group)
		if err == nil {
			if leader.GetIsLeader() && leader.GetEpoch() == cluster.Epoch {
				_, err = l.sidecar.Leadership.Resign(ctx, cluster.Group)
			}
			if err == nil {
				return
			}
		}
		if !isAway(err) && !errors.Is(err, ErrDeadlineExceeded) {
			l.log.Warn("resigning", "group", cluster.Group, "error", err)
			return
		}
		sleep(ctx, pauses.next())
	}
}

// isOver tells whether this term is the last that was known, and over.
func (l *leading) isOver(cluster ClusterContext) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.group(cluster.Group)
	return !l.stopping && g.open == nil && g.lost == cluster.Epoch
}
