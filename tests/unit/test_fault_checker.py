"""The judge of the fault suite is judged: each rule finds its seeded violations, and no others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tests.lab import check_health, verdict
from tests.lab.evidence import Commit, Evidence, Footprint, Terms, Tick, Window
from tests.lab.history import Event
from tests.lab.ops import Op
from tests.lab.probes import Answer

TERMS = Terms(takeover_seconds=10.0, recovery_seconds=15.0, mutes=True, red="app:")
OLD, NEW = 1000, 2000
FAULT_AT, HEALED_AT = 110.0, 118.0


def _second(number: int) -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=number)


def _tick(name: str, number: int, **more: object) -> Tick:
    at = _second(number)
    run_id = 100 * ["each", "newest", "sum"].index(name) + number
    tick = Tick(name, at, at, 1, run_id, "ended", "succeeded", None, at + timedelta(seconds=0.1))
    return replace(tick, **more)  # type: ignore[arg-type]


def _call(app: str, kind: str, at: float, call: int, epoch: int, **fields: object) -> list[Event]:
    arrived = Event(at=at, app=app, kind=kind, call=call, group="default", epoch=epoch,
                    fields=dict(fields), trusted_for=9.0)  # fmt: skip
    outcome = "succeeded" if kind == "execute" else "ok"
    return [arrived, replace(arrived, at=at + 0.01, phase="ended", outcome=outcome)]


def _good() -> Evidence:
    """a leads and dies at 110; b is told at 114; a comes back at 118; all is well."""
    ticks = [_tick(name, n) for name in ("each", "newest", "sum") for n in range(20)]
    events = [*_call("a", "become", 100, 1, OLD), *_call("b", "become", 114, 2, NEW)]
    for place, tick in enumerate(ticks):
        app, at, epoch = ("a", 102, OLD) if place % 20 < 10 else ("b", 116, NEW)
        events += _call(app, "execute", at, 10 + place, epoch, name=tick.name, run_id=tick.run_id)
    return Evidence(
        events=events,
        ops=_good_ops(),
        ticks=ticks,
        settled_until=_second(19),
        commits=[_commit(tick.run_id, place % 20) for place, tick in enumerate(ticks)],
        values={"load/a": 2, "load/shared": 2, "singleton-state:c": 2, "schedule-state:sum": 20},
        answers=[
            Answer(101, "a", 200, "ok", 0.01), Answer(112, "a", 503, "app: gone", 0.01),
            Answer(125, "a", 200, "ok", 0.01), Answer(101, "b", 200, "ok", 0.01),
        ],
        windows=[Window(FAULT_AT, HEALED_AT, "a")],
        before=[Footprint("b", 7, 4, 1, 30, 80.0)],
        after=[Footprint("b", 7, 5, 1, 33, 84.0), Footprint("a", 8, 3, 1, 30, 70.0)],
    )  # fmt: skip


def _commit(run_id: int, number: int, **more: object) -> Commit:
    epoch = OLD if number < 10 else NEW
    return replace(
        Commit(_second(number), run_id, epoch, "ended", "succeeded"),
        **more,  # type: ignore[arg-type]
    )


def _op(kind: str, key: str, number: int, asked: float, **more: object) -> Op:
    op = Op("a", kind, key, number, asked, asked + 0.1, "ok", OLD)
    return replace(op, **more)  # type: ignore[arg-type]


def _good_ops() -> list[Op]:
    return [
        _op("put", "load/a", 1, 101),
        _op("put", "load/a", 2, 103),
        _op("put", "load/a", 3, 109, answered_at=None, outcome=""),
        _op("own", "load/a", 2, 104),
        _op("strong", "load/a", 2, 104),
        _op("cached", "load/a", 1, 104),
        _op("add", "load/shared", 1, 101),
        _op("add", "load/shared", 2, 102),
        _op("add", "load/shared", 2, 102.1, outcome="ABORTED"),
        _op("begin", "singleton-state:c", 0, 100),
        _op("count", "singleton-state:c", 1, 101),
        _op("begin", "singleton-state:c", 1, 115, epoch=NEW),
        _op("count", "singleton-state:c", 2, 116, epoch=NEW),
    ]


def _found(evidence: Evidence, terms: Terms = TERMS) -> list[str]:
    return verdict.violations(evidence, terms)


def test_a_good_history_passes() -> None:
    assert _found(_good()) == []


def test_a_history_in_which_nothing_happened_fails() -> None:
    found = _found(Evidence())
    for what in verdict.happened(Evidence()):
        assert any(f"nothing proven: 0 {what}," in line for line in found)


def test_a_fault_may_ask_for_more() -> None:
    terms = replace(TERMS, least={"put": 3})
    assert _found(_good(), terms) == [
        "[happened] nothing proven: 2 put, at least 3 were to happen"
    ]  # fmt: skip


Seed = Callable[[Evidence], Evidence]


def _with_tick(name: str, number: int, **more: object) -> Seed:
    def seed(good: Evidence) -> Evidence:
        changed = _tick(name, number, **more)
        rest = [t for t in good.ticks if (t.name, t.first) != (name, _second(number))]
        return replace(good, ticks=[*rest, changed])

    return seed


def _more(**fields: list[object]) -> Seed:
    """Adds to the lists of the evidence."""

    def seed(good: Evidence) -> Evidence:
        joined = {name: [*getattr(good, name), *items] for name, items in fields.items()}
        return replace(good, **joined)  # type: ignore[arg-type]

    return seed


def _value(key: str, value: int) -> Seed:
    return lambda good: replace(good, values={**good.values, key: value})


def _without_tick(name: str, number: int) -> Seed:
    def seed(good: Evidence) -> Evidence:
        kept = [t for t in good.ticks if (t.name, t.first) != (name, _second(number))]
        return replace(good, ticks=kept)

    return seed


def _leader_again(at: float) -> Seed:
    return _more(events=list(_call("c", "become", at, 999, NEW + 1)))


def _nobody_takes_over(good: Evidence) -> Evidence:
    return replace(good, events=[event for event in good.events if event.app == "a"])


def _grown(**more: object) -> Seed:
    return lambda good: replace(good, after=[replace(good.after[0], **more)])  # type: ignore[arg-type]


LOST_UPDATE = _op("count", "singleton-state:c", 5, 112)

SEEDED = [
    ("leadership", _leader_again(115.0), "two leaders for"),
    ("leadership", _more(events=list(_call("a", "become", 130, 998, OLD))), "epoch 1000 of a"),
    ("fenced", _more(commits=[_commit(5, 15, epoch=OLD)]), "stale commit: run 5"),
    ("one-outcome", _without_tick("each", 7), "no row for the ticks between"),
    ("one-outcome", _without_tick("newest", 19), "no row after"),
    ("one-outcome", _more(ticks=[_tick("each", 7, run_id=999)]), "two rows for"),
    ("one-outcome", _with_tick("each", 7, state="running", outcome=None), "has no outcome"),
    ("one-outcome", _with_tick("newest", 7, count=3), "counts 3 ticks"),
    ("one-outcome", _with_tick("newest", 7, outcome="failed"), "failed, although"),
    (
        "one-outcome",
        _with_tick("each", 7, outcome="skipped", reason="misfire"),
        "skipped (misfire)",
    ),
    ("one-outcome", lambda good: replace(good, ticks=[]), "not one tick"),
    ("completed-once", _more(commits=[_commit(5, 19)]), "run 5 was completed twice"),
    ("early", _with_tick("each", 7, started_at=_second(6)), "was started at"),
    ("delivered", _with_tick("each", 7, run_id=999), "a success that no app answered"),
    ("summed", _value("schedule-state:sum", 21), "is 21 after 20 successes"),
    ("summed", _value("schedule-state:sum", 19), "is 19 after 20 successes"),
    ("answers", _more(ops=[_op("put", "load/a", 3, 105, outcome="UNKNOWN")]), "answered UNKNOWN"),
    ("answers", _more(ops=[_op("strong", "x", 0, 105, outcome="INTERNAL")]), "answered INTERNAL"),
    ("kept", _value("load/a", 1), "lost: load/a is 1, but 2"),
    ("kept", _value("load/a", 4), "which nobody ever wrote"),
    ("kept", _value("load/shared", 1), "lost: load/shared"),
    ("once", _more(ops=[_op("add", "load/shared", 2, 105)]), "doubled: add to 2"),
    ("once", _more(ops=[_op("count", "singleton-state:c", 2, 117)]), "doubled: count to 2"),
    ("handed-over", _more(ops=[LOST_UPDATE]), "began at 1 under 2000, but 5"),
    ("handed-over", _more(ops=[_op("begin", "singleton-state:c", 1, 117, epoch=NEW)]), "but 2 was"),
    ("fresh", _more(ops=[_op("strong", "load/a", 1, 104)]), "strong read of load/a: 1, not 2"),
    ("fresh", _more(ops=[_op("own", "load/a", 1, 104)]), "own read of load/a: 1, not 2"),
    ("fresh", _more(ops=[_op("cached", "load/a", 1, 107)]), "cached read of load/a: 1, not 2"),
    ("in-time", _nobody_takes_over, "takeover after None"),
    ("red-with-cause", _more(answers=[Answer(140, "b", 503, "app: no", 0.1)]), "without a cause"),
    ("red-with-cause", _more(answers=[Answer(111, "b", 503, " ", 0.1)]), "says no reason"),
    ("red-with-cause", _more(answers=[Answer(140, "b", 0, "refused", 0.1)]), "no answer from b"),
    ("red-when-due", lambda good: replace(good, answers=good.answers[:1]), "never said 'app:'"),
    ("green-again", _more(answers=[Answer(130, "b", 503, "app: x", 0.1)]), "b is not ready at the"),
    ("leaks", _grown(connections=7), "7 connections to Postgres"),
    ("leaks", _grown(cache_connections=9), "9 connections to Redis"),
    ("leaks", _grown(descriptors=50), "30 descriptors became 50"),
    ("leaks", _grown(megabytes=120.0), "80 MB became 120"),
    ("unbroken", _more(broken=["b: its sidecar ended by itself"]), "ended by itself"),
]


@pytest.mark.parametrize(("rule", "seed", "message"), SEEDED, ids=[s[2] for s in SEEDED])
def test_a_seeded_violation_is_found(rule: str, seed: Seed, message: str) -> None:
    """G1 to G10 broken on purpose, one at a time."""
    found = _found(seed(_good()))
    assert any(line.startswith(f"[{rule}]") and message in line for line in found), found


def test_every_rule_is_tested() -> None:
    elsewhere = {"happened", "steady"}  # of which the tests beside this one are
    assert {rule for rule, _, _ in SEEDED} == verdict.RULES.keys() - elsewhere


def test_a_leadership_that_changes_without_need_is_found() -> None:
    calm = replace(TERMS, steady=True, takeover_seconds=None)
    assert any("changed without need: b" in line for line in _found(_good(), calm))


def test_a_takeover_that_is_too_late_is_found() -> None:
    """G8: told at 114, 4 s after the fault."""
    assert _found(_good(), replace(TERMS, takeover_seconds=4.1)) == []
    assert "takeover after 4.0 s" in _found(_good(), replace(TERMS, takeover_seconds=3.9))[0]


def test_a_takeover_counts_but_for_the_time_in_which_the_machine_stood_still() -> None:
    stalled = replace(
        _good(), stalls=[(FAULT_AT - 5, FAULT_AT + 1), (FAULT_AT + 20, FAULT_AT + 30)]
    )
    assert check_health.takeovers(stalled, TERMS) == [pytest.approx(3.0)]


def test_a_clean_takeover_counts_from_the_release() -> None:
    """G8: 1 s after OnLoseLeadership ended."""
    good = _good()
    released = replace(good, events=[*good.events, *_call("a", "lose", 113.49, 997, OLD)])
    clean = replace(TERMS, clean=True, takeover_seconds=1.0)
    assert check_health.takeovers(released, clean) == [pytest.approx(0.5)]


def test_a_standby_that_is_hit_needs_no_takeover() -> None:
    good = _nobody_takes_over(_good())
    hit = replace(good, windows=[Window(FAULT_AT, HEALED_AT, "b", led=False)])
    assert check_health.takeovers(hit, TERMS) == []


def test_a_recovery_that_is_too_late_is_found() -> None:
    """Healed at 118, nobody leads; c is told at 150."""
    good = _good()
    gone = [event for event in good.events if event.app == "a"]
    late = replace(good, events=[*gone, *_call("c", "become", 150, 996, NEW)])
    assert check_health.recoveries(late, TERMS) == [32.0]
    assert any("led again 32.0 s after" in line for line in _found(late))


def test_only_what_was_acknowledged_while_a_lossy_fault_lasted_may_be_lost() -> None:
    terms = replace(TERMS, lossy=True)
    lost = _more(ops=[_op("put", "load/a", 3, FAULT_AT + 1)])(_good())
    assert any("lost: load/a" in line for line in _found(lost))
    assert _found(lost, terms) == []
    before = _more(ops=[_op("put", "load/a", 3, FAULT_AT - 1)])(_good())
    assert any("lost: load/a" in line for line in _found(before, terms))
    after = _more(ops=[_op("put", "load/a", 3, HEALED_AT + 1)])(_good())
    assert any("lost: load/a" in line for line in _found(after, terms))


def test_only_the_victim_may_read_from_a_server_that_was_replaced() -> None:
    terms = replace(TERMS, behind=True)
    stale = _more(ops=[_op("strong", "load/a", 1, FAULT_AT + 1)])(_good())
    assert any("strong read" in line for line in _found(stale))
    assert _found(stale, terms) == []
    other = _more(ops=[_op("strong", "load/a", 1, FAULT_AT + 1, app="b")])(_good())
    assert any("strong read" in line for line in _found(other, terms))
    healed = _more(ops=[_op("strong", "load/a", 1, HEALED_AT + 1)])(_good())
    assert any("strong read" in line for line in _found(healed, terms))


def test_who_leads_all_the_time_has_recovered_at_once() -> None:
    assert check_health.recoveries(_good(), TERMS) == [0.0]


def test_a_schedule_that_really_stood_still_is_a_cause() -> None:
    """G10: long after the fault, red with no success for: the apps know of none either."""
    red = Answer(170, "b", 503, "schedule each: no success for 12 s", 0.01)
    green = Answer(171, "b", 200, "ok", 0.01)
    still = _more(answers=[red, green])(_good())
    assert _found(still) == []
    ticking = _more(events=list(_call("b", "execute", 165, 995, NEW, name="each", run_id=1)))
    assert any("without a cause" in line for line in _found(ticking(still)))


def test_red_is_counted_from_the_fault_it_follows() -> None:
    good = _good()
    red = [Answer(at, "b", 503, "app: x", 0.1) for at in (119.0, 131.0)]
    twice = replace(good, answers=red, windows=[*good.windows, Window(130, 132, "a")])
    assert check_health.green_after(twice, TERMS) == 1.0


def test_only_the_victim_of_a_fault_that_mutes_may_be_silent() -> None:
    def silent(who: str) -> Evidence:
        first, back = Answer(111, who, 0, "timed out", 3.0), Answer(120, who, 200, "", 0.1)
        return _more(answers=[first, back])(_good())

    assert _found(silent("a")) == []
    assert any("no answer from a" in x for x in _found(silent("a"), replace(TERMS, mutes=False)))
    assert any("no answer from b" in x for x in _found(silent("b")))


def test_an_exempt_rule_is_not_asked_and_must_exist() -> None:
    bad = _value("load/a", 1)(_good())
    assert _found(bad, replace(TERMS, exempt=frozenset({"kept"}))) == []
    with pytest.raises(AssertionError, match="no such rules"):
        _found(bad, replace(TERMS, exempt=frozenset({"nonsense"})))
