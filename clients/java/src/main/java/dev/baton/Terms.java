package dev.baton;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * The terms of all groups, and per group the highest epoch lost. Epochs are unsigned.
 *
 * <pre>
 * no term -- OnBecomeLeader(e), e above every epoch lost --> term e
 * term e  -- OnLoseLeadership(0, or an epoch >= e), or OnBecomeLeader(above e) --> no term, e lost
 * </pre>
 */
final class Terms {
  private final Map<String, Term> open = new HashMap<>();
  private final Map<String, Long> lost = new HashMap<>();
  private final Clock clock;

  Terms(Clock clock) {
    this.clock = clock;
  }

  /** The open term of a group, trusted or not. */
  synchronized Optional<Term> get(String group) {
    return Optional.ofNullable(open.get(group));
  }

  /** Every open term. */
  synchronized List<Term> all() {
    return List.copyOf(open.values());
  }

  /** Whether OnBecomeLeader with this epoch opens a term: above all lost and held. */
  synchronized boolean isNews(String group, long epoch) {
    Term held = open.get(group);
    return above(epoch, lost.getOrDefault(group, 0L)) && (held == null || above(epoch, held.epoch));
  }

  /** Opens a term if it is news and the one before it was closed. */
  synchronized Optional<Term> open(ClusterContext context, Long trustedUntil) {
    if (open.containsKey(context.group()) || !isNews(context.group(), context.epoch())) {
      return Optional.empty();
    }
    Term term = new Term(context, trustedUntil, clock);
    open.put(term.group, term);
    return Optional.of(term);
  }

  /** Ends the open term if `epoch` is 0 or not below it, and remembers what was lost. */
  synchronized Optional<Term> close(String group, long epoch) {
    lose(group, epoch);
    Term term = open.get(group);
    if (term == null || epoch != 0 && above(term.epoch, epoch)) {
      return Optional.empty();
    }
    term.end();
    lose(group, term.epoch);
    return Optional.of(open.remove(group));
  }

  private void lose(String group, long epoch) {
    lost.merge(group, epoch, (before, now) -> above(now, before) ? now : before);
  }

  private static boolean above(long epoch, long other) {
    return Long.compareUnsigned(epoch, other) > 0;
  }
}
