"""Executing runs on a real Postgres: redelivery, retries, overlap, cancellation, drain."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from sidecar.adapters.clock import boottime
from sidecar.adapters.postgres.run_records import PostgresRunRecords
from sidecar.execution.recorder import Recorder
from sidecar.execution.runs import Runs
from sidecar.execution.slots import Slots
from sidecar.model.breaker import Breaker
from sidecar.model.definitions import Retry, Schedule
from sidecar.model.errors import (
    AnswerLost,
    FailedPrecondition,
    Fenced,
    StoreRefused,
    StoreUnavailable,
)
from sidecar.model.run import Answer, CallFailed, Declined, Failed, Outcome, Run, Succeeded
from sidecar.model.run_records import Claim, Completion, Recorded
from sidecar.model.term import Term
from sidecar.model.verdict import Verdict
from sidecar.scheduling import Schedules
from tests.integration.runs_lab import EVERY_HOUR, FakeApp, Lab, laboratory
from tests.lab.execution import record, writing

QUICK = Retry(attempts=3, initial_seconds=0.05, max_seconds=0.1)


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


def report(claim: Claim, **changes: object) -> Completion:
    told = {"outcome": Outcome.SUCCEEDED, "cause": "succeeded"} | changes
    verdict = Verdict(**told)  # type: ignore[arg-type]
    return Completion(claim.runs[0], verdict)


async def forever(run: Run) -> Answer:
    await asyncio.Event().wait()
    return Succeeded()


# ── G3, G5: terms and attempts ──────────────────────────────────────────────────────────────────


async def test_a_run_whose_leader_died_is_delivered_again(lab: Lab) -> None:
    """G5: the same key, a higher attempt, its checkpoints, no retry used up."""
    await queued(lab, replace(EVERY_HOUR, retry=Retry(attempts=1)))
    first = (await lab.runs.claim(await lab.term(), limit=10)).runs[0]
    await records(lab).checkpoint(first.ref, "charge", b"42")
    app = FakeApp()
    async with lab.leading(app):
        (row,) = await lab.ended()
    (call,) = app.calls
    assert call.idempotency_key == first.idempotency_key
    assert (call.ref.attempt, call.failures) == (2, 0)
    assert [(c.step, c.value) for c in call.checkpoints] == [("charge", b"42")]
    assert row["outcome"] == "succeeded"
    assert "leader changed" in [event["cause"] for event in row["history"]]


async def test_nothing_is_written_under_an_old_epoch(lab: Lab) -> None:
    """G3: claim, completion, checkpoint and heartbeat of a term that is over change nothing."""
    await queued(lab, count=2)
    old = await lab.term()
    claim = await lab.runs.claim(old, limit=1)
    await lab.term()
    before = await lab.rows()
    with pytest.raises(Fenced):
        await lab.runs.complete(old, [report(claim)])
    with pytest.raises(Fenced):
        await lab.runs.claim(old, limit=1)
    with pytest.raises(Fenced):
        await lab.runs.requeue(old)
    ref = claim.runs[0].ref
    with pytest.raises(Fenced):
        await records(lab).checkpoint(ref, "step", b"")
    with pytest.raises(Fenced):
        await records(lab).heartbeat(ref, 0.5, "half")
    assert await lab.rows() == before


async def test_only_the_live_attempt_completes_and_only_once(lab: Lab) -> None:
    """G4, G5: at most one completion is accepted."""
    await queued(lab)
    term = await lab.term()
    claim = await lab.runs.claim(term, limit=1)
    stale = replace(claim.runs[0], ref=replace(claim.runs[0].ref, attempt=2))
    assert await lab.runs.complete(term, [Completion(stale, report(claim).verdict)]) == {}
    assert len(await lab.runs.complete(term, [report(claim)])) == 1
    failed = Completion(claim.runs[0], Verdict(Outcome.FAILED, error="late"))
    assert await lab.runs.complete(term, [failed]) == {}
    (row,) = await lab.rows()
    assert (row["outcome"], row["error"]) == ("succeeded", "")


async def test_state_and_outcome_commit_together(lab: Lab) -> None:
    """G6: both or none: a refused completion leaves no state, one that is accepted does."""
    await queued(lab)
    old = await lab.term()
    claim = await lab.runs.claim(old, limit=1)
    term = await lab.term()
    with pytest.raises(Fenced):
        await lab.runs.complete(old, [report(claim, state=b"old")])
    await lab.runs.requeue(term)
    again = await lab.runs.claim(term, limit=1)
    refused = [report(claim, state=b"old")]
    assert await lab.runs.complete(term, refused) == {}
    assert await lab.sql("SELECT * FROM baton.state") == []
    await lab.runs.complete(term, [report(again, state=b"new")])
    (state,) = await lab.sql("SELECT key, value FROM baton.state")
    assert (state["key"], state["value"]) == ("schedule-state:hourly", b"new")


async def test_what_is_written_together_commits_together(lab: Lab) -> None:
    """G6: a state that cannot be stored leaves neither an outcome nor the state before it."""
    for name in ("first", "second"):
        await queued(lab, replace(EVERY_HOUR, name=name))
    term = await lab.term()
    first, second = (await lab.runs.claim(term, limit=2)).runs
    unknown = replace(second, state_version=2**31)  # more than its column holds
    verdict = Verdict(Outcome.SUCCEEDED, state=b"{}", cause="succeeded")
    with pytest.raises(StoreRefused):
        await lab.runs.complete(term, [Completion(first, verdict), Completion(unknown, verdict)])
    assert await lab.sql("SELECT * FROM baton.state") == []
    assert [row["state"] for row in await lab.rows()] == ["running", "running"]


async def test_a_run_that_kills_every_leader_fails_after_twenty_deliveries(lab: Lab) -> None:
    """G4: it does not go round for ever."""
    await queued(lab)
    for _ in range(20):
        term = await lab.term()
        await lab.runs.requeue(term)
        assert (await lab.runs.claim(term, limit=1)).runs
    ended = await lab.runs.requeue(await lab.term())
    assert ended.ended[0].outcome is Outcome.FAILED
    (row,) = await lab.rows()
    assert "20 deliveries" in row["error"]
    meta = (await catalogue(lab).get("hourly")).metadata
    assert (meta.run_count, meta.last_error, meta.last_run_at) == (
        1,
        row["error"],
        row["started_at"],
    )


async def test_a_run_of_a_schedule_that_was_deleted_is_not_delivered_again(lab: Lab) -> None:
    """G4: whoever executed it is gone, and nobody wants it any more."""
    await queued(lab)
    await lab.runs.claim(await lab.term(), limit=1)
    await catalogue(lab).delete("hourly")
    app = FakeApp()
    async with lab.leading(app):
        (row,) = await lab.ended()
    assert (row["outcome"], row["reason"], app.calls) == ("skipped", "operator", [])


async def test_a_run_that_is_going_to_wait_while_its_schedule_is_deleted_ends(lab: Lab) -> None:
    """G4: whichever of the two is committed first, nobody delivers it again."""
    (run_id,) = await queued(lab)
    term = await lab.term()
    claim = await lab.runs.claim(term, limit=1)
    later = Completion(claim.runs[0], Verdict(wait_seconds=0.0, used_retry=True, error="no"))
    async with await psycopg.AsyncConnection.connect(lab.url) as slow:
        await slow.execute("SELECT 1 FROM baton.run FOR UPDATE")
        waits = asyncio.ensure_future(lab.complete(term, [later]))
        await asyncio.wait({waits}, timeout=0.2)
        deleted = asyncio.ensure_future(catalogue(lab).delete("hourly"))
        await asyncio.wait({deleted}, timeout=0.2)
    await asyncio.gather(waits, deleted)
    run = await records(lab).get(run_id)
    assert (run.state, run.outcome, run.reason) == ("ended", "skipped", "operator")


async def test_a_run_of_a_schedule_that_is_being_deleted_is_not_retried(lab: Lab) -> None:
    """G4: whichever of the two is committed first, nobody delivers it again."""
    (run_id,) = await queued(lab)
    term = await lab.term()
    claim = await lab.runs.claim(term, limit=1)
    await lab.runs.complete(term, [report(claim, outcome=Outcome.FAILED)])
    async with await psycopg.AsyncConnection.connect(lab.url) as slow:
        await slow.execute("SELECT 1 FROM baton.run FOR UPDATE")
        retried = asyncio.ensure_future(records(lab).retry(run_id))
        await lab.until_waiting(1)
        deleted = asyncio.ensure_future(catalogue(lab).delete("hourly"))
        await asyncio.wait({deleted}, timeout=0.2)
    await asyncio.gather(retried, deleted, return_exceptions=True)
    run = await records(lab).get(run_id)
    assert run.state == "ended"


@pytest.mark.parametrize(
    ("table", "asked", "reason"),
    [
        ("schedule", "retired_at = clock_timestamp()", "operator"),
        ("run", "cancel_reason = 'overlap'", "overlap"),
    ],
    ids=["deleted", "replaced"],
)
async def test_a_run_whose_end_is_asked_for_during_a_takeover_ends(
    lab: Lab, table: str, asked: str, reason: str
) -> None:
    """G4: the next leader sees what was committed while it waited for the row."""
    (run_id,) = await queued(lab)
    await lab.runs.claim(await lab.term(), limit=1)
    term = await lab.term()
    async with await psycopg.AsyncConnection.connect(lab.url) as slow:
        await slow.execute(f"SELECT 1 FROM baton.{table} FOR UPDATE".encode())  # noqa: S608 - ours
        taken_over = asyncio.ensure_future(lab.runs.requeue(term))
        await lab.until_waiting(1)
        await slow.execute(f"UPDATE baton.{table} SET {asked}".encode())  # noqa: S608 - ours
    await taken_over
    run = await records(lab).get(run_id)
    assert (run.state, run.outcome, run.reason) == ("ended", "skipped", reason)


async def test_a_run_of_a_schedule_that_is_back_is_delivered_again(lab: Lab) -> None:
    """G5: retired by an older file in a rollout, and named again before the leader changed."""
    await queued(lab)
    await lab.runs.claim(await lab.term(), limit=1)
    await catalogue(lab).delete("hourly")
    await lab.add()
    async with lab.leading(FakeApp()):
        (row,) = await lab.ended()
    assert (row["outcome"], row["attempt"]) == ("succeeded", 2)


async def moved_away(lab: Lab, states: Sequence[str]) -> tuple[Term, Claim]:
    """Runs begun in the group `other`, by a living leader; then their schedule left it."""
    await queued(lab, replace(EVERY_HOUR, group="other"), count=len(states))
    term = await lab.term("other")
    claim = await lab.runs.claim(term, limit=10)
    await lab.sql(
        """UPDATE baton.term SET clean = false, runner_id = 'holder'
           WHERE group_id = %(group_id)s""",
        group_id=term.group_id,
    )
    await lab.sql(
        """INSERT INTO baton.runner (runner_id, cluster_id, host, version, campaigning)
           VALUES ('holder', %(cluster_id)s, '', '', true)""",
        cluster_id=lab.identity.cluster_id,
    )
    await catalogue(lab).update(EVERY_HOUR)
    for run, state in zip(claim.runs, states, strict=True):
        if state == "waiting":  # it failed after its schedule had gone
            again = Verdict(used_retry=True, error="no", cause="retry")
            await lab.runs.complete(term, [Completion(run, again)])
    return term, claim


async def test_a_run_begun_before_its_schedule_moved_is_left_to_who_executes_it(lab: Lab) -> None:
    """G5: the leader of the old group ends it; nobody else begins it meanwhile."""
    term, claim = await moved_away(lab, ["running"])
    app = FakeApp()
    async with lab.leading(app):
        await asyncio.sleep(0.3)
        assert len(await lab.runs.complete(term, [report(claim)])) == 1
    assert app.calls == []


@pytest.mark.parametrize(
    "gone",
    [
        "UPDATE baton.term SET clean = true WHERE runner_id = 'holder'",
        "UPDATE baton.runner SET seen_at = seen_at - interval '61 s'",
        "DELETE FROM baton.runner",
    ],
    ids=["released", "unseen", "left"],
)
async def test_runs_come_along_from_a_group_that_nobody_leads(lab: Lab, gone: str) -> None:
    """G3, G4, G5: a group that no file names any more keeps no run; one completion is accepted."""
    old, claim = await moved_away(lab, ["running", "waiting"])
    await lab.sql(gone)
    app = FakeApp()
    async with lab.leading(app):
        rows = await lab.ended(2)
    assert [(row["outcome"], row["attempt"]) for row in rows] == [("succeeded", 2)] * 2
    assert {row["group_id"] for row in rows} == {lab.identity.groups["default"]}
    assert {call.idempotency_key for call in app.calls} == {
        run.idempotency_key for run in claim.runs
    }
    # Nobody has taken the old term away from its holder: it is the attempt that is over.
    assert await lab.runs.complete(old, [report(claim)]) == {}


async def test_what_was_left_in_a_group_that_nobody_leads_ends_with_its_schedule(lab: Lab) -> None:
    """G4: group and schedule left the file together; any leader of the cluster ends the run."""
    await moved_away(lab, ["running"])
    await lab.sql("UPDATE baton.schedule SET group_id = (SELECT group_id FROM baton.run)")
    await catalogue(lab).delete("hourly")
    assert (await lab.runs.requeue(await lab.term())).count == 0
    await lab.sql("DELETE FROM baton.runner")
    ended = await lab.runs.requeue(await lab.term())
    assert [(e.outcome, e.reason) for e in ended.ended] == [("skipped", "operator")]


async def test_the_leader_steps_down_when_it_is_fenced(lab: Lab) -> None:
    """G3: a write refused under the current term ends it."""
    await queued(lab)
    app = FakeApp()

    async def usurped(run: Run) -> Answer:
        await lab.term()
        return Succeeded()

    app.handler = usurped
    async with lab.leading(app) as authority:
        for _ in range(200):
            if lab.fenced:
                break
            await asyncio.sleep(0.02)
    assert lab.fenced[0] == authority.term


# ── answers ─────────────────────────────────────────────────────────────────────────────────────


async def test_retries_survive_a_change_of_leader(lab: Lab) -> None:
    """The count and the due time are in Postgres, not in the leader."""
    await queued(lab, replace(EVERY_HOUR, retry=QUICK))
    app = FakeApp()

    async def failing(run: Run) -> Answer:
        return CallFailed("INTERNAL", f"attempt {run.ref.attempt}")

    app.handler = failing
    async with lab.leading(app):
        await lab.until(lambda rows: rows[0]["failures"] >= 1)
    async with lab.leading(app):
        (row,) = await lab.ended()
    assert (row["outcome"], row["failures"]) == ("failed", 3)
    assert row["error"] == f"INTERNAL: attempt {row['attempt']}"
    (meta,) = await lab.sql("SELECT * FROM baton.execution")
    assert (meta["run_count"], meta["last_success_at"], meta["last_error"]) == (
        1,
        None,
        row["error"],
    )


async def test_an_app_out_of_reach_uses_up_no_retry(lab: Lab) -> None:
    await queued(lab, replace(EVERY_HOUR, retry=Retry(attempts=1)))
    answers: list[Answer] = [
        CallFailed("UNAVAILABLE", "refused", delivered=False),
        Succeeded(b"done"),
    ]
    app = FakeApp()

    async def late(run: Run) -> Answer:
        return answers.pop(0)

    app.handler = late
    async with lab.leading(app):
        (row,) = await lab.ended()
    assert (row["outcome"], row["failures"], row["attempts_free"]) == ("succeeded", 0, 1)
    assert row["result"] == b"done"


async def test_an_app_may_decline(lab: Lab) -> None:
    await queued(lab)
    app = FakeApp()

    async def declining(run: Run) -> Answer:
        return Declined("holiday")

    app.handler = declining
    async with lab.leading(app):
        (row,) = await lab.ended()
    assert (row["outcome"], row["reason"]) == ("skipped", "app_declined")
    assert row["history"][-1]["cause"] == "holiday"


@pytest.mark.parametrize(
    "answer",
    [Declined("not today"), Failed("later", retryable=True, retry_after_seconds=60.0)],
    ids=["declined", "retried"],
)
async def test_a_run_that_was_started_was_the_last_one_whatever_becomes_of_it(
    lab: Lab, answer: Answer
) -> None:
    """One that the app declined, or that was cancelled while it waited, is no run that counts."""

    async def handler(run: Run) -> Answer:
        return answer

    await queued(lab)
    async with lab.leading(FakeApp(handler)):
        (run,) = await lab.until(lambda rows: rows[0]["state"] in ("waiting", "ended"))
    if run["state"] == "waiting":
        await records(lab).cancel(run["id"], "")
    meta = (await catalogue(lab).get("hourly")).metadata
    assert meta.last_run_at == run["started_at"]
    assert (meta.run_count, meta.last_error, meta.last_seconds) == (0, "", None)


async def test_a_timeout_cancels_the_call_and_is_retried(lab: Lab) -> None:
    await queued(
        lab,
        replace(EVERY_HOUR, timeout_seconds=0.1, retry=Retry(attempts=2, initial_seconds=0.01)),
    )
    app = FakeApp(forever)
    async with lab.leading(app):
        (row,) = await lab.ended()
    assert (row["outcome"], row["error_code"], row["attempt"]) == ("failed", "DEADLINE_EXCEEDED", 2)
    assert len(app.cancelled) == 2


async def test_the_breaker_stops_hammering_an_app_that_fails_every_call(lab: Lab) -> None:
    await queued(lab, replace(EVERY_HOUR, retry=Retry(attempts=1)), count=10)
    app, times = FakeApp(), list[float]()

    async def at_first_broken(run: Run) -> Answer:
        times.append(boottime())
        return CallFailed("INTERNAL", "no") if len(times) <= 3 else Succeeded()

    app.handler = at_first_broken
    async with lab.leading(app, slots=Slots(1), breaker=Breaker(3, 0.5)):
        rows = await lab.ended(10)
    assert times[3] - times[2] >= 0.5
    outcomes = [row["outcome"] for row in rows]
    assert (outcomes.count("failed"), outcomes.count("succeeded")) == (3, 7)


async def test_a_probe_that_takes_hours_does_not_keep_others_waiting(lab: Lab) -> None:
    """A handler that fails opened the breaker; the app works, and the oldest run is a long one."""
    await queued(lab, replace(EVERY_HOUR, name="bad", retry=Retry(attempts=1)), count=3)
    app = FakeApp()

    async def handler(run: Run) -> Answer:
        match run.name:
            case "bad":
                return CallFailed("UNKNOWN", "no")
            case "long":
                return await forever(run)
        return Succeeded()

    app.handler = handler
    async with lab.leading(app, breaker=Breaker(3, 0.5)):
        await lab.ended(3)
        await queued(lab, replace(EVERY_HOUR, name="long"))
        await queued(lab, replace(EVERY_HOUR, name="quick"), count=3)
        await lab.ended(6)
    assert [call.name for call in app.calls[3:]] == ["long", "quick", "quick", "quick"]


async def test_what_was_claimed_ahead_is_not_called_once_the_breaker_is_open(lab: Lab) -> None:
    """It never reached the app: it waits, and uses up no retry."""
    await queued(lab, count=20)
    app = FakeApp()

    async def breaks_down(run: Run) -> Answer:
        await asyncio.sleep(0.02)  # quick enough that some are claimed ahead
        return Succeeded() if len(app.calls) <= 6 else CallFailed("INTERNAL", "no")

    app.handler = breaks_down
    async with lab.leading(app, slots=Slots(1), breaker=Breaker(1, 60.0)):
        rows = await lab.until(lambda rows: sum(row["attempts_free"] for row in rows) > 0)
        await asyncio.sleep(0.2)
    assert len(app.calls) == 7
    ahead = [row for row in rows if row["attempts_free"]]
    assert {(row["state"], row["error_code"]) for row in ahead} == {("waiting", "UNAVAILABLE")}


async def test_no_more_calls_at_once_than_allowed_over_all_groups(lab: Lab) -> None:
    await queued(lab, count=10)
    await queued(lab, replace(EVERY_HOUR, name="second", group="other"), count=10)
    app, slots = FakeApp(), Slots(4)

    async def brief(run: Run) -> Answer:
        await asyncio.sleep(0.02)
        return Succeeded()

    app.handler = brief
    async with lab.leading(app, slots=slots), lab.leading(app, "other", slots=slots):
        rows = await lab.ended(20)
    assert app.running_most == 4
    assert {row["outcome"] for row in rows} == {"succeeded"}


# ── overlap ─────────────────────────────────────────────────────────────────────────────────────


def overlapping(policy: str) -> Schedule:
    return replace(EVERY_HOUR, overlap=policy)  # type: ignore[arg-type]


# What the second and then the third lead to while the first is held.
MEANWHILE = {
    "allow": (["running", "running"], ["running", "running", "running"]),
    "skip": (["running", "ended"], ["running", "ended", "ended"]),
    "queue": (["running", "queued"], ["running", "queued", "ended"]),
    "replace": (["ended", "running"], ["ended", "ended", "running"]),
}


async def outcomes_of_three(lab: Lab, policy: str) -> tuple[list[tuple[str, str | None]], FakeApp]:
    """The first runs when two more come; then it is let go."""
    go = asyncio.Event()
    app = FakeApp()

    async def handler(run: Run) -> Answer:
        await go.wait()
        return Succeeded()

    app.handler = handler
    await queued(lab, overlapping(policy))
    async with lab.leading(app):
        await lab.until(lambda rows: rows[0]["state"] == "running")
        for states in MEANWHILE[policy]:
            await catalogue(lab).trigger("hourly", payload=None, request_id="")
            await lab.until(
                lambda rows, states=states: (  # type: ignore[misc]
                    [row["state"] for row in rows] == states
                    and app.running == states.count("running")
                )
            )
        go.set()
        rows = await lab.ended(3)
    return [(row["outcome"], row["reason"]) for row in rows], app


RAN, LEFT_OUT = ("succeeded", None), ("skipped", "overlap")


@pytest.mark.parametrize(
    ("policy", "expected", "at_once"),
    [
        ("allow", [RAN, RAN, RAN], 3),
        ("skip", [RAN, LEFT_OUT, LEFT_OUT], 1),
        ("queue", [RAN, RAN, LEFT_OUT], 1),
        ("replace", [LEFT_OUT, LEFT_OUT, RAN], 1),
    ],
)
async def test_overlap_policies(
    lab: Lab, policy: str, expected: Sequence[tuple[str, str | None]], at_once: int
) -> None:
    """G4: every one of them has its outcome, and no two run at once unless allowed."""
    found, app = await outcomes_of_three(lab, policy)
    assert found == list(expected)
    assert app.running_most == at_once


async def test_a_backlog_does_not_keep_back_what_must_not_overlap(lab: Lab) -> None:
    """Runs come by their age: no schedule waits for others to have nothing due any more."""
    await queued(lab, count=4)
    await queued(lab, replace(overlapping("skip"), name="alone"))
    for _ in range(6):
        await catalogue(lab).trigger("hourly", payload=None, request_id="")
    app = FakeApp()

    async def slow(run: Run) -> Answer:
        await asyncio.sleep(0.15)
        return Succeeded()

    app.handler = slow
    async with lab.leading(app, slots=Slots(1)):
        await lab.ended(11)
    assert [call.name for call in app.calls].index("alone") == 4


async def test_a_backfilled_run_is_not_replaced(lab: Lab) -> None:
    """G4: the tick waits until it has ended, its retry included."""
    await lab.add(replace(overlapping("replace"), retry=QUICK))
    await backfilled(lab)
    go, app = asyncio.Event(), FakeApp()

    async def handler(run: Run) -> Answer:
        await go.wait()
        return CallFailed("INTERNAL", "once") if len(app.calls) == 1 else Succeeded()

    app.handler = handler
    async with lab.leading(app):
        await lab.until(lambda rows: rows[0]["state"] == "running")
        await catalogue(lab).trigger("hourly", payload=None, request_id="")
        await asyncio.sleep(0.3)
        assert [row["state"] for row in await lab.rows()] == ["running", "queued"]
        go.set()
        rows = await lab.ended(2)
    assert [(row["outcome"], row["attempt"]) for row in rows] == [
        ("succeeded", 2),
        ("succeeded", 1),
    ]
    assert (app.cancelled, app.running_most) == ([], 1)


async def backfilled(lab: Lab) -> None:
    await lab.sql(
        """INSERT INTO baton.run (cluster_id, group_id, kind, name, schedule_id, tick, state,
               due_at, overlap, backfill)
           SELECT cluster_id, group_id, 'schedule', name, id, now() - interval '5 hours', 'queued',
               now(), definition ->> 'overlap', true FROM baton.schedule"""
    )


# ── cancel, retry, drain ────────────────────────────────────────────────────────────────────────


async def test_cancel_ends_what_waits_at_once(lab: Lab) -> None:
    (run_id,) = await queued(lab)
    run = await records(lab).cancel(run_id, "not needed")
    assert (run.outcome, run.reason) == ("skipped", "operator")
    assert run.history[-1].cause == "cancelled: not needed"
    with pytest.raises(FailedPrecondition):
        await records(lab).cancel(run_id, "")


async def test_cancel_ends_the_call_of_what_runs(lab: Lab) -> None:
    (run_id,) = await queued(lab)
    app = FakeApp(forever)
    async with lab.leading(app):
        await lab.until(lambda rows: rows[0]["state"] == "running")
        asked = await records(lab).cancel(run_id, "")
        assert asked.cancel_requested
        (row,) = await lab.ended()
    assert (row["outcome"], row["reason"]) == ("skipped", "operator")
    assert len(app.cancelled) == 1


async def test_the_first_commit_wins_over_a_cancellation(lab: Lab) -> None:
    (run_id,) = await queued(lab)
    term = await lab.term()
    claim = await lab.runs.claim(term, limit=1)
    await records(lab).cancel(run_id, "")
    await lab.runs.complete(term, [report(claim)])
    assert (await records(lab).get(run_id)).outcome == "succeeded"


async def test_a_cancelled_run_is_not_retried(lab: Lab) -> None:
    (run_id,) = await queued(lab)
    term = await lab.term()
    claim = await lab.runs.claim(term, limit=1)
    await records(lab).cancel(run_id, "")
    waiting = Completion(claim.runs[0], Verdict(wait_seconds=1.0, used_retry=True, error="no"))
    recorded = await lab.runs.complete(term, [waiting])
    assert recorded[run_id].reason == "operator"


async def test_retry_gives_a_failed_run_a_new_life(lab: Lab) -> None:
    (run_id,) = await queued(lab, replace(EVERY_HOUR, retry=Retry(attempts=1)))
    app = FakeApp()
    broken = True

    async def sometimes(run: Run) -> Answer:
        return Failed("no", retryable=True) if broken else Succeeded()

    app.handler = sometimes
    async with lab.leading(app):
        await lab.ended()
        broken = False
        again = await records(lab).retry(run_id)
        assert (again.state, again.attempt) == ("queued", 1)
        (row,) = await lab.until(lambda rows: rows[0]["outcome"] == "succeeded")
    assert row["attempt"] == 2
    assert app.calls[0].idempotency_key == app.calls[1].idempotency_key
    with pytest.raises(FailedPrecondition):
        await records(lab).retry(run_id)


async def test_what_a_schedule_says_now_holds_for_runs_from_before(lab: Lab) -> None:
    """One that is retried, and one that has not begun, obey its group and its overlap of today."""
    retried, fresh = await queued(lab, count=2)
    term = await lab.term()
    claim = await lab.runs.claim(term, limit=1)
    await lab.runs.complete(term, [report(claim, outcome=Outcome.FAILED)])
    await catalogue(lab).update(replace(EVERY_HOUR, group="other", overlap="skip"))
    await records(lab).retry(retried)
    found = {row["id"]: (row["group_id"], row["overlap"]) for row in await lab.rows()}
    assert found == dict.fromkeys((retried, fresh), (lab.identity.groups["other"], "skip"))
    async with lab.leading(FakeApp(forever), "other"):
        rows = await lab.until(lambda rows: {r["state"] for r in rows} == {"running", "ended"})
    assert {row["reason"] for row in rows} == {None, "overlap"}


@pytest.mark.parametrize("when", ["they wait", "they run", "they are left by a leader"])
async def test_runs_that_overlapped_go_on_one_after_the_other(lab: Lab, when: str) -> None:
    """They were begun when they could overlap; they wait, or are under way, when that changes."""
    await queued(lab, count=3)
    term = await lab.term()
    claim = await lab.runs.claim(term, limit=3)
    again = Verdict(wait_seconds=0.0, used_retry=True, error="no", cause="retry")
    reports = [Completion(run, again) for run in claim.runs]
    if when == "they wait":
        await lab.runs.complete(term, reports)
    await catalogue(lab).update(replace(EVERY_HOUR, overlap="queue"))
    if when == "they run":
        await lab.runs.complete(term, reports)

    async def for_a_while(_: Run) -> Answer:
        await asyncio.sleep(0.1)
        return Succeeded()

    app = FakeApp(for_a_while)
    async with lab.leading(app):
        rows = await lab.ended(3)
    assert {row["outcome"] for row in rows} == {"succeeded"}
    assert app.running_most == 1


async def test_draining_lets_runs_finish_and_begins_none(lab: Lab) -> None:
    await queued(lab)
    go = asyncio.Event()
    app = FakeApp()

    async def handler(run: Run) -> Answer:
        await go.wait()
        return Succeeded()

    app.handler = handler
    async with lab.leading(app) as authority:
        await lab.until(lambda rows: rows[0]["state"] == "running")
        authority.drain_deadline = boottime() + 5.0
        authority.draining.set()
        await catalogue(lab).trigger("hourly", payload=None, request_id="")
        await asyncio.sleep(0.1)
        go.set()
        await lab.ended()
        await asyncio.sleep(0.1)
    assert [row["state"] for row in await lab.rows()] == ["ended", "queued"]


async def test_draining_cancels_what_does_not_end_in_time(lab: Lab) -> None:
    """G5: it is left to the next leader."""
    await queued(lab)
    app = FakeApp(forever)
    async with lab.leading(app) as authority:
        await lab.until(lambda rows: rows[0]["state"] == "running")
        authority.drain_deadline = boottime() + 0.2
        authority.draining.set()
        for _ in range(100):
            if app.cancelled:
                break
            await asyncio.sleep(0.02)
    assert len(app.cancelled) == 1
    app.handler = None
    async with lab.leading(app):
        (row,) = await lab.ended()
    assert (row["outcome"], row["attempt"]) == ("succeeded", 2)


# ── unknown answers ─────────────────────────────────────────────────────────────────────────────


class Forgetful:
    """Postgres whose answers get lost: after the commit, or before it."""

    def __init__(self, lab: Lab, failures: list[str]) -> None:
        self._runs = lab.runs
        self._failures = failures
        self.completions = 0

    async def complete(self, term: Term, reports: Sequence[Completion]) -> object:
        self.completions += 1
        match self._failures.pop(0) if self._failures else "":
            case "lost after":
                await self._runs.complete(term, reports)
                raise AnswerLost("cut")
            case "lost before":
                raise AnswerLost("cut")
            case "away":
                raise StoreUnavailable("away")
        return await self._runs.complete(term, reports)

    async def find_lost_completions(self, reports: Sequence[Completion]) -> object:
        return await self._runs.find_lost_completions(reports)

    async def still_running(self, reports: Sequence[Completion]) -> object:
        return await self._runs.still_running(reports)


@pytest.mark.parametrize(
    ("failures", "writes"),
    [(["lost after"], 1), (["lost before"], 2), (["away", "lost before", "lost after"], 3)],
)
async def test_an_unknown_commit_is_resolved_by_reading(
    lab: Lab, failures: list[str], writes: int
) -> None:
    """G4, G7: whatever happened to the commit, the outcome is known and written once."""
    await queued(lab)
    authority = await lab.authority()
    claim = await lab.runs.claim(authority.term, limit=1)
    store = Forgetful(lab, list(failures))
    recorder = Recorder(store, authority)  # type: ignore[arg-type]
    async with writing(recorder):
        recorded = await record(recorder, report(claim))
    assert isinstance(recorded, Recorded)
    assert recorded.outcome is Outcome.SUCCEEDED
    assert store.completions == writes
    (meta,) = await lab.sql("SELECT run_count FROM baton.execution")
    assert meta["run_count"] == 1


async def test_an_answer_waits_for_tables_that_are_refused_for_a_while(lab: Lab) -> None:
    """G6: as with a privilege that is missing; what the app did has not failed because of it."""
    await queued(lab)
    app = FakeApp()

    async def handler(run: Run) -> Answer:
        await lab.sql("ALTER TABLE baton.state RENAME TO state_away")
        return Succeeded(state=b"kept")

    app.handler = handler
    async with lab.leading(app):
        await lab.until(lambda rows: rows[0]["state"] == "running" and len(app.calls) == 1)
        await asyncio.sleep(0.5)
        await lab.sql("ALTER TABLE baton.state_away RENAME TO state")
        (row,) = await lab.ended(1)
    assert (row["outcome"], row["error"]) == ("succeeded", "")
    assert [dict(row) for row in await lab.sql("SELECT value FROM baton.state")] == [
        {"value": b"kept"}
    ]


async def test_an_end_under_a_later_term_is_not_taken_for_our_own(lab: Lab) -> None:
    """G4: whoever lost the answer to a completion does not count what another leader completed."""
    await queued(lab)
    old = await lab.term()
    lost = report(await lab.runs.claim(old, limit=1))
    term = await lab.term()
    await lab.runs.requeue(term)
    assert await lab.runs.complete(term, [report(await lab.runs.claim(term, limit=1))])
    assert await lab.runs.find_lost_completions([lost]) == {}


async def test_runs_claimed_in_an_answer_that_was_lost_are_not_forgotten(lab: Lab) -> None:
    """G5: they are taken back and delivered, and the lost delivery does not count."""
    await queued(lab, count=3)
    term = await lab.term()
    known = await lab.runs.claim(term, limit=1)
    await lab.runs.claim(term, limit=2)  # as if nobody had heard
    taken_back = await lab.runs.requeue(term, known=[known.runs[0].ref.run_id])
    assert taken_back.count == 2
    again = await lab.runs.claim(term, limit=5)
    assert [d.deliveries for d in again.runs] == [1, 1]
    assert [d.ref.attempt for d in again.runs] == [2, 2]


async def test_a_queued_tick_that_grew_too_old_is_a_misfire(lab: Lab) -> None:
    """G4: skip_if_older_than holds for a tick that no leader came to execute, not for one begun."""
    await lab.add(replace(EVERY_HOUR, skip_if_older_than_seconds=3600.0))
    await lab.sql(
        """INSERT INTO baton.run (cluster_id, group_id, kind, name, schedule_id, tick, state,
               due_at, attempt, backfill)
           SELECT cluster_id, group_id, 'schedule', name, id, at, 'queued', at, attempt, backfill
           FROM baton.schedule, (VALUES
               (now() - interval '130 min', 0, false), (now() - interval '120 min', 1, false),
               (now() - interval '110 min', 0, true), (now() - interval '50 min', 0, false)
           ) AS queued (at, attempt, backfill)"""
    )
    async with lab.leading(FakeApp()):
        rows = await lab.ended(4)
    assert [(row["outcome"], row["reason"]) for row in rows] == [
        ("skipped", "misfire"),
        RAN,
        RAN,
        RAN,
    ]
    schedule = await lab.sql("SELECT missed_total FROM baton.schedule")
    assert schedule == [{"missed_total": 1}]


@pytest.mark.parametrize("overlap", ["allow", "queue", "skip"])
@pytest.mark.parametrize(
    ("limits", "seconds"),
    [
        ({"skip_if_older_than_seconds": 60.0}, 60.0),
        ({"catch_up": "none"}, 10.0),
        ({"catch_up": "none", "skip_if_older_than_seconds": 5.0}, 5.0),
    ],
)
async def test_a_tick_that_grew_too_old_while_it_waited_for_a_slot_is_a_misfire(
    lab: Lab, limits: dict[str, Any], seconds: float, overlap: str
) -> None:
    """G4: it was queued in time, and would begin too late; the younger one is still in time."""
    await queued(lab, replace(EVERY_HOUR, name="busy"))
    await lab.add(replace(overlapping(overlap), **limits))
    go, app = asyncio.Event(), FakeApp()

    async def handler(run: Run) -> Answer:
        if run.name == "busy":
            await go.wait()
        return Succeeded()

    app.handler = handler
    async with lab.leading(app, slots=Slots(1)):
        await lab.until(lambda rows: rows[0]["state"] == "running")
        for age in (seconds - 0.3, 0.0):
            await lab.sql(
                """INSERT INTO baton.run (cluster_id, group_id, kind, name, schedule_id, tick,
                       state, due_at, overlap)
                   SELECT cluster_id, group_id, 'schedule', name, id, at, 'queued', at,
                       definition ->> 'overlap'
                   FROM baton.schedule, (SELECT clock_timestamp() - make_interval(
                       secs => %(age)s) AS at) AS born WHERE name = 'hourly'""",
                age=age,
            )
        await asyncio.sleep(0.4)
        go.set()
        await lab.ended(3)
    rows = await lab.rows("hourly")
    assert [(row["outcome"], row["reason"]) for row in rows] == [("skipped", "misfire"), RAN]
    (schedule,) = await lab.sql("SELECT missed_total FROM baton.schedule WHERE name = 'hourly'")
    assert schedule == {"missed_total": 1}


async def test_what_was_missed_while_a_run_was_under_way_is_told_to_the_next(lab: Lab) -> None:
    await queued(lab, count=3)
    term = await lab.term()
    first = await lab.runs.claim(term, limit=1)
    await lab.sql("UPDATE baton.schedule SET missed_total = missed_total + 3")
    await lab.runs.complete(term, [report(first)])
    second = await lab.runs.claim(term, limit=1)
    await lab.runs.complete(term, [report(second)])
    told = [claim.runs[0].metadata.missed_count for claim in (first, second)]
    assert told == [0, 3]
    third = await lab.runs.claim(term, limit=1)
    assert third.runs[0].metadata.missed_count == 0


async def test_pruning_forgets_old_history_only(lab: Lab) -> None:
    await queued(lab, count=3)
    term = await lab.term()
    claim = await lab.runs.claim(term, limit=2)
    await lab.runs.complete(term, [Completion(d, report(claim).verdict) for d in claim.runs])
    await lab.sql(
        "UPDATE baton.run SET finished_at = finished_at - interval '8 days' WHERE id = %(id)s",
        id=claim.runs[0].ref.run_id,
    )
    assert await lab.runs.prune(term, keep_seconds=timedelta(days=7).total_seconds(), limit=10) == 1
    assert sorted(row["state"] for row in await lab.rows()) == ["ended", "queued"]
