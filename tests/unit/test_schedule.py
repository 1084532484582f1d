"""Ticks, jitter, and one decision for every tick that was due."""

from __future__ import annotations

import random
import time
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.model import cron
from sidecar.model.definitions import Schedule
from sidecar.model.errors import InvalidArgument
from sidecar.model.schedule import (
    TICKS_MAX,
    CatchUp,
    CatchUpPolicy,
    Plan,
    SkipReason,
    TickPlan,
    Timing,
    expected_interval,
    plan,
    timing_of,
)

S, M, H, D = (timedelta(**{unit: 1}) for unit in ("seconds", "minutes", "hours", "days"))
US = timedelta(microseconds=1)
T0 = datetime(2026, 6, 1, tzinfo=UTC)


def by_cron(expression: str, zone: str = "UTC", **window) -> Timing:
    return Timing(cron=cron.parse(expression, timezone=zone), **window)


def told(decided: Plan) -> list[tuple[str, datetime, datetime, int]]:
    return [(str(s.reason or "run"), s.first, s.last, s.count) for s in decided.steps]


class TestTicks:
    def test_an_interval_counts_from_the_epoch(self):
        timing = Timing(every=7 * M)
        tick = timing.next_tick(T0)
        assert tick is not None
        assert (tick.timestamp() % 420, tick > T0, tick - T0 <= 7 * M) == (0, True, True)

    def test_an_interval_counts_from_its_start_and_the_start_is_a_tick(self):
        timing = Timing(every=H, start_at=T0 + 17 * M)
        assert timing.next_tick(T0 - 5 * D) == T0 + 17 * M
        assert timing.next_tick(T0 + 17 * M) == T0 + 77 * M

    def test_an_interval_is_exact_for_ever(self):
        timing = Timing(every=timedelta(microseconds=333_333), start_at=T0)
        n = 10**9
        late = T0 + n * timing.every if timing.every else T0
        assert timing.next_tick(late - US) == late
        assert timing.count(T0 - US, late) == n + 1

    def test_one_point_in_time(self):
        timing = Timing(at=T0)
        assert timing.next_tick(T0 - US) == T0
        assert timing.next_tick(T0) is None
        assert timing.count(T0 - D, T0) == 1
        assert timing.count(T0, T0 + D) == 0
        assert timing.count(T0 - D, T0 - US) == 0

    @pytest.mark.parametrize("timing", [{"every": H}, {"cron": cron.parse("0 * * * *")}])
    def test_the_start_is_included_and_the_end_is_not(self, timing):
        bounded = Timing(**timing, start_at=T0, end_at=T0 + 3 * H)
        assert list(bounded.ticks(T0 - D, T0 + D)) == [T0, T0 + H, T0 + 2 * H]
        assert bounded.count(T0 - D, T0 + D) == 3

    @pytest.mark.parametrize(
        ("timing", "never"),
        [
            (by_cron("0 0 1 6 *", start_at=T0 + D, end_at=T0 + 2 * D), True),
            (by_cron("0 0 29 2 *", start_at=T0, end_at=T0.replace(year=T0.year + 9)), False),
            (by_cron("0 0 1 6 *", end_at=T0 - 3000 * D), False),
            (Timing(every=H, start_at=T0, end_at=T0 + US), False),
            (Timing(at=T0, end_at=T0 + US), False),
        ],
    )
    def test_whether_a_window_holds_a_tick_is_no_question_of_the_time(self, timing, never):
        assert timing.never_ticks is never

    def test_the_end_of_all_time_is_no_error(self):
        assert Timing(every=D).next_tick(datetime.max.replace(tzinfo=UTC)) is None

    @pytest.mark.parametrize("timing", [{"every": D}, {"cron": cron.parse("@daily")}])
    def test_the_beginning_of_all_time_is_no_error(self, timing):
        """G11: some programs write year 1 where a time was left out."""
        always = Timing(**timing, start_at=datetime.min.replace(tzinfo=UTC), end_at=T0 + 9 * D)
        assert not always.never_ticks
        assert always.next_tick(T0) == T0 + D
        assert always.count(T0, T0 + 3 * D) == 3
        over = Timing(**timing, end_at=datetime.min.replace(tzinfo=UTC))
        assert over.count(T0, T0 + D) == 0

    @given(st.integers(0, 10**9), st.integers(1, 10**8), st.integers(0, 10**9))
    def test_ticks_rise_and_are_counted(self, after, every, start):
        timing = Timing(every=every * US, start_at=T0 + start * US, end_at=T0 + 10**9 * US + D)
        begin = T0 + after * US
        ticks = list(islice(timing.ticks(begin, T0 + 2 * D), 20))
        assert all(a < b for a, b in pairwise([begin, *ticks]))
        assert not ticks or timing.count(begin, ticks[-1]) == len(ticks)

    @pytest.mark.parametrize(
        "timing",
        [
            Timing(every=90 * S),
            by_cron("* 3 * * *", "Europe/Berlin"),
            by_cron("*/7 * * * * *", end_at=T0 + 5 * H),
        ],
    )
    @pytest.mark.parametrize("count", [1, 2, 7, 100])
    def test_the_newest_are_the_end_of_all(self, timing, count):
        every_tick = list(timing.ticks(T0, T0 + D))
        assert timing.newest(count, T0, T0 + D) == every_tick[-count:]


class TestJitter:
    timing = Timing(every=M, jitter_seconds=30, jitter_key="orders/mail")

    def test_it_is_bounded_and_stable(self):
        delays = [self.timing.dispatch_at(t) - t for t in self.timing.ticks(T0, T0 + D)]
        assert timedelta(0) <= min(delays) < 2 * S
        assert 28 * S < max(delays) < 30 * S
        assert delays == [self.timing.dispatch_at(t) - t for t in self.timing.ticks(T0, T0 + D)]

    def test_schedules_are_spread_differently(self):
        other = Timing(every=M, jitter_seconds=30, jitter_key="orders/bill")
        assert self.timing.dispatch_at(T0) != other.dispatch_at(T0)

    def test_it_never_reaches_the_next_tick(self):
        timing = by_cron("*/5 * * * * *", jitter_seconds=3600, jitter_key="a/b")
        for tick in timing.ticks(T0, T0 + H):
            assert tick <= timing.dispatch_at(tick) < tick + 5 * S

    def test_none_by_default(self):
        assert Timing(every=M).dispatch_at(T0) == T0


class TestRefused:
    @pytest.mark.parametrize(
        ("timing", "named"),
        [
            ({}, "schedule"),
            ({"every": M, "at": T0}, "schedule"),
            ({"every": timedelta(0)}, "every"),
            ({"every": -M}, "every"),
            ({"every": M, "jitter_seconds": -1.0}, "jitter"),
            ({"every": M, "jitter_seconds": float("nan")}, "jitter"),
            ({"every": M, "start_at": T0, "end_at": T0}, "end_at"),
            ({"every": M, "start_at": T0.replace(tzinfo=None)}, "start_at"),
            ({"at": T0, "end_at": T0}, "at"),
            ({"at": T0, "start_at": T0 + US}, "at"),
        ],
    )
    def test_the_field_is_named(self, timing, named):
        """G11."""
        with pytest.raises(InvalidArgument) as refused:
            Timing(**timing)
        assert refused.value.field == named

    @pytest.mark.parametrize("policy", [{"skip_if_older_than": timedelta(0)}, {"catch_up_max": 0}])
    def test_a_policy_names_its_field_too(self, policy):
        """G11."""
        with pytest.raises(InvalidArgument) as refused:
            CatchUpPolicy(**policy)
        assert refused.value.field == next(iter(policy))


class TestDeclared:
    def test_a_schedule_becomes_a_timing(self):
        assert timing_of(Schedule("mail", every_seconds=0.1), "orders").every == timedelta(
            milliseconds=100
        )
        hashed = timing_of(Schedule("mail", cron="H * * * *"), "orders").cron
        assert hashed == cron.parse("H * * * *", hash_key="orders/mail")

    def test_cluster_and_name_spread_the_jitter(self):
        declared = Schedule("mail", every_seconds=60, jitter_seconds=60)
        one, other = (timing_of(declared, cluster).dispatch_at(T0) for cluster in ("a", "b"))
        assert one != other

    @pytest.mark.parametrize(
        ("declared", "named"),
        [
            (Schedule("mail", cron="61 * * * *"), "cron"),
            (Schedule("mail", cron="* * * * *", timezone="Mars/Base"), "timezone"),
            (Schedule("mail", every_seconds=1, timezone="Mars/Base"), "timezone"),
        ],
    )
    def test_the_field_is_named(self, declared, named):
        """G11."""
        with pytest.raises(InvalidArgument) as refused:
            timing_of(declared, "orders")
        assert refused.value.field == named


class TestPlan:
    timing = Timing(every=H)

    def decide(self, *, since, paused=False, **policy) -> Plan:
        return plan(
            self.timing, CatchUpPolicy(**policy), watermark=T0 - since, now=T0, paused=paused
        )

    def test_nothing_is_due(self):
        assert self.decide(since=timedelta(0)) == Plan((), T0, False)
        ahead = plan(self.timing, CatchUpPolicy(), watermark=T0 + D, now=T0)
        assert ahead == Plan((), T0 + D, False)

    def test_the_tick_of_this_instant_is_due_and_that_of_the_watermark_is_not(self):
        assert told(self.decide(since=H)) == [("run", T0, T0, 1)]

    def test_latest_runs_one_and_coalesces_the_others(self):
        assert told(self.decide(since=5 * H)) == [
            ("coalesced", T0 - 4 * H, T0 - H, 4),
            ("run", T0, T0, 1),
        ]

    def test_all_runs_the_newest_oldest_first(self):
        decided = self.decide(since=6 * H, catch_up=CatchUp.ALL, catch_up_max=3)
        assert told(decided) == [
            ("coalesced", T0 - 5 * H, T0 - 3 * H, 3),
            ("run", T0 - 2 * H, T0 - 2 * H, 1),
            ("run", T0 - H, T0 - H, 1),
            ("run", T0, T0, 1),
        ]

    def test_none_runs_only_what_is_ten_seconds_old_at_most(self):
        def at(late: timedelta) -> list[tuple[str, datetime, datetime, int]]:
            policy = CatchUpPolicy(catch_up=CatchUp.NONE)
            return told(plan(self.timing, policy, watermark=T0 - 3 * H, now=T0 + late))

        assert at(10 * S) == [("misfire", T0 - 2 * H, T0 - H, 2), ("run", T0, T0, 1)]
        assert at(10 * S + US) == [("misfire", T0 - 2 * H, T0, 3)]

    def test_older_than_allowed_is_a_misfire(self):
        decided = self.decide(since=6 * H, skip_if_older_than=2 * H)
        assert told(decided) == [
            ("misfire", T0 - 5 * H, T0 - 3 * H, 3),
            ("coalesced", T0 - 2 * H, T0 - H, 2),
            ("run", T0, T0, 1),
        ]

    def test_everything_may_be_a_misfire(self):
        late = plan(
            self.timing,
            CatchUpPolicy(skip_if_older_than=S),
            watermark=T0 - 2 * H,
            now=T0 + 2 * S,
        )
        assert told(late) == [("misfire", T0 - H, T0, 2)]
        assert late.watermark == T0

    def test_paused_ticks_are_recorded_as_such_whatever_their_age(self):
        decided = self.decide(since=3 * D, paused=True, catch_up=CatchUp.ALL)
        assert told(decided) == [("paused", T0 - 3 * D + H, T0, 72)]

    def test_a_thousand_runs_at_once_and_then_more(self):
        pause = timedelta(milliseconds=5)
        fast = Timing(every=pause)
        policy = CatchUpPolicy(catch_up=CatchUp.NONE)
        first = plan(fast, policy, watermark=T0 - 9 * S, now=T0)
        assert (len(first.steps), first.more) == (TICKS_MAX, True)
        second = plan(fast, policy, watermark=first.watermark, now=T0)
        assert (len(second.steps), second.more) == (800, False)
        assert second.steps[0].first == first.watermark + pause

    @pytest.mark.parametrize(
        "timing",
        [Timing(every=S), by_cron("* * * * * *", "Europe/Berlin"), by_cron("*/2 * 0-23 * * *")],
    )
    @pytest.mark.parametrize("catch_up", CatchUp)
    def test_a_year_of_downtime_is_planned_at_once(self, timing, catch_up):
        """G4: every tick of the year is accounted for, in a few rows."""
        watermark, now = T0, T0 + 365 * D
        started = time.process_time()
        decided = plan(timing, CatchUpPolicy(catch_up=catch_up), watermark=watermark, now=now)
        assert time.process_time() - started < 0.25
        assert sum(step.count for step in decided.steps) == timing.count(watermark, now)
        assert len(decided.steps) <= 102
        assert decided.watermark == now

    def test_each_tick_gets_exactly_one_decision(self):
        """G4, for random timings, policies and pauses, planned again and again."""
        rng = random.Random(4)
        for _ in range(150):
            timing = rng.choice(TIMINGS)
            policy = CatchUpPolicy(
                skip_if_older_than=rng.choice([S, 5 * M, H, D]),
                catch_up=rng.choice(list(CatchUp)),
                catch_up_max=rng.choice([1, 2, 10, 100]),
            )
            self.walk(timing, policy, rng)

    def walk(self, timing: Timing, policy: CatchUpPolicy, rng: random.Random) -> None:
        watermark = now = T0 + rng.random() * D
        begin = watermark
        steps: list[TickPlan] = []
        for _ in range(6):
            now += rng.choice([S, M, H, 5 * H]) * rng.random()
            paused = rng.random() < 0.2
            decided = plan(timing, policy, watermark=watermark, now=now, paused=paused)
            assert_right(decided, timing, policy, watermark, now, paused)
            steps += decided.steps
            watermark = decided.watermark
        assert_each_once(steps, list(timing.ticks(begin, now)))


TIMINGS = [
    Timing(every=17 * S),
    Timing(every=13 * M, start_at=T0 + 3 * H, end_at=T0 + 15 * H),
    Timing(at=T0 + 12 * H),
    by_cron("*/3 * * * *", "Asia/Kathmandu"),
    by_cron("0,10,20 1-23/2 * * *", "America/New_York"),
    by_cron("*/20 * * * * *", start_at=T0 + 6 * H),
]


def assert_each_once(steps, ticks: list[datetime]) -> None:
    """The steps, one after the other, cover the ticks: none twice, none left out."""
    for step in steps:
        covered, ticks = ticks[: step.count], ticks[step.count :]
        assert (covered[0], covered[-1], len(covered)) == (step.first, step.last, step.count)
        assert step.count == 1 or not step.runs
    assert ticks == []


def assert_right(decided, timing, policy, watermark, now, paused) -> None:
    """The decision of each tick, by the words of the design."""
    ticks = list(timing.ticks(watermark, now))
    fresh = [t for t in ticks if now - t <= policy.skip_if_older_than]
    if policy.catch_up is CatchUp.NONE:
        fresh = [t for t in fresh if now - t <= 10 * S]
    runs = {
        CatchUp.NONE: fresh,
        CatchUp.LATEST: fresh[-1:],
        CatchUp.ALL: fresh[-policy.catch_up_max :],
    }
    wanted = [] if paused else runs[policy.catch_up]
    assert [step.first for step in decided.steps if step.runs] == wanted
    for step in decided.steps:
        if not step.runs:
            age = SkipReason.COALESCED if step.last in fresh else SkipReason.MISFIRE
            assert step.reason is (SkipReason.PAUSED if paused else age)


class TestExpectedInterval:
    @pytest.mark.parametrize(
        ("timing", "expected"),
        [
            (Timing(every=90 * S), 90 * S),
            (by_cron("*/10 * * * *"), 10 * M),
            (by_cron("0 9 * * MON-FRI"), 3 * D),
            (by_cron("0 0 1 * *"), 31 * D),
            (by_cron("0,1 0 * * *"), D - M),
            (by_cron("0 0 1 1 *"), 366 * D),
            (by_cron("0 0 29 2 *"), 1461 * D),
            (Timing(at=T0 + D), None),
            (Timing(at=T0 - D), None),
            (Timing(every=H, end_at=T0 - D), None),
            (by_cron("0 * * * *", end_at=T0 - D), None),
        ],
    )
    def test_the_longest_pause_around(self, timing, expected):
        assert expected_interval(timing, T0) == expected

    def test_a_clock_set_back_is_no_alarm(self):
        """G10: a fixed hourly job pauses for two hours when the clock is set back."""
        timing = by_cron("0 0-23 * * *", "America/New_York")
        set_back = datetime(2026, 11, 1, 6, tzinfo=UTC)
        assert expected_interval(timing, set_back) == 2 * H
        assert expected_interval(timing, set_back - 2 * D) == H

    @pytest.mark.parametrize(
        "timing", [*TIMINGS[3:5], by_cron("*/5 9-17 * * 1-5"), by_cron("* 3 * * *")]
    )
    def test_a_healthy_schedule_never_looks_stale(self, timing):
        """G10: never red without cause, at any time of two weeks."""
        rng = random.Random(7)
        for _ in range(150):
            now = T0 + rng.random() * 14 * D
            *_, before, last = timing.newest(2, now - 7 * D, now)
            interval = expected_interval(timing, now)
            assert interval is not None
            assert now - before <= 2 * interval  # the run of `last` may still be under way
            assert last > before
