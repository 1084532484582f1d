"""Thousands of random expressions against an oracle that walks, where the clocks do odd things."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

import pytest

from sidecar.model.cron import CronError, parse
from tests.unit.cron_oracle import Job, fire_times

MINUTE, SECOND = timedelta(minutes=1), timedelta(seconds=1)

# Zone, and a day near which its clock changes (or, at the end, a leap day).
CHANGES = [
    ("America/New_York", "2026-03-08"),
    ("America/New_York", "2026-11-01"),
    ("Australia/Lord_Howe", "2026-04-05"),  # half an hour
    ("Australia/Lord_Howe", "2026-10-04"),
    ("Pacific/Chatham", "2026-04-05"),
    ("Pacific/Chatham", "2026-09-27"),
    ("Africa/Casablanca", "2026-02-15"),  # Ramadan
    ("Africa/Casablanca", "2026-03-22"),
    ("America/Sao_Paulo", "2018-11-04"),  # no midnight
    ("America/Sao_Paulo", "2018-02-18"),  # two of them
    ("Asia/Tehran", "2022-03-22"),
    ("Asia/Tehran", "2022-09-22"),
    ("Africa/Cairo", "2026-04-24"),
    ("Africa/Cairo", "2026-10-30"),
    ("America/Havana", "2026-03-08"),
    ("America/Havana", "2026-11-01"),
    ("Asia/Beirut", "2026-03-29"),
    ("Asia/Beirut", "2026-10-25"),
    ("Europe/London", "2026-03-29"),
    ("Europe/London", "2026-10-25"),
    ("Asia/Kathmandu", "1986-01-01"),  # a quarter of an hour
    ("Pacific/Apia", "2011-12-30"),  # a day that never was
    ("Pacific/Kwajalein", "1993-08-21"),
    ("Pacific/Kwajalein", "1969-09-30"),  # nearly a day twice
    ("America/Caracas", "2007-12-09"),
    ("America/Caracas", "2016-05-01"),
    ("Antarctica/Troll", "2026-03-29"),  # two hours
    ("Antarctica/Troll", "2026-10-25"),
    ("America/St_Johns", "2010-11-07"),  # back over midnight
    ("America/St_Johns", "2010-03-14"),
    ("Asia/Pyongyang", "2015-08-15"),
    ("Asia/Pyongyang", "2018-05-05"),
    ("Asia/Gaza", "2026-03-28"),
]
CALM = [("UTC", "2028-02-29"), ("Europe/Berlin", "2100-02-28"), ("Asia/Kathmandu", "2028-02-29")]


def window(day: str) -> tuple[datetime, datetime]:
    middle = datetime.fromisoformat(day).replace(hour=12, tzinfo=UTC)
    return middle - timedelta(days=2), middle + timedelta(days=2)


def random_field(rng: random.Random, low: int, high: int, around: list[int]) -> str:
    def value() -> int:
        return rng.choice(around) if rng.random() < 0.5 else rng.randint(low, high)

    def element() -> str:
        first, last = value(), value()
        if rng.random() < 0.7 and first > last:
            first, last = last, first
        step = rng.randint(1, (high - low) // 2 + 1)
        forms = [f"{first}", f"{first}-{last}", f"{first}-{last}/{step}", f"{first}/{step}"]
        return rng.choice(forms)

    kind = rng.random()
    if kind < 0.25:
        return "*"
    if kind < 0.4:
        return f"*/{rng.randint(1, (high - low) // 2 + 1)}"
    return ",".join(element() for _ in range(rng.choice([1, 1, 1, 2, 3])))


def random_days(rng: random.Random, around: date) -> tuple[str, str]:
    near = [(around + timedelta(days=n)) for n in (-1, 0, 1)]
    days = ["?", "L", "LW", "15,L", random_field(rng, 1, 31, [d.day for d in near])]
    weekdays = [f"{rng.randint(0, 7)}#{rng.randint(1, 5)}", f"{rng.randint(0, 7)}L", "friL,MON#1"]
    weekdays += ["?", "sat-mon", random_field(rng, 0, 7, [d.isoweekday() for d in near])]
    day = "*" if rng.random() < 0.5 else rng.choice(days)
    weekday = "*" if rng.random() < 0.5 else rng.choice(weekdays)
    return day, weekday


def random_expression(rng: random.Random, around: date, *, seconds: bool = False) -> str:
    day, weekday = random_days(rng, around)
    month = rng.choice(
        ["*", "*", f"*/{rng.randint(1, 3)}", str(around.month), "nov-apr", "MAR-oct"]
    )
    minute = random_field(rng, 0, 59, [0, 1, 15, 29, 30, 31, 45, 59])
    hour = random_field(rng, 0, 23, [0, 1, 2, 3, 22, 23])
    fields = [minute, hour, day, month, weekday]
    return " ".join([random_field(rng, 0, 59, [0, 1, 30, 59]), *fields] if seconds else fields)


def assert_agrees(
    expression: str, zone: str, expected: list[datetime], end: datetime, after: datetime
) -> None:
    """From `after`, the next few fire times are the expected ones, and then none before `end`."""
    cron = parse(expression, timezone=zone)
    wanted = [tick for tick in expected if tick > after][:40]
    got = list(islice(cron.between(after, end), 40))
    assert got == wanted, f"{expression!r} in {zone} after {after}"
    assert cron.count(after, end) == sum(tick > after for tick in expected), expression
    following = cron.next(after)
    assert following is None or following > after
    assert wanted or following is None or following > end


def check(
    expression: str, zone: str, start: datetime, end: datetime, step: timedelta, rng: random.Random
) -> bool:
    """True if the expression fired in the window; expressions that never fire do not count."""
    expected = fire_times(expression, zone, start, end, step=step)
    try:
        parse(expression, timezone=zone)
    except CronError:
        assert not expected, f"{expression!r} was refused and fires"
        return False
    middle = start + (end - start) / 2
    near = middle + rng.uniform(-1, 1) * (end - start) / 4
    for after in (
        start,
        near,
        near.replace(microsecond=0, second=0),
        rng.choice(expected or [middle]),
    ):
        assert_agrees(expression, zone, expected, end, after)
    return bool(expected)


@pytest.mark.parametrize(("zone", "day"), CHANGES + CALM)
def test_random_expressions_by_the_minute(zone, day):
    rng = random.Random(f"{zone} {day}")
    start, end = window(day)
    fired = sum(
        check(random_expression(rng, date.fromisoformat(day)), zone, start, end, MINUTE, rng)
        for _ in range(70)
    )
    assert fired > 20, "the generator lost its aim"


@pytest.mark.parametrize(("zone", "day"), CHANGES)
def test_the_windows_contain_a_change(zone, day):
    start, end = window(day)
    info = ZoneInfo(zone)
    assert start.astimezone(info).utcoffset() != end.astimezone(info).utcoffset()


@pytest.mark.parametrize(
    ("zone", "change"),
    [
        ("America/New_York", "2026-03-08T07:00"),
        ("America/New_York", "2026-11-01T06:00"),
        ("Australia/Lord_Howe", "2026-04-04T15:00"),
        ("America/Sao_Paulo", "2018-11-04T03:00"),
        ("America/Sao_Paulo", "2018-02-18T02:00"),
        ("America/St_Johns", "2010-11-07T02:31"),
    ],
)
def test_random_expressions_by_the_second(zone, change):
    rng = random.Random(f"{zone} {change}")
    middle = datetime.fromisoformat(change).replace(tzinfo=UTC)
    start, end = middle - timedelta(hours=2), middle + timedelta(hours=2)
    day = middle.astimezone(ZoneInfo(zone)).date()
    for _ in range(40):
        check(random_expression(rng, day, seconds=True), zone, start, end, SECOND, rng)


def test_rare_days_over_decades():
    rng = random.Random(1)
    for _ in range(60):
        day, weekday = rng.choice(["29", "*/28", "31", "L", "LW", "?"]), f"{rng.randint(0, 7)}#5"
        expression = (
            f"0 0 {day} {rng.choice(['2', '2', '4', '*'])} {rng.choice([weekday, '*', '1-5'])}"
        )
        after = date(rng.randint(1990, 2100), rng.randint(1, 12), rng.randint(1, 28))
        assert_next_day(expression, after)


def assert_next_day(expression: str, after: date) -> None:
    job = Job(expression)
    days = (after + timedelta(days=n) for n in range(1, 366 * 45))
    expected = next((day for day in days if job.matches_date(day)), None)
    midnight = datetime(after.year, after.month, after.day, tzinfo=UTC)
    try:
        got = parse(expression).next(midnight)
    except CronError:
        assert expected is None, expression
        return
    assert got is not None
    assert got.date() == expected, f"{expression!r} after {after}"
