"""Cron expressions: what is accepted, what is refused, and the cases people get wrong."""

from __future__ import annotations

import contextlib
import importlib.resources
import struct
import sys
import time
from datetime import UTC, datetime, timedelta, timezone
from itertools import islice, pairwise
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sidecar.model import zones
from sidecar.model.cron import CronError, parse

ZONES = sorted(n for n in available_timezones() if n.lower() not in {"localtime", "factory"})


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def local(expression: str, zone: str, after: str, count: int) -> list[str]:
    """The next fire times as the wall clock shows them, with the offset."""
    ticks = islice(parse(expression, timezone=zone).between(utc(after), utc("2199-01-01")), count)
    return [tick.astimezone(ZoneInfo(zone)).strftime("%m-%d %H:%M:%S %z") for tick in ticks]


def days(expression: str, after: str, count: int) -> list[str]:
    ticks = islice(parse(expression).between(utc(after), utc("2199-01-01")), count)
    return [tick.date().isoformat() for tick in ticks]


def offset_changes(name: str) -> list[int]:
    """The instants at which the offset changes, from the compiled file (RFC 8536, second block)."""
    file = importlib.resources.files("tzdata.zoneinfo").joinpath(*name.split("/"))
    if not file.is_file():  # known to this machine's own copy only
        return []
    data = file.read_bytes()
    isut, isstd, leap, times, types, chars = struct.unpack(">6l", data[20:44])
    at = 44 + times * 5 + types * 6 + chars + leap * 8 + isstd + isut
    _, _, _, times, types, _ = struct.unpack(">6l", data[at + 20 : at + 44])
    instants = struct.unpack(f">{times}q", data[at + 44 : at + 44 + 8 * times])
    kinds = data[at + 44 + 8 * times :][:times]
    table = data[at + 44 + 9 * times :]
    offsets = [struct.unpack(">l", table[6 * kind : 6 * kind + 4])[0] for kind in kinds]
    return [b for b, (old, new) in zip(instants[1:], pairwise(offsets), strict=True) if old != new]


class TestClockChanges:
    def test_a_skipped_time_runs_once_right_after_the_gap(self):
        assert local("30 2 * * *", "America/New_York", "2026-03-08T00:00", 2) == [
            "03-08 03:00:00 -0400",
            "03-09 02:30:00 -0400",
        ]

    def test_several_skipped_times_share_one_instant(self):
        assert local("0,20,40 2,3 * * *", "America/New_York", "2026-03-08T06:00", 3) == [
            "03-08 03:00:00 -0400",
            "03-08 03:20:00 -0400",
            "03-08 03:40:00 -0400",
        ]

    def test_a_repeated_time_runs_once_the_first_time(self):
        assert local("30 1 * * *", "America/New_York", "2026-11-01T00:00", 2) == [
            "11-01 01:30:00 -0400",
            "11-02 01:30:00 -0500",
        ]

    def test_asked_within_the_repeated_hour_it_does_not_run_again(self):
        second_pass = "2026-11-01T06:10"
        assert local("* 30 1 * * *", "America/New_York", second_pass, 1) == ["11-02 01:30:00 -0500"]

    @pytest.mark.parametrize("expression", ["30 * * * *", "*/30 1-2 * * *"])
    def test_a_star_in_minute_or_hour_follows_the_wall_clock(self, expression):
        ticks = local(expression, "America/New_York", "2026-11-01T05:00", 2)
        assert ticks[0] == "11-01 01:30:00 -0400"
        assert [
            t for t in local(expression, "America/New_York", "2026-11-01T05:00", 4) if "01:30" in t
        ] == [
            "11-01 01:30:00 -0400",
            "11-01 01:30:00 -0500",
        ]
        gap = local(expression, "America/New_York", "2026-03-08T06:59", 1)
        assert gap == ["03-09 01:00:00 -0400" if "/" in expression else "03-08 03:30:00 -0400"]

    def test_a_missing_midnight(self):
        assert local("@daily", "America/Sao_Paulo", "2018-11-03T12:00", 2) == [
            "11-04 01:00:00 -0200",
            "11-05 00:00:00 -0200",
        ]

    def test_the_day_that_samoa_skipped(self):
        assert local("0 12 * * *", "Pacific/Apia", "2011-12-29T23:00", 2) == [
            "12-31 00:00:00 +1400",
            "12-31 12:00:00 +1400",
        ]

    def test_half_an_hour_on_lord_howe(self):
        assert local("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00", 1) == [
            "10-04 02:30:00 +1100"
        ]


class TestDays:
    def test_two_restricted_day_fields_are_ored(self):
        assert days("0 0 13 * FRI", "2026-02-01", 5) == [
            "2026-02-06",
            "2026-02-13",
            "2026-02-20",
            "2026-02-27",
            "2026-03-06",
        ]

    def test_a_field_that_starts_with_a_star_is_anded(self):
        assert days("0 0 */2 * MON", "2026-06-01T12:00", 3) == [
            "2026-06-15",
            "2026-06-29",
            "2026-07-13",
        ]
        assert days("0 0 1-7 * */7", "2026-06-01", 1) == ["2026-06-07"]

    def test_last_day_and_last_workday(self):
        assert days("0 0 L * ?", "2026-02-01", 2) == ["2026-02-28", "2026-03-31"]
        assert days("0 0 LW * *", "2026-02-01", 4) == [
            "2026-02-27",
            "2026-03-31",
            "2026-04-30",
            "2026-05-29",
        ]

    @pytest.mark.parametrize("expression", ["0 0 * * 5L", "0 0 ? * friL", "0 0 * * L5"])
    def test_last_friday(self, expression):
        assert days(expression, "2026-01-01", 2) == ["2026-01-30", "2026-02-27"]

    def test_fifth_and_first_weekday(self):
        assert days("0 0 * * SUN#5,0#1", "2026-03-02", 2) == ["2026-03-29", "2026-04-05"]

    @pytest.mark.parametrize("sunday", ["0", "7", "SUN", "7-7", "0-0", "sun"])
    def test_names_and_numbers_of_sunday(self, sunday):
        assert days(f"0 0 * * {sunday}", "2026-06-01", 2) == ["2026-06-07", "2026-06-14"]

    @pytest.mark.parametrize("weekend", ["6-7", "SAT-SUN", "6,0", "sat,7"])
    def test_ranges_into_sunday(self, weekend):
        assert days(f"0 0 * * {weekend}", "2026-06-01", 3) == [
            "2026-06-06",
            "2026-06-07",
            "2026-06-13",
        ]

    def test_leap_days(self):
        assert days("0 0 29 2 *", "2096-01-01", 3) == ["2096-02-29", "2104-02-29", "2108-02-29"]

    def test_the_rarest_day_is_found_across_forty_years(self):
        assert days("0 0 */28 2 5#5", "2037-01-01", 1) == ["2064-02-29"]


class TestFields:
    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("@yearly", "0 0 1 1 *"),
            ("@Annually", "0 0 1 1 *"),
            ("@monthly", "0 0 1 * *"),
            ("@weekly", "0 0 * * 0"),
            ("@daily", "0 0 * * *"),
            ("@midnight", "0 0 * * *"),
            ("@HOURLY", "0 * * * *"),
            ("5-5 * * * *", "5 * * * *"),  # croniter: every minute
            ("0 22-2 * * *", "0 0-2,22,23 * * *"),
            ("0 22-3/3 * * *", "0 1,22 * * *"),  # croniter: 2 and 22
            ("0 0 * 11-2 *", "0 0 * 1,2,11,12 *"),
            ("0 0 * * FRI-MON", "0 0 * * 0,1,5,6"),
            ("0 0 * * 0-7/2", "0 0 * * 0,2,4,6"),
            ("0 0 * * 1-7/3", "0 0 * * 0,1,4"),
            ("10/20 * * * *", "10,30,50 * * * *"),
            ("*/70 * * * *", "0 * * * *"),
            ("  0\t0 * * *  ", "0 0 0 * * *"),
            ("0 0 ? * MON", "0 0 * * 1"),
        ],
    )
    def test_two_ways_to_say_it(self, one, other):
        mine, yours = parse(one).fields, parse(other).fields
        for mask in ("seconds", "minutes", "hours", "days", "months", "weekdays"):
            assert getattr(mine, mask) == getattr(yours, mask), mask

    @pytest.mark.parametrize(
        ("expression", "field"),
        [
            ("60 * * * *", "minute"),
            ("* 24 * * *", "hour"),
            ("* * 0 * *", "day of month"),
            ("* * 32 * *", "day of month"),
            ("* * * 13 *", "month"),
            ("* * * 0 *", "month"),
            ("* * * * 8", "day of week"),
            ("60 * * * * *", "second"),
            ("-1 * * * *", "minute"),
            ("*/0 * * * *", "minute"),
            ("1,,2 * * * *", "minute"),
            ("1- * * * *", "minute"),
            ("*-5 * * * *", "minute"),
            ("1-2-3 * * * *", "minute"),
            ("? * * * *", "minute"),
            ("L * * * *", "minute"),
            ("1.5 * * * *", "minute"),
            ("٣ * * * *", "minute"),
            ("H(5-2) * * * *", "minute"),
            ("H(0-60) * * * *", "minute"),
            ("H/0 * * * *", "minute"),
            ("0 0 15W * *", "day of month"),
            ("0 0 L-3 * *", "day of month"),
            ("0 0 ?,5 * *", "day of month"),
            ("0 0 * MON *", "month"),
            ("0 0 * * JAN", "day of week"),
            ("0 0 * * 5#6", "day of week"),
            ("0 0 * * 5#0", "day of week"),
            ("0 0 * * L", "day of week"),
            ("0 0 * * 9L", "day of week"),
            ("* * * *", "expression"),
            ("* * * * * * *", "expression"),
            ("", "expression"),
            ("@reboot", "expression"),
            ("@every 5m", "expression"),
            ("0," * 300 + "0 * * * *", "expression"),
        ],
    )
    def test_what_is_refused_is_named(self, expression, field):
        """G11."""
        with pytest.raises(CronError, match=f"^{field}: "):
            parse(expression)

    @pytest.mark.parametrize(
        "expression",
        ["0 0 30 2 *", "0 0 31 2,4,6,9,11 *", "0 0 30 2 ?", "* * 31 4 ?", "0 0 */29 2 5#5"],
    )
    def test_what_never_fires_is_refused(self, expression):
        """G11."""
        with pytest.raises(CronError, match="never fires"):
            parse(expression)

    def test_a_weekday_beside_an_impossible_day_still_fires(self):
        assert days("0 0 30 2 MON", "2026-02-01", 1) == ["2026-02-02"]

    @given(st.text(max_size=40) | st.text("0123456789*/,-?LWH#()@ MONJAF\t", max_size=40))
    @settings(max_examples=1000)
    def test_any_text_is_parsed_or_refused(self, text):
        """G11."""
        with contextlib.suppress(CronError):
            assert parse(text).next(utc("2026-01-01")) is not None


class TestHash:
    def test_it_is_stable_and_depends_on_name_and_field(self):
        # Written down: a release that changes these moves everybody's schedules.
        assert parse("H H H H H", hash_key="orders/cleanup").fields == parse("59 3 27 7 6").fields

    def test_it_spreads(self):
        minutes = [parse("H * * * *", hash_key=f"orders/{n}").fields.minutes for n in range(600)]
        assert len(set(minutes)) == 60
        assert max(minutes.count(mask) for mask in set(minutes)) < 30

    def test_every_month_has_the_hashed_day(self):
        for n in range(200):
            assert parse("0 0 H * *", hash_key=f"c/{n}").fields.days.bit_length() - 1 <= 28

    def test_a_range_and_a_step_are_kept(self):
        for n in range(100):
            hashed = parse("H/15 H(9-16)/4 * * *", hash_key=f"c/{n}").fields
            minutes = [m for m in range(60) if hashed.minutes >> m & 1]
            hours = [h for h in range(24) if hashed.hours >> h & 1]
            assert len(minutes) == 4
            assert {b - a for a, b in pairwise(minutes)} == {15}
            assert len(hours) == 2
            assert 9 <= hours[0] < hours[1] == hours[0] + 4 <= 16

    def test_a_step_beyond_the_range_leaves_one_value(self):
        hashed = parse("0 H(1-3)/9 * * *", hash_key="a/b").fields.hours
        assert hashed.bit_count() == 1
        assert hashed in (1 << 1, 1 << 2, 1 << 3)


class TestZones:
    @pytest.mark.parametrize(
        ("name", "hint"),
        [
            ("", "empty"),
            ("Europe/Belin", "Europe/Berlin"),
            ("europe/berlin", "Europe/Berlin"),
            ("Berlin", "Europe/Berlin"),
            ("New York", "America/New_York"),
            ("America", "IANA"),
            ("localtime", "IANA"),
            ("posixrules", "IANA"),
            ("right/UTC", "IANA"),
            ("../../etc/passwd", "IANA"),
            ("/etc/localtime", "IANA"),
            ("Europe/../Europe/Berlin", "IANA"),
            ("Europe/Berlin\x00", "IANA"),
            ("x" * 5000, "IANA"),
        ],
    )
    def test_no_zone_but_an_iana_name(self, name, hint):
        """G11."""
        with pytest.raises(CronError, match=r"^timezone: ") as refused:
            parse("* * * * *", timezone=name)
        assert hint in str(refused.value)
        assert len(str(refused.value)) < 200

    def test_no_zone_changes_twice_within_two_days(self):
        """The property that `zones` relies on, read from the database itself."""
        changes = {name: offset_changes(name) for name in ZONES}
        assert sum(map(len, changes.values())) > 10_000
        for name, instants in changes.items():
            for one, other in pairwise(instants):
                assert other - one > 2 * 86_400, (name, one, other)

    def test_every_zone_is_accepted(self):
        assert len(ZONES) > 400
        for name in ZONES:
            assert zones.load_zone(name).key == name


class TestLimits:
    @given(
        st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=14))])),
        st.sampled_from(["* * * * * *", "0 0 29 2 *", "30 2 * * *", "0 0 1 1 *", "59 23 31 12 *"]),
        st.sampled_from(["UTC", "Pacific/Apia", "America/New_York", "Asia/Tehran"]),
    )
    @settings(max_examples=300)
    def test_next_is_after_for_any_time_a_datetime_can_hold(self, after, expression, zone):
        tick = parse(expression, timezone=zone).next(after)
        assert tick is not None or after.year > 2190
        if tick is not None:
            assert tick > after
            assert tick.tzinfo is UTC
            assert tick.microsecond == 0

    def test_naive_times_are_refused(self):
        naive = utc("2026-01-01").replace(tzinfo=None)
        with pytest.raises(ValueError, match="time zone"):
            parse("* * * * *").next(naive)
        with pytest.raises(ValueError, match="time zone"):
            parse("* * * * *").count(naive, naive)

    def test_between_excludes_its_start_and_includes_its_end(self):
        ticks = parse("0 * * * *").between(utc("2026-01-01T00:00"), utc("2026-01-01T02:00"))
        assert list(ticks) == [utc("2026-01-01T01:00"), utc("2026-01-01T02:00")]

    def test_a_fraction_of_a_second_before_and_after(self):
        cron, tick = parse("0 * * * *"), utc("2026-01-01T01:00")
        assert cron.next(tick - timedelta(microseconds=1)) == tick
        assert cron.next(tick + timedelta(microseconds=1)) == tick + timedelta(hours=1)

    @pytest.mark.parametrize("zone", ["UTC", "America/St_Johns"])
    @pytest.mark.parametrize(
        "expression", ["0 0 29 2 *", "* * * 29 2 *", "0 0 */28 2 5#5", "*/7 * */28 2 5#5"]
    )
    def test_the_worst_expressions_take_milliseconds(self, expression, zone):
        cron = parse(expression, timezone=zone)
        started = time.process_time()
        for year in range(2000, 2200, 20):
            cron.next(datetime(year, 3, 1, tzinfo=UTC))
        assert (time.process_time() - started) / 10 < 0.05

    def test_a_year_of_seconds_is_counted_at_once(self):
        cron = parse("* * * * * *", timezone="Europe/Berlin")
        started = time.process_time()
        assert cron.count(utc("2026-01-01"), utc("2027-01-01")) == 365 * 86_400
        assert time.process_time() - started < 0.1

    def test_ten_thousand_are_small(self):
        crons = [parse(f"{n % 60} {n % 24} * * *", timezone="Europe/Berlin") for n in range(100)]
        sizes = [sys.getsizeof(cron) + sys.getsizeof(cron.fields) for cron in crons]
        assert max(sizes) < 400
        assert len({id(cron.zone) for cron in crons}) == 1
