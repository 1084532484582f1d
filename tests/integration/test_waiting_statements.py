"""Statements that wait for rows of others: they see what is committed meanwhile, and never wait in
a circle."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import psycopg
import pytest

from sidecar.adapters.postgres.heartbeats import Heartbeats
from sidecar.adapters.postgres.membership import Membership
from sidecar.adapters.postgres.run_records import PostgresRunRecords
from sidecar.adapters.postgres.state import PostgresState
from sidecar.execution.runs import Runs
from sidecar.model.definitions import Schedule, State
from sidecar.model.run import Answer, Outcome, Run, Succeeded
from sidecar.model.run_records import Completion
from sidecar.model.schedule import SkipReason
from sidecar.model.verdict import Verdict
from sidecar.scheduling import ConfigSync, Schedules
from tests.integration.runs_lab import EVERY_HOUR, FakeApp, Lab, laboratory

AGAIN = Verdict(wait_seconds=0.0, used_retry=True, error="no", cause="retry")


@pytest.fixture
async def lab(database_url: str) -> AsyncIterator[Lab]:
    async with laboratory(database_url) as lab:
        yield lab


def catalogue(lab: Lab) -> Schedules:
    return Schedules(lab.schedules, lab.hints, cluster="test")


def records(lab: Lab) -> Runs:
    return Runs(PostgresRunRecords(lab.database, lab.who), lab.hints)


async def queued(lab: Lab, definition: Schedule = EVERY_HOUR, count: int = 1) -> list[int]:
    await lab.add(definition)
    return [
        await catalogue(lab).trigger(definition.name, payload=None, request_id="")
        for _ in range(count)
    ]


@asynccontextmanager
async def slow(
    lab: Lab, statement: str, *parameters: object
) -> AsyncIterator[psycopg.AsyncConnection]:
    """Somebody else's transaction, which has done this and is not over yet."""
    async with await psycopg.AsyncConnection.connect(lab.url) as connection:
        await connection.execute(statement.encode(), parameters)
        yield connection


async def test_a_schedule_that_changes_its_group_meanwhile_is_found(lab: Lab) -> None:
    """G11: paused while another pod moves it, it is not said to be missing."""
    await lab.add()
    async with slow(lab, "SELECT 1 FROM baton.schedule FOR NO KEY UPDATE") as moving:
        paused = asyncio.ensure_future(catalogue(lab).pause("hourly", "why"))
        await lab.until_waiting(1)
        await moving.execute(
            "UPDATE baton.schedule"
            " SET group_id = (SELECT id FROM baton.leader_group WHERE name = 'other')"
        )
    await paused
    now = await catalogue(lab).get("hourly")
    assert (now.paused, now.definition.group) == (True, "other")


async def test_a_run_left_in_another_group_ends_with_its_schedule(lab: Lab) -> None:
    """G4: taken along while its schedule is being deleted, nobody delivers it again."""
    await queued(lab, replace(EVERY_HOUR, group="other"))
    other = await lab.term("other")
    (run,) = (await lab.runs.claim(other, limit=1)).runs
    await lab.sql("UPDATE baton.term SET clean = true")
    await catalogue(lab).update(EVERY_HOUR)
    waits = await catalogue(lab).trigger("hourly", payload=None, request_id="")
    term = await lab.term()
    async with slow(lab, "SELECT 1 FROM baton.run WHERE id = %s FOR UPDATE", waits):
        deleted = asyncio.ensure_future(catalogue(lab).delete("hourly"))
        await lab.until_waiting(1)
        await lab.runs.requeue(term)
    await deleted
    await lab.runs.requeue(term)
    found = await records(lab).get(run.ref.run_id)
    assert (found.state, found.outcome, found.reason) == ("ended", "skipped", "operator")


async def test_a_deletion_and_ticks_that_grew_too_old_do_not_wait_in_a_circle(lab: Lab) -> None:
    """G4: each ends what the other has not; those of schedules before it are no help."""
    await queued(lab, replace(EVERY_HOUR, name="before"))
    first, _ = await queued(lab, count=2)
    await lab.sql("UPDATE baton.run SET kind = 'schedule', due_at = due_at - interval '2 days'")
    term = await lab.term()
    async with slow(lab, "SELECT 1 FROM baton.run WHERE id = %s FOR UPDATE", first):
        deleted = asyncio.ensure_future(catalogue(lab).delete("hourly"))
        await lab.until_waiting(1)
        expired = asyncio.ensure_future(lab.runs.expire(term))
        await lab.until_waiting(2)
    await asyncio.gather(deleted, expired)
    assert [row["reason"] for row in await lab.rows()] == ["misfire", "operator", "operator"]


async def test_a_deletion_and_a_run_that_is_going_to_wait_do_not_wait_in_a_circle(lab: Lab) -> None:
    """G4: claimed while its schedule was being deleted, it ends all the same."""
    first, second = await queued(lab, count=2)
    term = await lab.term()
    async with slow(lab, "SELECT 1 FROM baton.run WHERE id = %s FOR UPDATE", first):
        deleted = asyncio.ensure_future(catalogue(lab).delete("hourly"))
        await lab.until_waiting(1)
        (run,) = (await lab.runs.claim(term, limit=1)).runs
        recorded = asyncio.ensure_future(lab.complete(term, [Completion(run, AGAIN)]))
        await asyncio.wait({recorded}, timeout=0.3)
    await asyncio.gather(deleted, recorded)
    assert {(await records(lab).get(run)).state for run in (first, second)} == {"ended"}


async def test_a_file_and_skips_of_several_schedules_do_not_wait_in_a_circle(lab: Lab) -> None:
    """G4: a file goes by schedule, a skip by run: one of them waits for nobody."""
    config = ConfigSync(lab.schedules, lab.hints, cluster="test")
    names = ("a", "b", "c")
    assert await config.sync([replace(EVERY_HOUR, name=name) for name in names], 0)
    runs = [
        await catalogue(lab).trigger(name, payload=None, request_id="") for name in ("b", "c", "a")
    ]
    term = await lab.term()
    async with slow(lab, "SELECT 1 FROM baton.run WHERE id = %s FOR UPDATE", runs[1]):
        skipping = asyncio.ensure_future(lab.runs.skip(term, runs, SkipReason.OVERLAP, "overlap"))
        await asyncio.wait({skipping}, timeout=0.3)
        file = [replace(EVERY_HOUR, name=name, overlap="queue") for name in ("a", "b")]
        applied = asyncio.ensure_future(config.sync(file, 1))
        await asyncio.wait({applied}, timeout=0.5)
    skipped, _ = await asyncio.gather(skipping, applied)
    assert {run.run_id for run in skipped} == {runs[0], runs[2]}
    assert (await records(lab).get(runs[1])).reason == SkipReason.OPERATOR


async def test_runners_that_were_cut_off_for_an_hour_do_not_wait_in_a_circle(lab: Lab) -> None:
    """G8: each is known to live again at once, and whoever stays away is forgotten."""
    members = [
        Membership(lab.database, runner_id=name, host="", version="") for name in ("gone", "a", "b")
    ]
    for member in members:
        await member.beat(lab.identity, campaigning=True, config_revision=0)
    await lab.sql(
        """UPDATE baton.runner SET seen_at = clock_timestamp()
           - CASE runner_id WHEN 'gone' THEN interval '3 h' ELSE interval '2 h' END"""
    )
    async with slow(lab, "SELECT 1 FROM baton.runner WHERE runner_id = 'gone' FOR UPDATE"):
        back = [
            asyncio.ensure_future(m.beat(lab.identity, campaigning=True, config_revision=0))
            for m in members[1:]
        ]
        await asyncio.wait(back, timeout=0.3)
    await asyncio.gather(*back)
    await members[1].beat(lab.identity, campaigning=True, config_revision=0)
    rows = await lab.sql("SELECT runner_id FROM baton.runner ORDER BY runner_id")
    assert [row["runner_id"] for row in rows] == ["a", "b"]


async def test_state_that_lives_on_and_completions_do_not_wait_in_a_circle(lab: Lab) -> None:
    """G6: state that is kept with an outcome does not fail for the sweep."""
    names = ("b", "c", "a")
    for name in names:
        definition = replace(EVERY_HOUR, name=name, state=State(version=1, ttl_seconds=600.0))
        await queued(lab, definition)
    term = await lab.term()
    claim = await lab.runs.claim(term, limit=3)
    by_name = {d.name: d for d in claim.runs}
    for name in names:
        await lab.sql(
            "SELECT baton.put_owned_state(%(cluster)s, %(key)s, '', 1, '600 s')",
            cluster=lab.identity.cluster_id,
            key=f"schedule-state:{name}",
        )
    await Heartbeats(lab.database, lambda: lab.identity, ()).beat(term, 15.0)
    await lab.sql("UPDATE baton.state SET expires_at = expires_at - interval '300 s'")
    states = PostgresState(lab.database, lab.who, heartbeat_seconds=15.0)
    reports = [
        Completion(by_name[name], Verdict(Outcome.SUCCEEDED, state=b"new")) for name in ("c", "a")
    ]
    async with slow(lab, "SELECT 1 FROM baton.state WHERE key = 'schedule-state:b' FOR UPDATE"):
        swept = asyncio.ensure_future(states.sweep(100))
        await asyncio.wait({swept}, timeout=0.3)
        recorded = asyncio.ensure_future(lab.complete(term, reports))
        await asyncio.wait({recorded}, timeout=0.3)
    await swept
    assert len(await recorded) == 2


async def test_a_name_that_the_api_takes_meanwhile_goes_to_the_file_afterwards(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G11: the file clashes with a schedule that it could not see yet, and says so."""
    monkeypatch.setattr("sidecar.scheduling.config_sync.REFRESH_SECONDS", 0.2)
    config = ConfigSync(lab.schedules, lab.hints, cluster="test")
    config.declare([replace(EVERY_HOUR, payload=b"file")], 0)
    taken = """INSERT INTO baton.schedule
                   (cluster_id, group_id, name, source, definition, watermark)
               VALUES (%s, %s, 'hourly', 'api', '{"every_seconds": 3600}', clock_timestamp())"""
    async with slow(lab, taken, lab.identity.cluster_id, lab.identity.groups["default"]):
        syncing = asyncio.ensure_future(config.run())
        await lab.until_waiting(1)
    try:
        await asyncio.sleep(0.3)
        assert (await catalogue(lab).get("hourly")).source == "api"
        await catalogue(lab).delete("hourly")
        async with asyncio.timeout(60):
            while (await catalogue(lab).get("hourly")).source != "config":  # noqa: ASYNC110 - polled
                await asyncio.sleep(0.05)
    finally:
        syncing.cancel()


async def test_replaced_runs_and_completions_do_not_wait_in_a_circle(lab: Lab) -> None:
    """G4: the leader asks for the end of runs whose answers it is writing."""
    first, second, third = await queued(lab, count=3)
    await lab.sql(
        "UPDATE baton.run SET due_at = due_at - interval '1 min' WHERE id = %(third)s", third=third
    )
    term = await lab.term()
    claims = [await lab.runs.claim(term, limit=limit) for limit in (1, 2)]
    reports = [
        Completion(run, Verdict(Outcome.SUCCEEDED)) for claim in claims for run in claim.runs
    ]
    async with slow(lab, "SELECT 1 FROM baton.run WHERE id = %s FOR UPDATE", second):
        recorded = asyncio.ensure_future(lab.complete(term, reports))
        await lab.ended(2)
        asked = asyncio.ensure_future(lab.runs.ask_replacement(term, [first, second, third]))
        await lab.until_waiting(1)
    await asyncio.gather(recorded, asked)
    assert {row["outcome"] for row in await lab.rows()} == {"succeeded"}


@pytest.mark.parametrize("change", ["deleted", "updated"])
async def test_a_change_and_completions_of_its_runs_do_not_wait_in_a_circle(
    lab: Lab, change: str
) -> None:
    """G4: runs are claimed behind the snapshot of a change, which comes to them all the same."""
    first, second, third = await queued(lab, count=3)
    # Its row lies behind the third one now.
    await lab.sql(
        "UPDATE baton.run SET due_at = due_at - interval '1 s' WHERE id = %(i)s", i=second
    )
    term = await lab.term()
    async with slow(lab, "SELECT 1 FROM baton.run WHERE id = %s FOR UPDATE", first) as other:
        changed = asyncio.ensure_future(
            catalogue(lab).delete("hourly")
            if change == "deleted"
            else catalogue(lab).update(replace(EVERY_HOUR, overlap="queue"))
        )
        await lab.until_waiting(1)
        claim = await lab.runs.claim(term, limit=3)
        reports = [Completion(run, Verdict(Outcome.SUCCEEDED)) for run in claim.runs]
        async with slow(lab, "SELECT 1 FROM baton.run WHERE id = %s FOR UPDATE", second):
            recorded = asyncio.ensure_future(lab.complete(term, reports))
            await asyncio.wait({recorded}, timeout=0.3)
            await other.commit()
            await asyncio.wait({changed}, timeout=0.3)
    _, written = await asyncio.gather(changed, recorded)
    assert written.keys() == {second, third}


async def test_a_deletion_and_a_takeover_do_not_wait_in_a_circle(lab: Lab) -> None:
    """G5: a run that was claimed behind the deletion's snapshot, by a leader that died."""
    first, second = await queued(lab, count=2)
    term = await lab.term()
    async with slow(lab, "SELECT 1 FROM baton.run WHERE id = %s FOR UPDATE", first):
        deleted = asyncio.ensure_future(catalogue(lab).delete("hourly"))
        await lab.until_waiting(1)
        await lab.runs.claim(term, limit=1)
        requeued = asyncio.ensure_future(lab.runs.requeue(await lab.term()))
        await lab.until_waiting(2)
    await asyncio.gather(deleted, requeued)
    assert {(await records(lab).get(run)).state for run in (first, second)} == {"ended"}


async def test_ticks_do_not_wait_for_a_file_that_only_waits_for_a_name(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G4: as long as the API has a name of the file, nobody holds the file's other schedules."""
    monkeypatch.setattr("sidecar.scheduling.config_sync.REFRESH_SECONDS", 0.1)
    await lab.add()
    config = ConfigSync(lab.schedules, lab.hints, cluster="test")
    file = [EVERY_HOUR, replace(EVERY_HOUR, name="mine")]
    assert await config.sync(file, 0)
    config.declare(file, 0)
    seen = "SELECT seen_at FROM baton.config_load"
    before = await lab.sql(seen)
    syncing = asyncio.ensure_future(config.run())
    try:
        async with asyncio.timeout(60):
            while await lab.sql(seen) == before:  # noqa: ASYNC110 - applied once more, at first
                await asyncio.sleep(0.01)
        async with slow(lab, "SELECT 1 FROM baton.schedule WHERE name = 'mine' FOR NO KEY UPDATE"):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(1):
                    await lab.until_waiting(1)
    finally:
        syncing.cancel()


async def test_a_locked_run_holds_up_no_other(lab: Lab) -> None:
    """G4: another session holds one run's row; the others of its batch end, and it ends later."""
    locked, free = await queued(lab, count=2)
    answering = asyncio.Event()

    async def answer(_: Run) -> Answer:
        await answering.wait()
        return Succeeded()

    async with lab.leading(FakeApp(answer)):
        await lab.until(lambda rows: all(row["state"] == "running" for row in rows))
        async with slow(lab, "SELECT 1 FROM baton.run WHERE id = %s FOR UPDATE", locked):
            answering.set()  # both are written in one batch
            (row,) = await lab.ended()
            assert (row["id"], row["outcome"]) == (free, "succeeded")
        assert {row["outcome"] for row in await lab.ended(2)} == {"succeeded"}


async def test_a_locked_schedule_holds_up_no_run_of_another(lab: Lab) -> None:
    """G4: a run that is going to wait holds its schedule; without it, the others are written."""
    for name in ("a", "b"):
        await queued(lab, replace(EVERY_HOUR, name=name))
    term = await lab.term()
    claim = await lab.runs.claim(term, limit=2)
    waiting, other = sorted(claim.runs, key=lambda delivery: delivery.name)
    reports = [Completion(waiting, AGAIN), Completion(other, AGAIN)]
    async with slow(lab, "SELECT 1 FROM baton.schedule WHERE name = 'a' FOR UPDATE"):
        assert (await lab.runs.complete(term, reports)).keys() == {other.ref.run_id}
        assert await lab.runs.still_running(reports) == {waiting.ref.run_id}
    assert (await lab.complete(term, reports)).keys() == {waiting.ref.run_id}
