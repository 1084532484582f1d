"""When this runner competes for free groups, and which group it hands over to a peer.

Nothing here makes the election safe: the lock and the grace period do. It only decides which runner
gets a free group first, so that several groups spread evenly over the runners.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from sidecar.model.election_group import Group
from sidecar.model.election_types import Phase, RunnerSeen
from sidecar.model.spreading import (
    DISCOVERY_SECONDS,
    RANK_DELAY_SECONDS_MAX,
    SETTLED_SECONDS,
    group_to_hand_over,
    rank_delays,
)


@dataclass(slots=True)
class Campaign:
    """What the registry shows about the other runners, and what follows from it."""

    runner_id: str
    groups: Mapping[int, Group] = field(default_factory=dict)
    runners: Collection[RunnerSeen] = ()
    started_at: float = 0.0
    compete_from: float = 0.0  # no lock is tried before

    @property
    def has_campaigning_peers(self) -> bool:
        return any(r.campaigning for r in self.runners if r.runner_id != self.runner_id)

    def start(self, now: float) -> None:
        """With several groups, read the registry twice before competing.

        Otherwise the first of the runners that start together would take all groups.
        """
        self.started_at = now
        if len(self.groups) > 1:
            self.compete_from = now + RANK_DELAY_SECONDS_MAX

    def discovering_peers(self, now: float) -> bool:
        """Whether the registry must be read again, DISCOVERY_SECONDS later, before competing."""
        return now < self.compete_from

    def observe(self, runners: Collection[RunnerSeen], now: float) -> None:
        """The registry was read."""
        self.runners = runners
        if now >= self.started_at + DISCOVERY_SECONDS:
            self.compete_from = min(self.compete_from, now)
        self.rank()

    def rank(self) -> None:
        """Set the delay of each group that another runner may lead.

        Call it when the campaigning runners or the leaders of groups have changed.
        """
        leaders = self._leaders()
        campaigning = [r.runner_id for r in self.runners if r.campaigning]
        waiting = [g for g in self.groups.values() if not g.locked]
        # Ranked together: the groups that are free, and those that one leader would leave free.
        for leader in {leaders[g.name] for g in waiting}:
            together = [g for g in waiting if leaders[g.name] == leader]
            vacant = {g.name: g.holder.runner_id for g in together}
            delays = rank_delays(self.runner_id, vacant, campaigning, leaders)
            for g in together:
                g.rank_delay = delays[g.name]

    def surplus_group(self, now: float) -> Group | None:
        """A group that this runner leads beyond its share and should hand over, if any."""
        mine = [g for g in self.groups.values() if g.phase is Phase.LEADING]
        if any(now - g.acquired_at < SETTLED_SECONDS for g in mine):
            return None  # The last leader may have crashed and still be in the registry.
        names = [g.name for g in mine]
        surplus = group_to_hand_over(self.runner_id, names, self.runners, self._leaders())
        return next((g for g in mine if g.name == surplus), None)

    def _leaders(self) -> dict[str, str]:
        """The runner that leads each group, as far as known."""
        return {g.name: self.runner_id if g.locked else g.live_holder for g in self.groups.values()}
