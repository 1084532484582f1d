"""The dead man's switch, as rules: red when it must be, never without cause."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from sidecar.model.definitions import Schedule
from sidecar.model.health import (
    STEP_DOWN_BACK_OFF_SECONDS,
    STEP_DOWN_BACK_OFF_SECONDS_MAX,
    BackOff,
    Judgement,
    Vitals,
    VitalsReading,
    Watch,
    expected_seconds,
    heartbeat_due,
    judged,
    staleness,
)

T0 = datetime(2026, 3, 1, tzinfo=UTC)
BASE = Vitals("schedule", "cleanup", "default", counted_from=T0, heartbeat_at=T0)
seconds = st.integers(0, 10_000)


def at(offset: float) -> datetime:
    return T0 + timedelta(seconds=offset)


def looked(watch: Watch, entities: list[Vitals], now: datetime) -> Judgement:
    """A look right after reading."""
    return judged(watch, VitalsReading(now, tuple(entities)), now, 60)


def test_a_heartbeat_older_than_sixty_seconds_is_stale() -> None:
    """G10"""
    assert staleness(BASE, at(60), 60) is None
    found = staleness(BASE, at(61), 60)
    assert found is not None
    assert found.reason(at(61)) == ("schedule cleanup: no heartbeat for 61 s, 60 s are allowed")


def test_no_success_in_twice_the_interval_is_stale() -> None:
    """G10"""
    vitals = replace(BASE, expected_seconds=10, heartbeat_at=at(200), last_success_at=at(180))
    assert staleness(vitals, at(200), 60) is None
    found = staleness(vitals, at(200.5), 60)
    assert found is not None
    assert found.cause == "success"
    assert found.why(at(201)) == "no success for 21 s, 20 s are allowed"


def test_a_schedule_of_milliseconds_gets_five_seconds() -> None:
    """G10: never red without cause."""
    vitals = replace(BASE, expected_seconds=0.1)
    assert staleness(vitals, at(5), 60) is None
    assert staleness(vitals, at(5.1), 60) is not None


def test_what_never_ran_is_counted_from_creation_resume_or_change() -> None:
    """G10: never red without cause."""
    vitals = replace(BASE, expected_seconds=10, heartbeat_at=at(100))
    assert staleness(vitals, at(100), 60) is not None
    resumed = replace(vitals, counted_from=at(90))
    assert staleness(resumed, at(110), 60) is None
    assert staleness(resumed, at(111), 60) is not None
    # A success before the pause says nothing about the time after it.
    assert staleness(replace(resumed, last_success_at=at(5)), at(110), 60) is None


def test_without_an_expected_interval_only_the_heartbeat_counts() -> None:
    """G10"""
    vitals = replace(BASE, heartbeat_at=at(1_000_000))
    assert staleness(vitals, at(1_000_050), 60) is None


@given(seconds, seconds, seconds)
def test_what_is_paused_is_never_stale(now: float, expected: float, beat: float) -> None:
    """G10: never red without cause."""
    vitals = replace(BASE, watched=False, expected_seconds=expected, heartbeat_at=at(beat))
    assert staleness(vitals, at(now), 60) is None


@given(seconds, seconds, seconds, st.integers(0, 100))
def test_stale_exactly_when_a_limit_has_passed(
    beat: float, success: float, now: float, expected: float
) -> None:
    """G10: red if and only if there is a cause."""
    vitals = replace(
        BASE, heartbeat_at=at(beat), last_success_at=at(success), expected_seconds=expected
    )
    late_beat = at(now) - at(beat) > timedelta(seconds=60)
    limit = timedelta(seconds=max(5, 2 * expected))
    late_success = expected > 0 and at(now) - at(success) > limit
    assert (staleness(vitals, at(now), 60) is not None) == (late_beat or late_success)


def test_inherited_staleness_shows_at_once_but_nobody_steps_down() -> None:
    """G10: no grace after a change of leader."""
    old = replace(BASE, expected_seconds=10, last_success_at=T0)
    watch = Watch(taken_at=at(100))
    for later in (100, 200, 10_000):
        judgement = looked(watch, [replace(old, heartbeat_at=at(later))], at(later))
        assert [each.cause for each in judgement.stale] == ["success"]
        assert judgement.own == ()
        watch = judgement.watch


def test_staleness_that_arose_in_the_own_term_is_a_reason_to_step_down() -> None:
    """G10"""
    fresh = replace(BASE, heartbeat_at=at(100), expected_seconds=10, last_success_at=at(100))
    judgement = looked(Watch(taken_at=at(90)), [fresh], at(110))
    assert judgement.stale == ()
    late = replace(fresh, heartbeat_at=at(121))
    judgement = looked(judgement.watch, [late], at(121))
    assert [each.vitals.name for each in judgement.own] == ["cleanup"]


def test_a_leader_that_just_came_does_not_pay_for_the_last_one() -> None:
    """G10: fresh when it came, stale a moment later: it had no chance yet."""
    nearly = replace(BASE, expected_seconds=10, last_success_at=T0, heartbeat_at=at(20))
    judgement = looked(Watch(taken_at=at(19)), [nearly], at(20))
    judgement = looked(judgement.watch, [nearly], at(21))
    assert len(judgement.stale) == 1
    assert judgement.own == ()
    judgement = looked(judgement.watch, [replace(nearly, heartbeat_at=at(40))], at(40))
    assert len(judgement.own) == 1


def test_while_postgres_does_not_answer_nobody_can_do_better() -> None:
    """G10: red for a missing success, but a pooler's absence moves no leadership. Its return gives
    the leader the whole limit again; an outage that does not end excuses it for 60 s at most."""
    vitals = replace(BASE, expected_seconds=1, heartbeat_at=at(100), last_success_at=at(100))
    watch = looked(Watch(taken_at=T0), [vitals], at(101)).watch
    back = replace(watch, answering_since=at(106))

    def own(offset: float, watch: Watch) -> bool:
        judgement = looked(watch, [replace(vitals, heartbeat_at=at(offset))], at(offset))
        assert [each.cause for each in judgement.stale] == ["success"]
        return bool(judgement.own)

    assert own(106, watch)
    assert not own(106, back)
    assert not own(111, back)
    assert own(111.5, back)
    assert looked(back, [vitals], at(106)).holds_until == at(111)
    assert not own(165, replace(watch, answering_since=at(165)))
    assert own(165.5, replace(watch, answering_since=at(165.5)))


def test_recovered_inherited_staleness_that_returns_is_the_own_fault() -> None:
    """G10"""
    old = replace(BASE, expected_seconds=10, last_success_at=T0, heartbeat_at=at(100))
    judgement = looked(Watch(taken_at=at(90)), [old], at(100))
    cured = replace(old, last_success_at=at(105), heartbeat_at=at(105))
    judgement = looked(judgement.watch, [cured], at(106))
    assert judgement.stale == ()
    judgement = looked(judgement.watch, [replace(cured, heartbeat_at=at(130))], at(130))
    assert len(judgement.own) == 1


def test_a_success_not_read_yet_is_no_cause_for_alarm() -> None:
    """G10: never red without cause, however short the interval and however seldom we read."""
    vitals = replace(BASE, expected_seconds=3, last_success_at=T0)
    reading = VitalsReading(at(3), (vitals,))
    judgement = judged(Watch(taken_at=T0), reading, at(50), 60)
    assert judgement.stale == ()
    assert judgement.holds_until == at(6)
    # Heartbeats are our own: time alone makes them stale.
    assert [each.cause for each in judged(Watch(T0), reading, at(61), 60).stale] == ["heartbeat"]
    reading = VitalsReading(at(7), (vitals,))
    assert [each.cause for each in judged(Watch(T0), reading, at(7), 60).stale] == ["success"]


def test_an_entity_that_is_gone_is_forgotten() -> None:
    judgement = looked(Watch(taken_at=T0), [BASE], at(1))
    assert looked(judgement.watch, [], at(2)).watch.fresh_once == frozenset()


def test_step_downs_are_spaced_ever_wider_and_calm_down() -> None:
    back_off, now, gaps = BackOff(), 0.0, []
    for _ in range(8):
        back_off = back_off.stepped_down(now)
        gaps.append(back_off.not_before - now)
        assert not back_off.allows(back_off.not_before - 1)
        now = back_off.not_before
        assert back_off.allows(now)
    assert gaps == sorted(gaps)
    assert gaps[0] == STEP_DOWN_BACK_OFF_SECONDS
    assert gaps[-1] == STEP_DOWN_BACK_OFF_SECONDS_MAX
    assert back_off.calmed(now + 1) == back_off
    assert back_off.calmed(now + STEP_DOWN_BACK_OFF_SECONDS_MAX) == BackOff()


def test_a_heartbeat_is_due_by_its_age_and_after_a_step_of_the_clock() -> None:
    assert heartbeat_due(None, T0, 30)
    assert not heartbeat_due(T0, at(29), 30)
    assert heartbeat_due(T0, at(30), 30)
    assert heartbeat_due(at(100), T0, 30)


def test_what_a_schedule_promises() -> None:
    """G10: irregular crons cause no alarm on days off."""
    sunday = datetime(2026, 3, 1, tzinfo=UTC)
    weekdays = Schedule(name="report", cron="0 9 * * 1-5", timezone="Europe/Berlin")
    for day in range(7):
        now = sunday + timedelta(days=day, hours=12)
        assert expected_seconds(weekdays, "orders", now) == 3 * 86_400
    assert expected_seconds(Schedule(name="x", every_seconds=30), "orders", sunday) == 30
    given_one = Schedule(name="x", cron="* * * * *", expected_interval_seconds=600)
    assert expected_seconds(given_one, "orders", sunday) == 600
    once = Schedule(name="x", at=sunday + timedelta(days=1))
    assert expected_seconds(once, "orders", sunday) == 0


@given(
    st.lists(st.tuples(seconds, seconds, st.integers(0, 100)), max_size=5),
    st.integers(0, 2000),
    st.integers(0, 2000),
)
def test_a_judgement_holds_until_it_says(
    signs: list[tuple[int, int, int]], now: int, later: int
) -> None:
    """Looking again earlier would find the same."""
    entities = [
        replace(BASE, name=str(n), heartbeat_at=at(b), last_success_at=at(s), expected_seconds=e)
        for n, (b, s, e) in enumerate(signs)
    ]
    first = looked(Watch(taken_at=T0), entities, at(now))
    again_at = at(now + later)
    if first.holds_until is not None:
        assert first.holds_until >= at(now)
        again_at = min(again_at, first.holds_until)
    again = looked(first.watch, entities, again_at)
    assert [each.vitals.key for each in again.stale] == [each.vitals.key for each in first.stale]
    assert again.own == first.own


@given(
    heartbeat=st.none() | seconds,
    success=st.none() | seconds,
    counted=seconds,
    expected=st.sampled_from([0.0, 1.0, 100.0]),
    watched=st.booleans(),
    beaten=st.none() | seconds,
    seen=st.none() | seconds,
    now=seconds,
)
def test_looking_at_thousands_says_the_same_as_looking_at_one(
    heartbeat: int | None,
    success: int | None,
    counted: int,
    expected: float,
    watched: bool,
    beaten: int | None,
    seen: int | None,
    now: int,
) -> None:
    """The quick rule for what is fresh, against the limits one by one."""
    vitals = replace(
        BASE,
        counted_from=at(counted),
        heartbeat_at=None if heartbeat is None else at(heartbeat),
        last_success_at=None if success is None else at(success),
        expected_seconds=expected,
        watched=watched,
    )
    written = vitals
    if beaten is not None:
        written = replace(vitals, heartbeat_at=at(max(beaten, heartbeat or 0)))
    if seen is not None:
        written = replace(written, last_success_at=at(max(seen, success or 0)))
    all_heartbeats_at = None if beaten is None else at(beaten)
    successes = {} if seen is None else {vitals.key: at(seen)}
    reading = VitalsReading(at(now), (vitals,), all_heartbeats_at, successes)
    judgement = judged(Watch(T0), reading, at(now), 60)
    alone = staleness(written, at(now), 60)
    assert [each.cause for each in judgement.stale] == ([alone.cause] if alone else [])
    if judgement.holds_until is not None and alone is None:
        assert staleness(written, judgement.holds_until, 60) is None
        assert staleness(written, judgement.holds_until + timedelta(seconds=1), 60)
