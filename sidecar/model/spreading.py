"""How several groups spread over the runners, without anybody deciding it.

Every runner ranks all runners for each group by rendezvous hashing and waits by its own rank
before it competes; a runner that already leads its share stands behind those that do not. Ranks
only shift who gets a free group first: they are never part of what makes the election safe.

Whoever begins to campaign for several groups first looks who else does, twice: of the runners that
start together, the first one has nobody to see at its first look.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from hashlib import sha256

from sidecar.model.election_words import RunnerSeen

WAIT_SECONDS_MAX = 0.3
# The second look at the registry comes this long after the first, and competing waits for it,
# though never for longer than WAIT_SECONDS_MAX.
LOOK_AGAIN_SECONDS = 0.2
# A runner must have been able to lead for this long before groups are handed to it.
SETTLED_SECONDS = 30.0


def score(runner_id: str, group: str) -> int:
    """Rendezvous weight: the highest is the first choice for the group."""
    return int.from_bytes(sha256(f"{group}\0{runner_id}".encode()).digest()[:8])


def share(groups: int, runners: int) -> int:
    """The most groups that one runner should lead."""
    return -(-groups // max(1, runners))


def wait_seconds(
    me: str, group: str, runners: Collection[str], leaders: Mapping[str, str]
) -> float:
    """How long `me` lets better placed runners go first for a free `group`.

    `leaders` maps each group to the runner that leads it now, as far as known.
    """
    candidates = set(runners) | {me}
    led = Counter(runner for name, runner in leaders.items() if name != group)
    limit = share(len(set(leaders) | {group}), len(candidates))
    ranked = sorted(candidates, key=lambda r: (led[r] >= limit, led[r], -score(r, group)))
    if len(ranked) == 1:
        return 0.0
    return WAIT_SECONDS_MAX * ranked.index(me) / (len(ranked) - 1)


def group_to_hand_over(
    me: str, mine: Sequence[str], runners: Collection[RunnerSeen], leaders: Mapping[str, str]
) -> str | None:
    """A group that `me` should give to a settled runner with less than its share, if any."""
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
