"""Groups spread over runners by rank; ranks only shift who goes first."""

from collections import Counter
from collections.abc import Collection, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.model.election_types import RunnerSeen
from sidecar.model.spreading import (
    RANK_DELAY_SECONDS_MAX,
    SETTLED_SECONDS,
    group_to_hand_over,
    rank_delays,
    share,
)

RUNNERS = ["a", "b", "c"]


def rank_delay(me: str, group: str, runners: Collection[str], leaders: Mapping[str, str]) -> float:
    """The wait for one group that is free alone."""
    return rank_delays(me, {group: "gone"}, runners, leaders)[group]


def _first_choices(
    vacant: Mapping[str, str], runners: Collection[str], leaders: Mapping[str, str]
) -> dict[str, str]:
    """Who goes first for each group; every runner finds the same one, out of its own view."""
    views = {me: rank_delays(me, vacant, runners, leaders) for me in runners}
    assert all(
        0 <= wait <= RANK_DELAY_SECONDS_MAX for view in views.values() for wait in view.values()
    )
    first = {group: [me for me in runners if views[me][group] == 0.0] for group in vacant}
    assert all(len(choices) == 1 for choices in first.values())
    return {group: choices[0] for group, choices in first.items()}


def _settled(
    *names: str, campaigning: bool = True, seconds: float = SETTLED_SECONDS
) -> list[RunnerSeen]:
    return [RunnerSeen(name, campaigning, seconds) for name in names]


@pytest.mark.parametrize(
    ("groups", "runners", "limit"), [(1, 3, 1), (3, 3, 1), (4, 3, 2), (64, 3, 22), (5, 0, 5)]
)
def test_share_is_rounded_up(groups: int, runners: int, limit: int) -> None:
    assert share(groups, runners) == limit


def test_ranks_are_spread_from_zero_to_the_longest_wait() -> None:
    delays = sorted(rank_delay(me, "default", RUNNERS, {}) for me in RUNNERS)
    assert delays == [0.0, RANK_DELAY_SECONDS_MAX / 2, RANK_DELAY_SECONDS_MAX]


def test_everybody_ranks_alike_whatever_the_order() -> None:
    for me in RUNNERS:
        assert rank_delay(me, "g", RUNNERS, {}) == rank_delay(me, "g", RUNNERS[::-1], {})


def test_a_lone_or_unlisted_runner_goes_at_once() -> None:
    assert rank_delay("a", "default", [], {}) == 0.0
    assert rank_delay("a", "default", ["a"], {}) == 0.0


def test_groups_have_different_first_choices() -> None:
    groups = [f"g{n}" for n in range(30)]
    first = {me for g in groups for me in RUNNERS if rank_delay(me, g, RUNNERS, {}) == 0.0}
    assert first == set(RUNNERS)


def test_who_leads_its_share_stands_behind_who_leads_nothing() -> None:
    leaders = {"g1": "a", "g2": "", "g3": ""}
    for group in ("g2", "g3"):
        assert rank_delay("a", group, RUNNERS, leaders) == RANK_DELAY_SECONDS_MAX


def test_the_group_in_question_does_not_count_against_its_last_leader() -> None:
    free = [rank_delay(me, "g1", RUNNERS, {"g1": ""}) for me in RUNNERS]
    assert free == [rank_delay(me, "g1", RUNNERS, {"g1": "a"}) for me in RUNNERS]


_NAMES = st.text("abcdefgh-0123456789", min_size=1, max_size=8)
_GROUPS = st.sets(_NAMES, min_size=1, max_size=64)
_RUNNERS = st.sets(_NAMES, min_size=1, max_size=12)


@given(_GROUPS, _RUNNERS)
def test_groups_free_together_spread_evenly(groups: set[str], runners: set[str]) -> None:
    """And then nothing is left to hand over."""
    led = _first_choices(dict.fromkeys(groups, ""), runners, dict.fromkeys(groups, ""))
    loads = [Counter(led.values())[runner] for runner in runners]
    assert max(loads) - min(loads) <= 1
    for me in runners:
        mine = [group for group, leader in led.items() if leader == me]
        assert group_to_hand_over(me, mine, _settled(*runners), led) is None


@given(_GROUPS, _RUNNERS, st.data())
def test_nobody_gets_more_than_its_share_while_others_have_less(
    groups: set[str], runners: set[str], data: st.DataObject
) -> None:
    """Whoever leads what when some groups come free."""
    leading = st.sampled_from(sorted(runners | {""}))
    leaders = {group: data.draw(leading) for group in sorted(groups)}
    vacant = {group: "" for group, leader in leaders.items() if not leader}
    before = Counter(leader for leader in leaders.values() if leader)
    first = _first_choices(vacant, runners, leaders)
    after = before + Counter(first.values())
    for runner in set(first.values()):
        assert after[runner] <= share(len(groups), len(runners)) or all(
            after[runner] - after[other] <= 1 for other in runners
        )


@given(_GROUPS, st.sets(_NAMES, min_size=2, max_size=12))
def test_the_groups_of_a_runner_that_is_gone_spread_evenly(
    groups: set[str], runners: set[str]
) -> None:
    free = dict.fromkeys(groups, "")
    leaders = _first_choices(free, runners, free)
    gone = sorted(runners)[0]
    vacant = {group: gone for group, leader in leaders.items() if leader == gone}
    left = runners - {gone}
    loads = Counter({**leaders, **_first_choices(vacant, left, leaders)}.values())
    assert max(loads[r] for r in left) - min(loads[r] for r in left) <= 1


def test_surplus_goes_to_a_settled_runner_with_less() -> None:
    leaders = {"g1": "a", "g2": "a"}
    surplus = group_to_hand_over("a", ["g1", "g2"], _settled("a", "b"), leaders)
    assert surplus in ("g1", "g2")


@pytest.mark.parametrize(
    "others",
    [
        [],
        _settled("b", campaigning=False),
        _settled("b", seconds=SETTLED_SECONDS - 1),
    ],
    ids=["alone", "not campaigning", "not settled"],
)
def test_nothing_is_handed_over_without_a_settled_taker(others: list[RunnerSeen]) -> None:
    leaders = {"g1": "a", "g2": "a"}
    assert group_to_hand_over("a", ["g1", "g2"], [*_settled("a"), *others], leaders) is None


def test_nothing_is_handed_over_within_the_share() -> None:
    leaders = {"g1": "a", "g2": "b", "g3": "a"}
    assert group_to_hand_over("a", ["g1", "g3"], _settled("a", "b"), leaders) is None


def test_handing_over_ends_when_the_shares_are_even() -> None:
    """Rebalancing never goes back and forth."""
    leaders = {f"g{n}": "a" for n in range(6)}
    runners = _settled(*RUNNERS)
    for _ in range(20):
        for me in RUNNERS:
            mine = [g for g, leader in leaders.items() if leader == me]
            surplus = group_to_hand_over(me, mine, runners, leaders)
            if surplus:
                free = {**leaders, surplus: ""}
                leaders[surplus] = min(RUNNERS, key=lambda r: rank_delay(r, surplus, RUNNERS, free))
    assert sorted(leaders.values()) == ["a", "a", "b", "b", "c", "c"]
