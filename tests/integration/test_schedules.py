"""Ticks and the operations on schedules, on a real Postgres."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Any, cast

import psycopg
import pytest

from sidecar.adapters.postgres.definitions import from_json, to_json
from sidecar.adapters.postgres.runs import PostgresRuns
from sidecar.model.definitions import Retry, Schedule, State
from sidecar.model.errors import (
    AlreadyExists,
    FailedPrecondition,
    Fenced,
    InvalidArgument,
    NotFound,
)
from sidecar.model.schedule import timing_of
from sidecar.model.stored_schedule import StoredSchedule, due_ticks
from sidecar.scheduling import ConfigSync, Schedules
from tests.integration.runs_lab import EVERY_HOUR, FakeApp, Lab, Row, laboratory, soon

MINUTELY = Schedule(name="minutely", every_seconds=60.0)
HOUR = timedelta(hours=1)
NEVER = Schedule(  # no 1 June lies in its window
    name="never",
    cron="0 0 1 6 *",
    start_at=datetime(2027, 1, 1, tzinfo=UTC),
    end_at=datetime(2027, 1, 2, tzinfo=UTC),
)


def mid_minute() -> Schedule:
    """Its ticks are half a minute away on both sides: counting them does not depend on the time."""
    start_at = datetime.now(UTC) - timedelta(days=1, seconds=30)
    return replace(MINUTELY, start_at=start_at)


@pytest.fixture
async def lab(database_url: str) -> AsyncIterator[Lab]:
    async with laboratory(database_url) as lab:
        yield lab


@pytest.fixture
def schedules(lab: Lab) -> Schedules:
    return Schedules(lab.schedules, lab.hints, cluster="test")


@pytest.fixture
def config(lab: Lab) -> ConfigSync:
    return ConfigSync(lab.schedules, lab.hints, cluster="test")


async def ticked(lab: Lab, count: int = 1) -> list[Row]:
    """Lead until so many rows are there."""
    async with lab.leading(FakeApp()):
        await lab.until(lambda rows: len(rows) >= count and all(r["outcome"] for r in rows))
    return await lab.rows()


def told(rows: list[Row]) -> list[tuple[str, str | None, int]]:
    return [(row["outcome"], row["reason"], row["tick_count"]) for row in rows]


def every_tick(rows: list[Row], every: timedelta) -> list[datetime]:
    """The ticks that rows stand for, compressed ones spread out."""
    return [row["tick"] + n * every for row in rows for n in range(row["tick_count"])]


# ── ticks ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("changes", "behind", "expected"),
    [
        ({}, 5, [("skipped", "coalesced", 4), ("succeeded", None, 1)]),
        ({"catch_up": "all"}, 3, [("succeeded", None, 1)] * 3),
        (
            {"catch_up": "all", "catch_up_max": 2},
            4,
            [("skipped", "coalesced", 2)] + [("succeeded", None, 1)] * 2,
        ),
        ({"catch_up": "none"}, 3, [("skipped", "misfire", 3)]),
        (
            {"skip_if_older_than_seconds": 150.0},
            5,
            [("skipped", "misfire", 3), ("skipped", "coalesced", 1), ("succeeded", None, 1)],
        ),
    ],
)
async def test_catch_up_to_the_tick(
    lab: Lab, changes: dict[str, object], behind: int, expected: list[tuple[str, str | None, int]]
) -> None:
    """G4: every missed tick is in exactly one row, with the outcome that the policy says."""
    # Ticks half a minute away from now on either side: the test is not in a hurry.
    start = await lab.schedules.now() - timedelta(minutes=behind, seconds=30)
    definition = replace(MINUTELY, start_at=start + timedelta(minutes=1), **changes)  # type: ignore[arg-type]
    await lab.add(definition, behind=timedelta(days=1))
    rows = await ticked(lab, len(expected))
    assert told(rows) == expected
    minute = timedelta(minutes=1)
    assert every_tick(rows, minute) == [start + minute * n for n in range(1, behind + 1)]
    meta = (await lab.schedules.get("minutely")).metadata
    missed = sum(count for outcome, _, count in expected if outcome == "skipped")
    ran = any(outcome == "succeeded" for outcome, _, _ in expected)
    assert meta.missed_count == (0 if ran else missed)


async def test_two_racing_claimers_make_one_row_per_tick(lab: Lab) -> None:
    """G4: the same plan claimed by several at once, under one term."""
    await lab.add(replace(MINUTELY, catch_up="all", catch_up_max=50), behind=timedelta(minutes=50))
    term = await lab.term()
    now, (stored,) = await lab.schedules.upcoming(term, horizon_seconds=0, limit=10)
    due = due_ticks(stored, timing_of(stored.definition, "test"), now)
    assert due is not None
    claims = await asyncio.gather(*(lab.schedules.claim_ticks(term, [due]) for _ in range(8)))
    assert sum(len(claim.moved) for claim in claims) == 1
    ticks = [row["tick"] for row in await lab.rows()]
    assert len(ticks) == len(set(ticks)) == len(due.steps) >= 49


async def test_only_the_claim_of_ticks_does_not_wait_for_the_disk(lab: Lab) -> None:
    """What is acknowledged by anything else on the same connection is on the disk."""
    await lab.add(MINUTELY, behind=timedelta(minutes=5))
    term = await lab.term()
    now, (stored,) = await lab.schedules.upcoming(term, horizon_seconds=0, limit=10)
    due = due_ticks(stored, timing_of(stored.definition, "test"), now)
    assert due is not None
    await lab.schedules.claim_ticks(term, [due])
    assert lab.database.open_connections == 1
    assert await lab.sql("SHOW synchronous_commit") == [{"synchronous_commit": "on"}]


async def test_ticks_of_an_old_term_are_refused(lab: Lab) -> None:
    """G3."""
    await lab.add(MINUTELY, behind=timedelta(minutes=5))
    old = await lab.term()
    now, (stored,) = await lab.schedules.upcoming(old, horizon_seconds=0, limit=10)
    due = due_ticks(stored, timing_of(stored.definition, "test"), now)
    assert due is not None
    await lab.term()
    with pytest.raises(Fenced):
        await lab.schedules.claim_ticks(old, [due])
    assert await lab.rows() == []


async def test_the_clock_of_the_database_decides_what_is_due(lab: Lab) -> None:
    """A leader whose clock is ahead asks too early, and gets nothing."""
    await lab.add(MINUTELY)
    term = await lab.term()
    now, (stored,) = await lab.schedules.upcoming(term, horizon_seconds=120, limit=10)
    ahead = now + timedelta(minutes=2)
    due = due_ticks(stored, timing_of(stored.definition, "test"), ahead)
    assert due is not None
    claimed = await lab.schedules.claim_ticks(term, [due])
    assert claimed.moved == frozenset()
    assert await lab.rows() == []


async def test_a_thousand_ticks_in_one_second(lab: Lab) -> None:
    """G4: one row each, all of them executed."""
    tick = soon(4.0).replace(microsecond=0)
    for n in range(1000):
        at = tick + timedelta(milliseconds=n)
        await lab.add(Schedule(name=f"s{n:04}", at=at), behind=timedelta(minutes=1))
    app = FakeApp()
    async with lab.leading(app):
        await _calls(app, 1000)
        rows = await lab.ended(1000, seconds=30)
    assert len({(row["name"], row["tick"]) for row in rows}) == len(rows) == 1000
    assert {row["outcome"] for row in rows} == {"succeeded"}
    assert len(app.calls) == 1000


async def _calls(app: FakeApp, count: int) -> None:
    """Wait for so many calls without reading thousands of rows again and again."""
    async with asyncio.timeout(240):
        while len(app.calls) < count:  # noqa: ASYNC110 - the fake app knows no events
            await asyncio.sleep(0.05)


async def test_more_schedules_than_the_book_holds(lab: Lab) -> None:
    """G4: 2,500 ticks due at one instant."""
    await lab.add(replace(EVERY_HOUR, name="s0"))
    assert EVERY_HOUR.start_at is not None
    await lab.sql(
        """INSERT INTO baton.schedule (cluster_id, group_id, name, source, definition, watermark,
               next_tick, next_due_at)
           SELECT cluster_id, group_id, 's' || n, source, definition,
               tick - interval '1 s', tick, tick
           FROM baton.schedule, CAST(%(tick)s AS timestamptz) AS tick,
               generate_series(1, 2500) AS n""",
        tick=EVERY_HOUR.start_at + timedelta(days=365),  # five minutes before this was imported
    )
    app = FakeApp()
    async with lab.leading(app):
        await _calls(app, 2500)
        rows = await lab.ended(2500, seconds=60)
    assert len({row["name"] for row in rows}) == 2500


async def test_a_changed_schedule_is_seen_at_once(lab: Lab, schedules: Schedules) -> None:
    app = FakeApp()
    async with lab.leading(app):
        await asyncio.sleep(0.2)
        await schedules.create(Schedule(name="new", at=soon(1.0)))
        (row,) = await lab.ended(1, seconds=6)  # a look without a hint comes after ten
    assert row["name"] == "new"


async def test_jitter_delays_the_start_not_the_tick(lab: Lab) -> None:
    tick = soon(0.2)
    schedule = Schedule(name="spread", at=tick, jitter_seconds=0.5)
    await lab.add(schedule, behind=timedelta(minutes=1))
    async with lab.leading(FakeApp()):
        (row,) = await lab.ended()
    assert row["tick"] == tick
    assert row["due_at"] > tick
    assert row["started_at"] >= row["due_at"]


# ── operations ──────────────────────────────────────────────────────────────────────────────────


async def test_ticks_of_a_pause_are_skipped_and_share_a_row(lab: Lab, schedules: Schedules) -> None:
    """G4: a pause loses no tick."""
    began = monotonic()
    await lab.add(replace(MINUTELY, every_seconds=0.1))
    assert (await schedules.pause("minutely", "maintenance")).pause_note == "maintenance"
    await asyncio.sleep(0.55)
    resumed = await schedules.resume("minutely")
    most = (monotonic() - began) / 0.1 + 1
    rows = await lab.rows()
    assert [(row["outcome"], row["reason"]) for row in rows] == [("skipped", "paused")]
    assert 5 <= rows[0]["tick_count"] <= most
    assert not resumed.paused
    assert resumed.next_tick is not None
    async with lab.leading(FakeApp()):
        rows = await lab.until(lambda rows: len(rows) >= 3)
    ticks = every_tick(rows, timedelta(milliseconds=100))
    assert ticks == [ticks[0] + n * timedelta(milliseconds=100) for n in range(len(ticks))]


async def test_a_disabled_schedule_records_its_ticks_as_paused(lab: Lab) -> None:
    await lab.add(replace(mid_minute(), enabled=False), behind=timedelta(minutes=20))
    async with lab.leading(FakeApp()):
        (row,) = await lab.ended()
    assert (row["reason"], row["tick_count"]) == ("paused", 20)


async def test_a_new_timing_counts_from_now(lab: Lab, schedules: Schedules) -> None:
    """Ticks that were due under the old timing are recorded, those of the new one begin now."""
    definition = mid_minute()
    await lab.add(definition, behind=timedelta(minutes=3))
    stored = await schedules.update(replace(definition, every_seconds=3600.0))
    assert stored.watermark > datetime.now(UTC) - timedelta(seconds=30)
    assert told(await lab.rows()) == [("skipped", "operator", 3)]


async def test_another_payload_keeps_the_watermark(lab: Lab, schedules: Schedules) -> None:
    await lab.add(MINUTELY, behind=timedelta(minutes=3))
    before = await schedules.get("minutely")
    stored = await schedules.update(replace(MINUTELY, payload=b"new"))
    assert (stored.watermark, stored.definition.payload) == (before.watermark, b"new")
    assert await lab.rows() == []


async def test_a_change_during_a_claim_is_not_lost(lab: Lab, schedules: Schedules) -> None:
    """G4: a plan made before the change does not count."""
    await lab.add(MINUTELY, behind=timedelta(minutes=3))
    term = await lab.term()
    now, (stored,) = await lab.schedules.upcoming(term, horizon_seconds=0, limit=10)
    due = due_ticks(stored, timing_of(stored.definition, "test"), now)
    assert due is not None
    await schedules.pause("minutely", "")
    assert (await lab.schedules.claim_ticks(term, [due])).moved == frozenset()
    assert await lab.rows() == []


async def test_delete_ends_what_waits_and_keeps_the_history(lab: Lab, schedules: Schedules) -> None:
    await lab.add(EVERY_HOUR)
    await schedules.trigger("hourly", payload=None, request_id="")
    await schedules.delete("hourly")
    assert told(await lab.rows()) == [("skipped", "operator", 1)]
    assert (await schedules.get("hourly")).retired_at is not None
    for again in (schedules.delete("hourly"), schedules.pause("hourly", "")):
        with pytest.raises(NotFound):
            await again
    with pytest.raises(NotFound):
        await schedules.trigger("hourly", payload=None, request_id="")
    assert (await schedules.create(EVERY_HOUR)).retired_at is None


async def test_what_a_deletion_passed_over_stays_passed_when_it_comes_back(
    lab: Lab, schedules: Schedules
) -> None:
    """G4: made anew while it is being deleted, its ticks count from after the deletion."""
    await schedules.create(EVERY_HOUR)
    async with await psycopg.AsyncConnection.connect(lab.url) as deleting:
        await deleting.execute("SELECT 1 FROM baton.schedule FOR NO KEY UPDATE")
        again = asyncio.ensure_future(schedules.create(EVERY_HOUR))
        await lab.until_waiting(1)
        deleted_at = await lab.schedules.now()
        await deleting.execute(
            "UPDATE baton.schedule"
            " SET retired_at = clock_timestamp(), watermark = clock_timestamp()"
        )
    made = await again
    assert made.retired_at is None
    assert made.watermark > deleted_at


async def test_a_schedule_that_comes_back_does_not_go_back_in_time(
    lab: Lab, schedules: Schedules
) -> None:
    """G4: nor if the clock of the server did, as after a failover."""
    await schedules.create(EVERY_HOUR)
    await schedules.delete("hourly")
    await lab.sql("UPDATE baton.schedule SET watermark = watermark + interval '2 h'")
    (gone,) = await lab.sql("SELECT watermark FROM baton.schedule")
    back = await schedules.create(EVERY_HOUR)
    assert back.watermark == gone["watermark"]
    assert back.next_tick is not None
    assert back.next_tick > gone["watermark"]


async def test_a_name_is_taken_once(schedules: Schedules) -> None:
    await schedules.create(EVERY_HOUR)
    with pytest.raises(AlreadyExists):
        await schedules.create(EVERY_HOUR)


def unknown(lab: Lab, *groups: str) -> None:
    """This runner's file names them no longer, or not yet."""
    known = {name: n for name, n in lab.identity.groups.items() if name not in groups}
    lab.identity = replace(lab.identity, groups=known)


async def test_a_schedule_of_a_group_that_this_runner_does_not_have(
    lab: Lab, schedules: Schedules
) -> None:
    """An old pod in a rollout that adds a group: its operators can do everything but move it."""
    await lab.add(replace(EVERY_HOUR, group="other"))
    await lab.add(replace(EVERY_HOUR, name="here"))
    unknown(lab, "other")
    assert (await schedules.pause("hourly", "")).paused
    assert not (await schedules.resume("hourly")).paused
    stored = await schedules.update(replace(EVERY_HOUR, group="other", payload=b"new"))
    assert (stored.definition.group, stored.definition.payload) == ("other", b"new")
    with pytest.raises(InvalidArgument) as refused:
        await schedules.update(replace(EVERY_HOUR, name="here", group="other"))
    assert refused.value.field == "schedule.group"
    await schedules.delete("hourly")
    assert set(await living(schedules)) == {"here"}


async def test_another_group_takes_what_waits(lab: Lab, schedules: Schedules) -> None:
    """G4: no run is left in a group that may have no leader any more; what runs stays there."""
    await lab.add(EVERY_HOUR)
    for _ in range(4):
        await schedules.trigger("hourly", payload=None, request_id="")
    old = await lab.term()
    await lab.runs.claim(old, limit=2, admitted=[])
    await lab.sql(
        """UPDATE baton.run SET state = 'waiting', due_at = now() WHERE id =
           (SELECT min(id) FROM baton.run WHERE state = 'running')"""
    )
    await schedules.update(replace(EVERY_HOUR, group="other"))
    groups = {number: name for name, number in lab.identity.groups.items()}
    assert sorted((row["state"], groups[row["group_id"]]) for row in await lab.rows()) == [
        ("queued", "other"),
        ("queued", "other"),
        ("running", "default"),
        ("waiting", "other"),
    ]
    assert not (await lab.runs.claim(old, limit=9, admitted=[])).runs
    async with lab.leading(FakeApp(), group="other"):
        rows = await lab.ended(3)
    assert {row["outcome"] for row in rows} == {"succeeded"}


@pytest.mark.parametrize("round_", range(5))
async def test_a_run_is_claimed_in_its_old_group_or_moved(
    lab: Lab, schedules: Schedules, round_: int
) -> None:
    """G4: a leader that claims while the group changes has the run, or the new group has it."""
    await lab.add(EVERY_HOUR)
    for _ in range(40):
        await schedules.trigger("hourly", payload=None, request_id="")
    old, new = await lab.term(), await lab.term("other")
    moved = asyncio.create_task(schedules.update(replace(EVERY_HOUR, group="other")))
    claims = [
        asyncio.create_task(lab.runs.claim(term, limit=2, admitted=[]))
        for _ in range(10)
        for term in (old, new)
    ]
    claimed = [
        (delivery.ref.run_id, term.group_id)
        for claim, term in zip(await asyncio.gather(*claims), [old, new] * 10, strict=True)
        for delivery in claim.runs
    ]
    await moved
    rows = await lab.rows()
    running = {r["id"]: r["group_id"] for r in rows if r["state"] == "running"}
    assert sorted(claimed) == sorted(running.items())
    assert {r["attempt"] for r in rows if r["state"] == "running"} <= {1}
    assert {r["group_id"] for r in rows if r["state"] == "queued"} <= {new.group_id}


async def test_a_claim_in_progress_keeps_its_runs(lab: Lab, schedules: Schedules) -> None:
    """G4: the change of a group waits for the old leader's claim, and leaves it what it has."""
    await lab.add(EVERY_HOUR)
    for _ in range(2):
        await schedules.trigger("hourly", payload=None, request_id="")
    old, new = await lab.term(), await lab.term("other")
    async with lab.database.transaction() as transaction:
        claiming = PostgresRuns(cast(Any, transaction), lab.who)
        (run,) = (await claiming.claim(old, limit=1, admitted=[])).runs
        moving = asyncio.create_task(schedules.update(replace(EVERY_HOUR, group="other")))
        await asyncio.sleep(0.3)
        assert not moving.done()
    await moving
    found = {row["id"]: (row["state"], row["group_id"]) for row in await lab.rows()}
    assert found.pop(run.ref.run_id) == ("running", old.group_id)
    assert list(found.values()) == [("queued", new.group_id)]


async def test_trigger_is_safe_to_repeat(lab: Lab, schedules: Schedules) -> None:
    await schedules.create(EVERY_HOUR)
    asked = [schedules.trigger("hourly", payload=b"p", request_id="r1") for _ in range(5)]
    assert len(set(await asyncio.gather(*asked))) == 1
    other = await schedules.trigger("hourly", payload=None, request_id="r2")
    app = FakeApp()
    async with lab.leading(app):
        await lab.ended(2)
    payloads = {call.ref.run_id: call.payload for call in app.calls}
    assert sorted(payloads.values()) == [b"", b"p"]
    assert payloads[other] == b""


async def test_backfill_runs_ticks_without_a_row_once(lab: Lab, schedules: Schedules) -> None:
    """G4: old ticks too, exempt from misfire; those with a row, shared or not, are left alone."""
    start = await lab.schedules.now() - timedelta(minutes=5, seconds=30)
    definition = replace(MINUTELY, start_at=start + timedelta(minutes=1), catch_up="none")
    await lab.add(definition, behind=timedelta(days=1))
    await ticked(lab)  # five ticks skipped as misfire, in one row
    await lab.sql("DELETE FROM baton.run")
    await lab.sql(
        """INSERT INTO baton.run (cluster_id, group_id, kind, name, tick, tick_last, tick_count,
               state, outcome, reason, due_at, finished_at)
           SELECT cluster_id, group_id, 'schedule', name, %(first)s, %(last)s, 2,
               'ended', 'skipped', 'paused', now(), now() FROM baton.schedule""",
        first=start + timedelta(minutes=2),
        last=start + timedelta(minutes=3),
    )
    end = start + timedelta(minutes=5)
    run_ids = await schedules.backfill("minutely", start, end)
    assert len(run_ids) == 2  # the first and the fourth; the end is not included
    assert await schedules.backfill("minutely", start, end) == []
    async with lab.leading(FakeApp()):
        rows = await lab.ended(3)
    assert [r["outcome"] for r in rows] == ["succeeded", "skipped", "succeeded"]


async def test_backfill_runs_one_after_the_other_where_nothing_may_overlap(
    lab: Lab, schedules: Schedules
) -> None:
    definition = replace(mid_minute(), overlap="skip")
    await lab.add(definition)
    start = definition.start_at
    assert start is not None
    run_ids = await schedules.backfill("minutely", start, start + timedelta(minutes=6))
    app = FakeApp()
    async with lab.leading(app):
        rows = await lab.ended(6)
    assert len(run_ids) == 6
    assert {row["outcome"] for row in rows} == {"succeeded"}
    assert app.running_most == 1


async def test_backfill_beside_a_long_history(lab: Lab, schedules: Schedules) -> None:
    """Its cost goes by what is asked for, not by that times what is there."""
    start = datetime(2026, 1, 1, tzinfo=UTC)
    await lab.add(replace(MINUTELY, start_at=start))
    began = monotonic()
    for first in range(0, 60_001, 10_000):  # one statement may take 5 s at most
        await lab.sql(
            """INSERT INTO baton.run (cluster_id, group_id, kind, name, schedule_id, tick,
                   tick_last, tick_count, state, outcome, reason, due_at, finished_at)
               SELECT cluster_id, group_id, 'schedule', name, id, tick,
                   CASE WHEN n %% 600 = 0 THEN tick + interval '9 minutes' END,
                   CASE WHEN n %% 600 = 0 THEN 10 ELSE 1 END,
                   'ended', 'skipped', 'paused', tick, tick
               FROM baton.schedule, generate_series(%(first)s, least(%(first)s + 9999, 60000)) AS n,
                   LATERAL (SELECT %(start)s::timestamptz + n * interval '1 minute') AS at (tick)
               WHERE n %% 600 NOT BETWEEN 1 AND 59""",
            start=start,
            first=first,
        )
    written = monotonic()
    from_at = start + timedelta(minutes=59_400)  # ten ticks share a row, fifty have none
    run_ids = await schedules.backfill("minutely", from_at, from_at + timedelta(minutes=1000))
    assert monotonic() - written < written - began, "it took longer than writing the history"
    asked = {from_at + timedelta(minutes=n) for n in range(1000)}
    there = {from_at + timedelta(minutes=n) for n in (*range(10), *range(60, 610))}
    queued = [row["tick"] for row in await lab.sql("SELECT tick FROM baton.run WHERE backfill")]
    assert set(queued) == asked - there
    assert len(run_ids) == len(queued)


async def test_backfill_ends_where_the_history_was_pruned(lab: Lab, schedules: Schedules) -> None:
    """G4: a tick whose row may be gone is not run again; those before the schedule had none."""
    await lab.add(EVERY_HOUR)
    await lab.sql("UPDATE baton.schedule SET created_at = now() - interval '9 days'")
    now, day = await lab.schedules.now(), timedelta(days=1)
    for from_at, to_at in ((now - 8 * day, now - 7.5 * day), (now - 10 * day, now - 8 * day)):
        with pytest.raises(InvalidArgument) as refused:
            await schedules.backfill("hourly", from_at, to_at)
        assert refused.value.field == "from_at"
        assert "7d" in refused.value.problem
    assert await lab.rows() == []
    assert len(await schedules.backfill("hourly", now - 6 * day, now - 5 * day)) == 24
    assert len(await schedules.backfill("hourly", now - 12 * day, now - 11 * day)) == 24
    await lab.add(replace(EVERY_HOUR, name="young"))
    await lab.sql("UPDATE baton.schedule SET created_at = now() - interval '2 days'")
    assert len(await schedules.backfill("young", now - 8 * day, now - day)) == 7 * 24


async def test_bad_input_names_its_field_and_changes_nothing(
    lab: Lab, schedules: Schedules
) -> None:
    """G11."""
    await lab.add(EVERY_HOUR)
    now = datetime.now(UTC)
    bad = [
        ("schedule.cron", schedules.create(Schedule(name="a", cron="61 * * * *"))),
        ("schedule.cron", schedules.create(Schedule(name="a", cron="0 0 30 2 *"))),
        (
            "schedule.timezone",
            schedules.create(Schedule(name="a", cron="* * * * *", timezone="X/Y")),
        ),
        ("schedule", schedules.create(Schedule(name="a"))),
        ("schedule.name", schedules.create(Schedule(name="", every_seconds=1.0))),
        ("schedule.every", schedules.create(Schedule(name="a", every_seconds=0.0))),
        ("schedule.every", schedules.create(Schedule(name="a", every_seconds=1e12))),
        (
            "schedule.catch_up_max",
            schedules.create(replace(EVERY_HOUR, name="a", catch_up_max=5000)),
        ),
        (
            "schedule.retry.attempts",
            schedules.create(replace(EVERY_HOUR, name="a", retry=Retry(1000))),
        ),
        (
            "schedule.retry.initial",
            schedules.create(replace(EVERY_HOUR, name="a", retry=Retry(3, 9.0, 1.0))),
        ),
        (
            "schedule.payload",
            schedules.create(replace(EVERY_HOUR, name="a", payload=b"x" * 300_000)),
        ),
        (
            "schedule.state.schema",
            schedules.create(replace(EVERY_HOUR, name="a", state=State(schema={"type": "x"}))),
        ),
        ("schedule.at", schedules.create(Schedule(name="a", at=now - HOUR))),
        ("schedule.at", schedules.create(Schedule(name="a", at=now - HOUR, end_at=now + HOUR))),
        ("schedule.end_at", schedules.create(replace(EVERY_HOUR, name="a", end_at=now - HOUR))),
        ("schedule.end_at", schedules.create(replace(NEVER, name="a"))),
        ("schedule.end_at", schedules.update(replace(NEVER, name="hourly"))),
        ("schedule.group", schedules.create(replace(EVERY_HOUR, name="a", group="nowhere"))),
        ("name", schedules.get("a\0b")),
        ("payload", schedules.trigger("hourly", payload=b"x" * 300_000, request_id="")),
        ("request_id", schedules.trigger("hourly", payload=None, request_id="x" * 256)),
        ("to_at", schedules.backfill("hourly", now, now)),
        ("to_at", schedules.backfill("hourly", now, now + HOUR)),
        ("to_at", schedules.backfill("hourly", now - 2000 * HOUR, now - HOUR)),
        ("n", schedules.preview("hourly", count=1001, after=None)),
    ]
    for field, call in bad:
        with pytest.raises(InvalidArgument) as refused:
            await call
        assert refused.value.field == field, refused.value
    assert [s.name for s in await schedules.page(after="", limit=10, include_retired=True)] == [
        "hourly"
    ]
    assert await lab.rows() == []


async def test_a_window_without_a_tick_is_told_as_it_is(lab: Lab, schedules: Schedules) -> None:
    """G11: never a tick, none left, over: three sentences, each of them true."""
    now = await lab.schedules.now()
    yearly = Schedule(name="a", cron=f"0 0 1 {(now.month + 5) % 12 + 1} *")
    bad = {
        "never ticks between start_at and end_at": NEVER,
        "there is no tick between now and then": replace(yearly, end_at=now + HOUR),
        "lies in the past: there would never be a tick": replace(yearly, end_at=now - HOUR),
    }
    for problem, definition in bad.items():
        with pytest.raises(InvalidArgument) as refused:
            await schedules.create(definition)
        assert (refused.value.field, refused.value.problem) == ("schedule.end_at", problem)
    await lab.add(yearly)
    ended = await schedules.update(replace(yearly, end_at=now - HOUR))  # no more ticks: as asked
    assert ended.next_tick is None


async def test_an_instant_is_not_moved_to_the_past(lab: Lab, schedules: Schedules) -> None:
    """G11: it would never tick, as if it had been created so. The rest of it may be changed."""
    now = await lab.schedules.now()
    once = Schedule(name="once", at=now + HOUR)
    await lab.add(once)
    with pytest.raises(InvalidArgument) as refused:
        await schedules.update(replace(once, at=now - HOUR))
    assert refused.value.field == "schedule.at"
    assert (await schedules.get("once")).next_tick == once.at
    over = Schedule(name="over", at=now + timedelta(milliseconds=1))
    await lab.add(over, behind=HOUR)
    assert (await schedules.update(replace(over, payload=b"x"))).definition.payload == b"x"


async def test_preview_changes_nothing(lab: Lab, schedules: Schedules) -> None:
    ticks = await schedules.preview(
        Schedule(name="x", cron="0 2 * * *", timezone="Europe/Berlin"),
        count=2,
        after=datetime(2026, 3, 28, tzinfo=UTC),
    )
    assert ticks == [
        datetime(2026, 3, 28, 1, tzinfo=UTC),
        datetime(2026, 3, 29, 1, tzinfo=UTC),
    ]
    with pytest.raises(NotFound):
        await schedules.preview("x", count=2, after=None)


async def test_pages_go_by_name(lab: Lab, schedules: Schedules) -> None:
    for name in ("c", "a", "b"):
        await lab.add(replace(EVERY_HOUR, name=name))
    first = await schedules.page(after="", limit=2, include_retired=False)
    rest = await schedules.page(after=first[-1].name, limit=2, include_retired=False)
    assert [s.name for s in (*first, *rest)] == ["a", "b", "c"]


def test_a_definition_is_read_back_as_it_was_written() -> None:
    full = Schedule(
        name="n",
        group="g",
        cron="H 2 * * *",
        timezone="Europe/Berlin",
        payload=b"\x00\xff",
        start_at=datetime(2026, 1, 1, tzinfo=UTC),
        retry=Retry(5, 0.5, 7.0),
        state=State(version=3, initial={"a": [1]}, schema={"type": "object"}, ttl_seconds=60.0),
        overlap="queue",
        ping_url="https://example.org/x",
    )
    stored = to_json(full)
    assert from_json("n", "g", b"\x00\xff", stored | {"of_a_newer_release": 1}) == full
    assert from_json("n", "g", b"", {}) == Schedule(name="n", group="g")


# ── the file ────────────────────────────────────────────────────────────────────────────────────


async def living(schedules: Schedules) -> dict[str, StoredSchedule]:
    found = await schedules.page(after="", limit=100, include_retired=False)
    return {stored.name: stored for stored in found}


def named(*names: str) -> list[Schedule]:
    return [replace(EVERY_HOUR, name=name) for name in names]


async def test_the_file_is_declarative(lab: Lab, schedules: Schedules, config: ConfigSync) -> None:
    """Made, changed, retired as it says; the same again changes nothing."""
    assert await config.sync(named("a", "b"), 0)
    before = await living(schedules)
    assert await config.sync(named("a", "b"), 0)
    assert await living(schedules) == before
    await asyncio.sleep(0.01)
    assert await config.sync([replace(EVERY_HOUR, name="a", payload=b"new")], 0)
    after = await living(schedules)
    assert set(after) == {"a"}
    assert after["a"].watermark == before["a"].watermark
    retired = await schedules.get("b")
    assert await config.sync(named("a", "b"), 1)
    assert (await schedules.get("b")).watermark == retired.watermark
    assert (await schedules.get("b")).retired_at is None


async def test_a_group_may_leave_the_file_together_with_its_schedules(
    lab: Lab, schedules: Schedules, config: ConfigSync
) -> None:
    """G4: they are retired, one goes to another group, and later files are applied."""
    gone = replace(EVERY_HOUR, name="gone", group="other")
    goes = replace(EVERY_HOUR, name="goes", group="other")
    assert await config.sync([*named("a"), gone, goes], 1)
    await schedules.trigger("gone", payload=None, request_id="")
    unknown(lab, "other")
    assert await config.sync([*named("a", "new"), replace(goes, group="default")], 2)
    found = await living(schedules)
    assert {name: s.definition.group for name, s in found.items()} == dict.fromkeys(
        ("a", "goes", "new"), "default"
    )
    assert told(await lab.rows()) == [("skipped", "operator", 1)]
    assert await config.sync(named("a"), 3)
    assert set(await living(schedules)) == {"a"}


async def test_file_and_api_leave_each_other_alone(
    lab: Lab, schedules: Schedules, config: ConfigSync
) -> None:
    await schedules.create(replace(EVERY_HOUR, name="mine", payload=b"api"))
    assert await config.sync(named("mine", "theirs"), 0)
    assert (await schedules.get("mine")).definition.payload == b"api"
    assert await config.sync([], 1)
    assert set(await living(schedules)) == {"mine"}
    await config.sync(named("theirs"), 2)
    for call in (schedules.update(*named("theirs")), schedules.delete("theirs")):
        with pytest.raises(FailedPrecondition):
            await call
    with pytest.raises(AlreadyExists):
        await schedules.create(*named("theirs"))
    assert (await schedules.pause("theirs", "")).paused


async def test_the_file_may_take_the_name_of_a_deleted_schedule(
    lab: Lab, schedules: Schedules, config: ConfigSync
) -> None:
    """It is another schedule: it makes good nothing that the deleted one missed."""
    await lab.add(replace(MINUTELY, name="x"), behind=timedelta(hours=1))
    await schedules.pause("x", "old")
    await schedules.delete("x")
    rows = await lab.rows()
    assert await config.sync([replace(MINUTELY, name="x")], 0)
    (stored,) = (await living(schedules)).values()
    assert (stored.source, stored.paused) == ("config", False)
    assert stored.watermark > datetime.now(UTC) - timedelta(seconds=30)
    assert await lab.rows() == rows


async def test_the_file_does_not_go_back_before_the_deletion(
    lab: Lab, schedules: Schedules, config: ConfigSync
) -> None:
    """G4: nor if the clock of the server did: what the deletion passed over is not run."""
    await schedules.create(EVERY_HOUR)
    await schedules.delete("hourly")
    await lab.sql("UPDATE baton.schedule SET watermark = watermark + interval '2 h'")
    deleted = await schedules.get("hourly")
    assert await config.sync([EVERY_HOUR], 0)
    made = await schedules.get("hourly")
    assert (made.source, made.watermark) == ("config", deleted.watermark)
    assert made.next_tick
    assert made.next_tick > deleted.watermark


async def test_the_file_takes_its_name_when_the_api_gives_it_up(
    lab: Lab, schedules: Schedules, config: ConfigSync, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Deleting the other one, as the log advises, is enough: nobody has to load the file again."""
    monkeypatch.setattr("sidecar.scheduling.config_sync.REFRESH_SECONDS", 0.1)
    await schedules.create(*named("mine"))
    config.declare(named("mine", "theirs"), 0)
    running = asyncio.create_task(config.run())
    try:
        async with asyncio.timeout(60):
            while "theirs" not in await living(schedules):  # noqa: ASYNC110 - it is polled too
                await asyncio.sleep(0.05)
            assert (await living(schedules))["mine"].source == "api"
            await schedules.delete("mine")
            while "mine" not in await living(schedules):  # noqa: ASYNC110 - it is polled too
                await asyncio.sleep(0.05)
        assert (await living(schedules))["mine"].source == "config"
    finally:
        running.cancel()


async def test_config_run_applies_what_was_declared_last(
    lab: Lab, schedules: Schedules, config: ConfigSync
) -> None:
    config.declare(named("a"), 0)
    running = asyncio.create_task(config.run())
    try:
        for names in ({"a"}, {"a", "b"}):
            config.declare(named(*sorted(names)), 0)
            for _ in range(100):
                if set(await living(schedules)) == names:
                    break
                await asyncio.sleep(0.05)
            assert set(await living(schedules)) == names
    finally:
        running.cancel()


async def test_an_older_revision_is_never_applied_over_a_newer_one(
    lab: Lab, schedules: Schedules, config: ConfigSync
) -> None:
    assert await config.sync(named("a", "new"), 8)
    old = ConfigSync(lab.schedules, lab.hints, cluster=lab.identity.cluster)
    for _ in range(3):
        assert not await old.sync(named("a", "old"), 7)
    assert set(await living(schedules)) == {"a", "new"}


async def test_a_newer_file_that_nobody_has_any_more_gives_way(
    lab: Lab, schedules: Schedules, config: ConfigSync
) -> None:
    """A reinstallation counts its revisions from 1; a newer runner that comes back wins again."""
    assert await config.sync(named("a", "new"), 8)
    old = ConfigSync(lab.schedules, lab.hints, cluster=lab.identity.cluster, gone_seconds=0.5)
    assert not await old.sync(named("a", "old"), 1)
    await asyncio.sleep(0.4)
    assert await config.sync(named("a", "new"), 8)  # a sign of life
    await asyncio.sleep(0.4)
    assert not await old.sync(named("a", "old"), 1)
    assert set(await living(schedules)) == {"a", "new"}
    await asyncio.sleep(0.6)
    assert await old.sync(named("a", "old"), 1)
    assert set(await living(schedules)) == {"a", "old"}
    assert await config.sync(named("a", "new"), 8)
    assert set(await living(schedules)) == {"a", "new"}


async def test_without_revisions_the_first_load_decides(
    lab: Lab, schedules: Schedules, config: ConfigSync
) -> None:
    """A rollout: an old pod that restarts does not undo the new file; a rollback does in time."""
    old, new = named("a", "old"), named("a", "new")
    assert await config.sync(old, 0)
    assert await config.sync(new, 0)
    restarted = ConfigSync(lab.schedules, lab.hints, cluster=lab.identity.cluster, gone_seconds=0.3)
    assert not await restarted.sync(old, 0)
    assert set(await living(schedules)) == {"a", "new"}
    await asyncio.sleep(0.4)
    assert await restarted.sync(old, 0)
    assert not await config.sync(new, 0)
    assert set(await living(schedules)) == {"a", "old"}


async def test_changing_a_file_back_applies_at_once(
    lab: Lab, schedules: Schedules, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a running pod's file is changed to is the newest, even if it was there before."""
    monkeypatch.setattr("sidecar.scheduling.config_sync.REFRESH_SECONDS", 600.0)
    config = ConfigSync(lab.schedules, lab.hints, cluster=lab.identity.cluster)
    running = asyncio.create_task(config.run())
    try:
        for names in (("a",), ("a", "b"), ("a",)):
            config.declare(named(*names), 0)
            async with asyncio.timeout(60):
                while set(await living(schedules)) != set(names):  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
    finally:
        running.cancel()


async def test_files_that_nobody_has_are_forgotten(lab: Lab, config: ConfigSync) -> None:
    """Only those of long ago, and never the one that stands."""
    for revision in range(1, 5):
        assert await config.sync(named("a"), revision)
    await lab.sql(
        """UPDATE baton.config_load SET seen_at = seen_at - interval '40 days'
           WHERE revision IN (1, 2, 4)"""
    )
    assert await config.sync(named("a"), 4)
    rows = await lab.sql("SELECT revision FROM baton.config_load ORDER BY revision")
    assert [row["revision"] for row in rows] == [3, 4]


async def test_a_file_of_thousands_is_applied(
    lab: Lab, schedules: Schedules, config: ConfigSync
) -> None:
    """New ones are written many at a time; payloads, instants and absent ticks survive it."""
    many = [replace(EVERY_HOUR, name=f"m{n:04}", payload=bytes([n % 256])) for n in range(2300)]
    over = Schedule(name="over", at=datetime(2020, 1, 1, tzinfo=UTC))
    assert await config.sync([*many, over], 0)
    found = await schedules.page(after="", limit=5000, include_retired=False)
    assert {stored.name: stored.definition.payload for stored in found} == {
        schedule.name: schedule.payload for schedule in [*many, over]
    }
    assert (await schedules.get("over")).next_tick is None
    assert await config.sync([over], 1)
    assert set(await living(schedules)) == {"over"}


async def test_runners_that_start_at_once_agree_on_one_file(
    lab: Lab, schedules: Schedules, config: ConfigSync
) -> None:
    files = [(named("a", f"r{revision}"), revision) for revision in range(1, 6)]
    await asyncio.gather(*(config.sync(file, revision) for file, revision in files * 2))
    assert set(await living(schedules)) == {"a", "r5"}
