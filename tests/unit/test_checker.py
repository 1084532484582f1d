"""The judge is judged: each seeded violation is found, and a correct history passes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.lab import checker, history
from tests.lab.history import Event

_CALLS = iter(range(1, 1_000_000))


def _become(app: str, at: float, epoch: int, trusted_for: float = 3, **more: object) -> list[Event]:
    call = next(_CALLS)
    arrived = Event(
        at=at, app=app, kind="become", call=call, group="g", epoch=epoch, trusted_for=trusted_for
    )
    ended = Event(
        at=at + 0.01, app=app, kind="become", phase="ended", call=call, group="g", epoch=epoch,
        outcome="ok",
    )  # fmt: skip
    return [replace(arrived, **more), ended]  # type: ignore[arg-type]


def _lose(app: str, at: float, epoch: int) -> list[Event]:
    return [Event(at=at, app=app, kind="lose", call=next(_CALLS), group="g", epoch=epoch)]


def _renew(app: str, at: float, epoch: int, trusted_for: float = 3) -> list[Event]:
    return [
        Event(at=at, app=app, kind="watch", group="g", epoch=epoch, is_leader=True,
              trusted_for=trusted_for)
    ]  # fmt: skip


def _execute(app: str, at: float, end: float | None, epoch: int) -> list[Event]:
    arrived = Event(at=at, app=app, kind="execute", call=next(_CALLS), group="g", epoch=epoch)
    if end is None:
        return [arrived]
    return [arrived, replace(arrived, at=end, phase="ended", outcome="succeeded")]


def _good() -> list[Event]:
    """a leads, renews, works and hands over to b, which dies; a takes over when trust ran out."""
    return [
        *_become("a", 10, 100),
        *_renew("a", 11, 100),
        *_execute("a", 11.5, 11.9, 100),
        *_renew("a", 12, 100),
        *_lose("a", 13, 100),
        *_become("b", 13.001, 101),
        *_execute("b", 14, None, 101),
        *_become("a", 16.002, 102),
    ]


def test_a_correct_history_passes() -> None:
    checker.assert_holds(_good(), kinds=("become", "lose", "execute", "watch"))


@pytest.mark.parametrize("kind", ["become", "execute"])
def test_a_history_in_which_nothing_happened_fails(kind: str) -> None:
    with pytest.raises(AssertionError, match=f"nothing proven: no {kind}"):
        checker.assert_holds([], kinds=(kind,))


@pytest.mark.parametrize(
    ("seeded", "message"),
    [
        pytest.param(_become("c", 12.5, 103), "two leaders for 0.500 s", id="before the loss"),
        pytest.param(_renew("b", 15, 101), "two leaders for 1.998 s", id="renewed past takeover"),
        pytest.param(_become("c", 20, 102), "epoch 102 of c after 102 of a", id="equal epoch"),
        pytest.param(_become("a", 20, 99), "epoch 99 of a after 102 of a", id="falling epoch"),
        pytest.param(_execute("a", 10.001, 10.2, 100), "before OnBecomeLeader was", id="too early"),
        pytest.param(_execute("c", 12, 12.2, 100), "before OnBecomeLeader was", id="never told"),
        pytest.param(_execute("a", 13.1, 13.2, 100), "outside of a term", id="after the loss"),
        pytest.param(_execute("a", 12, 14, 100), "went on after OnLose", id="not cancelled"),
        pytest.param(_execute("a", 12, None, 100), "went on after OnLose", id="never ended"),
        pytest.param(_execute("b", 16.1, 16.2, 101), "outside of a term", id="trust ran out"),
    ],
)
def test_a_seeded_violation_is_found(seeded: list[Event], message: str) -> None:
    """G1 and G2 broken on purpose."""
    found = checker.violations([*_good(), *seeded])
    assert any(message in line for line in found), found


def test_the_clock_of_the_machine_limits_the_trust() -> None:
    """An app that read its OnBecomeLeader late, after it was frozen, does not lead."""
    late = _become("c", 12.5, 99, trusted_until=12.4)
    early = [*_become("a", 10, 98, trusted_for=9), *_lose("a", 14, 98)]
    assert not [line for line in checker.violations([*early, *late]) if "G1" in line]


def test_a_sooner_end_counts() -> None:
    events = [*_become("a", 10, 1, 9), *_renew("a", 11, 1, 0.5), *_become("b", 11.6, 2)]
    assert not checker.violations(events)


def test_a_renewal_after_the_end_is_a_new_belief() -> None:
    events = [*_become("a", 10, 1, 1), *_become("b", 12, 2, 3), *_renew("a", 13, 1)]
    assert "two leaders for 2.000 s" in checker.violations(events)[0]


@pytest.mark.parametrize(
    "denial",
    [
        Event(at=11, app="a", kind="watch", group="g", epoch=1),
        Event(at=11, app="a", kind="watch", group="g", epoch=2, is_leader=True, trusted_for=3),
        Event(at=11, app="a", kind="lose", group="g", epoch=0),
        Event(at=11, app="a", kind="start"),
    ],
)
def test_what_ends_a_belief(denial: Event) -> None:
    events = [*_become("a", 10, 1, 9), denial, *_become("b", 11, 2)]
    assert not checker.violations(events)


@pytest.mark.parametrize(
    "other",
    [
        Event(at=11, app="a", kind="watch_broken", group="g"),
        Event(at=11, app="a", kind="lose", group="h", epoch=1),
        Event(at=11, app="b", kind="lose", group="g", epoch=1),
        Event(at=11, app="a", kind="lose", group="g", epoch=0, phase="ended"),
    ],
)
def test_what_does_not_end_a_belief(other: Event) -> None:
    events = [*_become("a", 10, 1, 9), other, *_become("b", 12, 2)]
    assert [line for line in checker.violations(events) if "two leaders" in line]


def test_a_denial_that_was_overtaken_makes_no_execution_wrong() -> None:
    denial = Event(at=10.1, app="a", kind="watch", group="g", epoch=1)
    events = [*_become("a", 10, 2), denial, *_execute("a", 10.2, 10.3, 2), *_renew("a", 11, 2)]
    assert not checker.violations(events)
    assert [(belief.start, belief.end) for belief in checker.beliefs(events)] == [
        (10, 10.1),
        (11, 14),
    ]


@pytest.mark.parametrize(
    ("app", "since", "found"),
    [
        pytest.param("a", 11, False, id="sent before it stood still"),
        pytest.param("a", 12, True, id="its trust was over before"),
        pytest.param("b", 11, True, id="another app stood still"),
    ],
)
def test_what_arrived_while_the_app_stood_still_counts_from_then(
    app: str, since: float, found: bool
) -> None:
    woke = Event(at=20, app=app, kind="woke", fields={"since": since})
    events = [*_become("a", 10, 1, 1.5), woke, *_execute("a", 20.1, 20.2, 1)]
    assert bool([line for line in checker.violations(events) if "outside" in line]) is found
    late = [*_become("a", 10, 1, 1.5), woke, *_execute("a", 21, 21.2, 1)]
    assert [line for line in checker.violations(late) if "outside" in line]


def test_a_term_that_the_app_ignored_does_not_count() -> None:
    events = [*_become("a", 10, 5), *_become("b", 11, 4, ignored=True)]
    assert not checker.violations(events)


def test_groups_are_independent() -> None:
    other = [replace(event, group="h") for event in _become("b", 10, 100)]
    assert not checker.violations([*_become("a", 10, 100), *other])


def test_a_cut_off_line_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text('{"at": 2, "app": "a", "kind": "start"}\n{"at": 1, "app": "a", "kind')
    other = tmp_path / "b.jsonl"
    other.write_text('{"at": 1, "app": "b", "kind": "start", "fields": {"pid": 7}}\n')
    events = history.read([file, other, tmp_path / "none"])
    assert [event.app for event in events] == ["b", "a"]
    assert history.select(events, "start", pid=7) == [events[0]]
