"""Losses of leadership that the app has not acknowledged; OnLoseLeadership is sent again for each.

Guarantee (G1): a loss is kept until the app has acknowledged it or a later loss of the same group.
While one is kept, the app counts as unhealthy: it receives no OnBecomeLeader and no Execute. Only
the newest loss of a group is kept, because acknowledging it ends every earlier term of the group.
"""

from sidecar.model.term import LossReason, Term


class UnacknowledgedLosses:
    """At most one loss per group. The election adds losses; the app watch acknowledges them."""

    def __init__(self) -> None:
        self._by_group: dict[int, tuple[Term, LossReason]] = {}

    def __bool__(self) -> bool:
        return bool(self._by_group)

    def pending(self) -> list[tuple[Term, LossReason]]:
        """The losses to send again, oldest epoch first."""
        return sorted(self._by_group.values(), key=lambda loss: loss[0].epoch)

    def add(self, term: Term, reason: LossReason) -> None:
        """OnLoseLeadership failed or timed out."""
        known = self._by_group.get(term.group_id)
        if known is None or known[0].epoch < term.epoch:
            self._by_group[term.group_id] = term, reason

    def acknowledge(self, term: Term) -> None:
        """The app returned OK."""
        known = self._by_group.get(term.group_id)
        if known and known[0].epoch <= term.epoch:
            del self._by_group[term.group_id]
