"""How several groups spread over the runners, without anybody deciding it.

Every runner ranks all runners for each group and waits by its own rank before it competes. Who
leads less stands before who leads more, rendezvous hashing decides between equals, and groups that
are free together are gone through in one order: each counts for its first choice when the next one
is ranked. So all runners that see the same come to the same even spread; and whoever has its share
waits as long as anybody may for what is meant for others. Ranks only shift who gets a free group
first: they are never part of what makes the election safe.

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


def waits(
    me: str, vacant: Mapping[str, str], runners: Collection[str], leaders: Mapping[str, str]
) -> dict[str, float]:
    """How many seconds `me` lets better placed runners go first for each of the `vacant` groups.

    `vacant` maps each to who led it last: he is gone, and nobody waits for him. `leaders` maps each
    group to the runner that leads it now, as far as known.
    """
    led = Counter(runner for group, runner in leaders.items() if group not in vacant)
    seconds: dict[str, float] = {}
    for group in sorted(vacant):
        able = (set(runners) - {vacant[group]}) | {me}
        ranked = sorted(able, key=lambda runner: (led[runner], -score(runner, group)))
        seconds[group] = WAIT_SECONDS_MAX * ranked.index(me) / max(1, len(ranked) - 1)
        led[ranked[0]] += 1
    all_able = (set(runners) - set(vacant.values())) | {me}
    if led[me] >= share(len(leaders.keys() | vacant.keys()), len(all_able)):
        return {group: WAIT_SECONDS_MAX if wait else 0.0 for group, wait in seconds.items()}
    return seconds


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
