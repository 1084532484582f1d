"""Groups spread over runners by rank; ranks only shift who goes first."""

import pytest

from sidecar.model.election_words import RunnerSeen
from sidecar.model.spreading import (
    SETTLED_SECONDS,
    WAIT_SECONDS_MAX,
    group_to_hand_over,
    share,
    wait_seconds,
)

RUNNERS = ["a", "b", "c"]


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
    waits = sorted(wait_seconds(me, "default", RUNNERS, {}) for me in RUNNERS)
    assert waits == [0.0, WAIT_SECONDS_MAX / 2, WAIT_SECONDS_MAX]


def test_everybody_ranks_alike_whatever_the_order() -> None:
    for me in RUNNERS:
        assert wait_seconds(me, "g", RUNNERS, {}) == wait_seconds(me, "g", RUNNERS[::-1], {})


def test_a_lone_or_unlisted_runner_goes_at_once() -> None:
    assert wait_seconds("a", "default", [], {}) == 0.0
    assert wait_seconds("a", "default", ["a"], {}) == 0.0


def test_groups_have_different_first_choices() -> None:
    groups = [f"g{n}" for n in range(30)]
    first = {me for g in groups for me in RUNNERS if wait_seconds(me, g, RUNNERS, {}) == 0.0}
    assert first == set(RUNNERS)


def test_who_leads_its_share_stands_behind_who_leads_nothing() -> None:
    leaders = {"g1": "a", "g2": "", "g3": ""}
    for group in ("g2", "g3"):
        assert wait_seconds("a", group, RUNNERS, leaders) == WAIT_SECONDS_MAX


def test_the_group_in_question_does_not_count_against_its_last_leader() -> None:
    free = [wait_seconds(me, "g1", RUNNERS, {"g1": ""}) for me in RUNNERS]
    assert free == [wait_seconds(me, "g1", RUNNERS, {"g1": "a"}) for me in RUNNERS]


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
                leaders[surplus] = min(
                    RUNNERS, key=lambda r: wait_seconds(r, surplus, RUNNERS, free)
                )
    assert sorted(leaders.values()) == ["a", "a", "b", "b", "c", "c"]
