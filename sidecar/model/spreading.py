"""Spreads several groups evenly over the runners without a coordinator.

Every runner ranks all runners for each free group and delays its own attempt by its rank. A runner
that leads fewer groups ranks before one that leads more; rendezvous hashing breaks ties. Groups
that become free together are ranked in one fixed order, and each counts as led by its first choice
when the next one is ranked. So all runners that see the same registry compute the same even spread.
A runner that already has its share waits the longest delay for the groups meant for others. Ranks
only decide which runner gets a free group first: the safety of the election never depends on them.

A runner that starts to campaign for several groups first reads the registry twice: of several
runners that start together, the first one sees no other runner at its first read.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from hashlib import sha256

from sidecar.model.election_types import RunnerSeen

RANK_DELAY_SECONDS_MAX = 0.3
# The time between the first and the second read of the registry. Competing waits for the second
# read, but never longer than RANK_DELAY_SECONDS_MAX.
DISCOVERY_SECONDS = 0.2
# A runner must have campaigned for this long before other runners hand groups over to it.
SETTLED_SECONDS = 30.0


def score(runner_id: str, group: str) -> int:
    """Rendezvous weight: the highest is the first choice for the group."""
    return int.from_bytes(sha256(f"{group}\0{runner_id}".encode()).digest()[:8])


def share(groups: int, runners: int) -> int:
    """The most groups that one runner should lead."""
    return -(-groups // max(1, runners))


def rank_delays(
    me: str, vacant: Mapping[str, str], runners: Collection[str], leaders: Mapping[str, str]
) -> dict[str, float]:
    """How many seconds `me` must wait before it tries each of the `vacant` groups.

    `vacant` maps each of them to its last leader, which is gone and therefore not ranked. `leaders`
    maps each group to the runner that leads it now, as far as known.
    """
    led = Counter(runner for group, runner in leaders.items() if group not in vacant)
    seconds: dict[str, float] = {}
    for group in sorted(vacant):
        able = (set(runners) - {vacant[group]}) | {me}
        ranked = sorted(able, key=lambda runner: (led[runner], -score(runner, group)))
        seconds[group] = RANK_DELAY_SECONDS_MAX * ranked.index(me) / max(1, len(ranked) - 1)
        led[ranked[0]] += 1
    all_able = (set(runners) - set(vacant.values())) | {me}
    if led[me] >= share(len(leaders.keys() | vacant.keys()), len(all_able)):
        return {group: RANK_DELAY_SECONDS_MAX if wait else 0.0 for group, wait in seconds.items()}
    return seconds


def group_to_hand_over(
    me: str, mine: Sequence[str], runners: Collection[RunnerSeen], leaders: Mapping[str, str]
) -> str | None:
    """A group that `me` should hand over to a settled runner below its share, if any."""
    settled = {
        r.runner_id
        for r in runners
        if r.campaigning and r.campaigning_seconds >= SETTLED_SECONDS and r.runner_id != me
    }
    limit = share(len(leaders), len(settled) + 1)
    led = Counter(leaders.values())
    if len(mine) <= limit or not any(led[r] < limit for r in settled):
        return None
    return min(mine, key=lambda group: score(me, group))
