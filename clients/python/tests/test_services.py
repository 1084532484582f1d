"""The sidecar's services as the client offers them."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from baton import (
    AlreadyExists,
    Baton,
    Conflict,
    Context,
    Entry,
    FailedPrecondition,
    InvalidArgument,
    NotConnected,
    NotFound,
    Result,
    Schedule,
    Sidecar,
    Unavailable,
    next_id,
)
from baton.testing import FakeSidecar, eventually


async def test_state_round_trip(app: Baton, sidecar: FakeSidecar):
    """Get, put, compare-and-set, delete, has, list, size and clear agree with each other."""
    assert await app.state.get("a") is None
    first = await app.state.put("a", {"n": 1}, expected_version=0)
    with pytest.raises(Conflict):
        await app.state.put("a", 2, expected_version=0)
    second = await app.state.put("a", b"\xff", expected_version=first.version)
    assert second.version > first.version
    assert await app.state.get("a", strong=True) == second
    for number in range(120):
        await app.state.put(f"many/{number:03}", number)
    listed = [entry.json() async for entry in app.state.list("many/")]
    assert listed == [*range(120)]
    assert await app.state.size("many/") == 120
    assert await app.state.clear("many/") == 120
    assert await app.state.has("a")
    assert await app.state.delete("a")
    assert not await app.state.delete("a")
    with pytest.raises(InvalidArgument):
        await app.state.put("", 1)


async def test_time_to_live(app: Baton, sidecar: FakeSidecar):
    """An expired entry is gone at once for readers."""
    lasting = await app.state.put("lasting", 1, ttl=timedelta(seconds=60))
    fleeting = await app.state.put("fleeting", 1, ttl=timedelta(seconds=0.1))
    assert lasting.expires_at is not None
    assert fleeting.expires_at is not None
    await asyncio.sleep(0.12)
    assert await app.state.has("lasting")
    assert not await app.state.has("fleeting")


async def test_modify_loses_no_change(app: Baton, sidecar: FakeSidecar):
    """G7: writers that meet on one key each see the other's change."""

    def increased(entry: Entry | None) -> int:
        return (entry.json() if entry else 0) + 1

    await asyncio.gather(*(app.state.modify("count", increased) for _ in range(20)))
    entry = await app.state.get("count")
    assert entry is not None
    assert entry.json() == 20


async def test_watch_tells_every_change_and_goes_on_after_a_break(app: Baton):
    """A stream broken by a restart of the sidecar is opened again after the last version seen."""
    async with FakeSidecar() as fake, app.connected(fake.address):
        begin = await app.state.put("a/begin", 0)
        changes = app.state.watch("a/", after_version=begin.version)
        await app.state.put("a/x", 1)
        await app.state.put("b/x", 1)
        first = await anext(changes)
        assert (first.entry.key, first.deleted) == ("a/x", False)
        await fake.__aexit__()
        await fake.__aenter__()
        await app.state.delete("a/x")
        change = await asyncio.wait_for(anext(changes), 5)
        assert (change.entry.key, change.deleted) == ("a/x", True)
        assert change.entry.version > first.entry.version
        await changes.aclose()


async def test_watch_tells_what_a_run_commits(app: Baton, sidecar: FakeSidecar):
    """The owned state that a handler returns is a change like any other, in the fake too."""
    app.schedule("report")(lambda context: Result(state=[1]))
    await sidecar.lead()
    changes = app.state.watch("schedule-state:", after_version=0)
    told = asyncio.create_task(anext(changes))
    await asyncio.sleep(0.2)  # it waits by now
    await sidecar.execute("report")
    change = await asyncio.wait_for(told, 5)
    assert (change.entry.key, change.entry.json()) == ("schedule-state:report", [1])
    await changes.aclose()


async def test_owned_keys_are_written_by_their_run_only(app: Baton, sidecar: FakeSidecar):
    """Without a run, an owned key is refused, and Clear leaves it alone."""
    sidecar.set_state("schedule-state:report", {"n": 1})
    with pytest.raises(FailedPrecondition):
        await app.state.put("schedule-state:report", 1)
    assert await app.state.clear() == 0
    assert sidecar.state("schedule-state:report") == b'{"n":1}'


async def test_schedules(app: Baton, sidecar: FakeSidecar):
    """Made, listed, changed, paused, triggered, previewed, backfilled, retired."""
    payloads: list[object] = []
    app.schedule("report")(lambda context: payloads.append(context.json()))
    start = datetime(2026, 1, 1, tzinfo=UTC)
    schedule = Schedule(name="report", every=timedelta(minutes=5), payload=b'"own"', start_at=start)
    assert (await app.schedules.create(schedule)).group == "default"
    with pytest.raises(AlreadyExists):
        await app.schedules.create(schedule)
    assert (await app.schedules.pause("report", "not now")).pause_note == "not now"
    assert not (await app.schedules.resume("report")).paused
    assert await app.schedules.preview("report", 2, after=start) == [
        start + timedelta(minutes=5),
        start + timedelta(minutes=10),
    ]
    await sidecar.lead()
    run_id = await app.schedules.trigger("report", {"by": "hand"}, request_id="once")
    assert await app.schedules.trigger("report", {"by": "hand"}, request_id="once") == run_id
    made = await app.schedules.backfill("report", start, start + timedelta(minutes=10))
    assert len(made) == 2
    assert not await app.schedules.backfill("report", start, start + timedelta(minutes=10))
    await eventually(lambda: len(payloads) == 3)
    assert sorted(map(str, payloads)) == ["own", "own", "{'by': 'hand'}"]
    await app.schedules.update(Schedule(name="report", every=timedelta(minutes=1)))
    await app.schedules.delete("report")
    assert [schedule async for schedule in app.schedules.list()] == []
    assert (await app.schedules.get("report")).HasField("retired_at")
    with pytest.raises(NotFound):
        await app.schedules.trigger("report")


async def test_a_failed_run_gets_a_new_life(app: Baton, sidecar: FakeSidecar):
    """Runs.Retry queues it again under the same key; one that succeeded is refused."""

    @app.schedule("report")
    async def report(context: Context) -> None:
        if context.attempt == 1:
            raise OSError

    await sidecar.lead()
    failed = await sidecar.execute("report")
    key = failed.idempotency_key
    await app.runs.retry(failed.run_id)
    run = await sidecar.resume(failed.run_id)
    assert (run.attempt, run.idempotency_key) == (2, key)
    with pytest.raises(FailedPrecondition):
        await app.runs.retry(failed.run_id)


async def test_leadership_is_read_watched_and_resigned(app: Baton, sidecar: FakeSidecar):
    """Any pod sees who leads; resigning ends in OnLoseLeadership."""
    epoch = await sidecar.lead("reports")
    leaders = {leader.group: leader.is_leader for leader in await app.leadership.list()}
    assert leaders == {"default": False, "reports": True}
    assert (await app.leadership.get("reports")).epoch == epoch
    watched = app.leadership.watch("reports")
    assert (await anext(watched)).is_leader
    assert (await app.leadership.resign("reports")).draining
    async with asyncio.timeout(60):
        while (await anext(watched)).is_leader:
            pass
    await watched.aclose()
    await eventually(lambda: not app.is_leader("reports"))  # the watch may hear of it first
    with pytest.raises(FailedPrecondition):
        await app.leadership.resign("reports")
    with pytest.raises(NotFound):
        await app.leadership.get("nobody")


async def test_ids_rise_and_never_repeat(app: Baton, sidecar: FakeSidecar):
    """Ids from several blocks are unique and in order; a handler needs no app object for them."""

    @app.schedule("report")
    async def report(context: Context) -> int:
        return await next_id()

    ids = [await app.next_id() for _ in range(250)]
    assert ids == sorted(set(ids))
    await sidecar.lead()
    assert int((await sidecar.execute("report")).result) > ids[-1]


async def test_old_ids_are_not_given_out_while_there_are_no_new_ones(
    app: Baton, sidecar: FakeSidecar, monkeypatch: pytest.MonkeyPatch
):
    """An id tells when it was made: a block that is a second old is not used, whoever fails."""

    async def fail(*_: object) -> None:
        raise Unavailable("away")

    await app.next_id()
    monkeypatch.setattr("baton._ids.BLOCK_SECONDS", 0.1)
    monkeypatch.setattr(app, "call", fail)
    await asyncio.sleep(0.15)
    for _ in range(2):
        with pytest.raises(Unavailable):
            await app.next_id()


async def test_a_script_may_use_the_sidecar_alone():
    """Without an app the services are there for a block, and not outside it."""
    sidecar = Sidecar()
    with pytest.raises(NotConnected):
        await sidecar.state.get("a")
    async with FakeSidecar() as fake, sidecar.connected(fake.address) as connected:
        assert (await connected.state.put("a", 1)).json() == 1
