"""Checkpoints that come at the same moment share a statement, and none of them notices."""

import asyncio
from collections.abc import AsyncIterator

import psycopg
import pytest

from sidecar.adapters.postgres.run_records import PostgresRunRecords
from sidecar.execution.authority import Authorities
from sidecar.execution.runs import Runs
from sidecar.model.errors import AlreadyExists, Fenced, LimitExceeded, SidecarError
from sidecar.model.run import Outcome, Run, RunRef
from sidecar.model.run_records import Completion, Step, StoredStep
from sidecar.model.term import Term
from sidecar.model.verdict import Verdict
from tests.integration.runs_lab import Lab, laboratory

STORED = StoredStep(True)
_HELD = "SELECT 1 FROM baton.run WHERE id = %s FOR UPDATE"
_COUNTED = """
    SELECT id, checkpoint_count AS counted, checkpoint_bytes AS counted_bytes, count(step) AS steps,
        count(DISTINCT seq) AS places, coalesce(max(seq), 0) AS last_place,
        coalesce(sum(octet_length(value)), 0) AS bytes
    FROM baton.run LEFT JOIN baton.checkpoint ON run_id = id GROUP BY id"""


@pytest.fixture
async def lab(database_url: str) -> AsyncIterator[Lab]:
    async with laboratory(database_url) as lab:
        yield lab


def records(lab: Lab) -> PostgresRunRecords:
    return PostgresRunRecords(lab.database, lab.who)


async def living(lab: Lab, term: Term, count: int) -> list[Run]:
    return [await lab.runs.start_singleton(term, f"{term.group}-{n}") for n in range(count)]


async def stored(lab: Lab) -> set[tuple[int, str, bytes]]:
    rows = await lab.sql("SELECT run_id, step, value FROM baton.checkpoint")
    return {(row["run_id"], row["step"], bytes(row["value"])) for row in rows}


async def check_counts(lab: Lab) -> None:
    """What each run counts is what it has."""
    for row in await lab.sql(_COUNTED):
        assert row["counted"] == row["steps"] == row["places"] == row["last_place"]
        assert row["counted_bytes"] == row["bytes"]


class Doubts(Authorities):
    """Notes each token whose write was refused."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens: list[int] = []

    def write_refused(self, token: int) -> None:
        self.tokens.append(token)


async def test_what_is_refused_in_a_batch_takes_nobody_along(lab: Lab) -> None:
    """G3: each is stored or not for reasons of its own."""
    term = await lab.term()
    good, again, other, many, large, old, ended = (d.ref for d in await living(lab, term, 7))
    (elsewhere,) = await living(lab, await lab.term("other"), 1)
    assert elsewhere.ref.epoch == term.epoch  # two groups: never in one transaction
    for run in (again, other):
        await records(lab).checkpoint(run, "charge", b"1")
    full = "UPDATE baton.run SET checkpoint_count = %(count)s, checkpoint_bytes = %(bytes)s"
    await lab.sql(f"{full} WHERE id = %(id)s", count=1000, bytes=0, id=many.run_id)
    await lab.sql(f"{full} WHERE id = %(id)s", count=0, bytes=1024 * 1024, id=large.run_id)
    await lab.sql("UPDATE baton.run SET attempt = 2 WHERE id = %(id)s", id=old.run_id)
    await lab.sql(
        """UPDATE baton.run SET state = 'ended', outcome = 'failed', finished_at = now()
           WHERE id = %(id)s""",
        id=ended.run_id,
    )
    unknown = RunRef(2**62, 1, term.epoch)
    asked = {
        good: (b"1", None),
        again: (b"1", None),
        other: (b"2", AlreadyExists),
        many: (b"1", LimitExceeded),
        large: (b"1", LimitExceeded),
        old: (b"1", Fenced),
        ended: (b"1", Fenced),
        unknown: (b"1", Fenced),
        elsewhere.ref: (b"1", None),
    }
    steps = [Step(run, "charge", value) for run, (value, _) in asked.items()]
    expected = [STORED if step.run == good else None for step in steps]
    assert await records(lab).checkpoint_all(steps) == expected
    doubts = Doubts()
    runs = Runs(records(lab), lab.hints, authorities=doubts)
    answers = await asyncio.gather(
        *(runs.checkpoint(step.run, step.name, step.value) for step in steps),
        return_exceptions=True,
    )
    assert [type(answer) if answer else None for answer in answers] == [
        e for _, e in asked.values()
    ]
    assert sorted(doubts.tokens) == sorted(ref.epoch for ref in (old, ended, unknown))
    kept = (good, again, other, elsewhere.ref)
    assert await stored(lab) == {(run.run_id, "charge", b"1") for run in kept}


async def test_a_batch_of_an_old_term_stores_nothing(lab: Lab) -> None:
    """G3: also if the takeover comes while the batch waits for it."""
    term = await lab.term()
    refs = [run.ref for run in await living(lab, term, 3)]
    runs = Runs(records(lab), lab.hints)
    async with await psycopg.AsyncConnection.connect(lab.url) as taking_over:
        await taking_over.execute("UPDATE baton.term SET epoch = epoch + 1")
        asked = [asyncio.ensure_future(runs.checkpoint(ref, "late", b"")) for ref in refs]
        await lab.until_waiting(1)
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert [type(answer) for answer in answers] == [Fenced] * 3
    assert await stored(lab) == set()


async def test_steps_of_one_run_at_once_are_all_stored(lab: Lab) -> None:
    term = await lab.term()
    refs = [run.ref for run in await living(lab, term, 4)]
    runs = Runs(records(lab), lab.hints)
    wanted = [(ref, f"step-{n}", b"x" * n) for n in range(8) for ref in refs]
    await asyncio.gather(*(runs.checkpoint(*step) for step in wanted))
    assert await stored(lab) == {(ref.run_id, name, value) for ref, name, value in wanted}
    await check_counts(lab)


async def test_a_run_that_is_held_delays_no_other(lab: Lab) -> None:
    term = await lab.term()
    held, *others = (run.ref for run in await living(lab, term, 4))
    runs = Runs(records(lab), lab.hints)
    async with await psycopg.AsyncConnection.connect(lab.url) as holding:
        await holding.execute(_HELD, (held.run_id,))
        waits = asyncio.ensure_future(runs.checkpoint(held, "charge", b"1"))
        async with asyncio.timeout(2):
            await asyncio.gather(*(runs.checkpoint(ref, "charge", b"1") for ref in others))
        await lab.until_waiting(1)
        assert not waits.done()
    await waits
    assert {run_id for run_id, *_ in await stored(lab)} == {
        held.run_id,
        *(r.run_id for r in others),
    }


async def test_two_pods_and_completions_do_not_wait_in_a_circle(lab: Lab) -> None:
    """G3, G4: the same steps from two pods while the runs end; each is stored once or fenced."""
    term = await lab.term()
    deliveries = await living(lab, term, 24)
    pods = [Runs(records(lab), lab.hints) for _ in range(2)]
    accepted: set[tuple[int, str, bytes]] = set()
    failures: list[SidecarError] = []

    async def working(pod: Runs, ref: RunRef) -> None:
        for n in range(6):
            step = (f"step-{n}", str(n).encode())
            try:
                await pod.checkpoint(ref, *step)
                accepted.add((ref.run_id, *step))
                await pod.heartbeat(ref, n / 6, None)
            except SidecarError as error:
                failures.append(error)

    async def completing() -> None:
        backwards = [Completion(d, Verdict(Outcome.SUCCEEDED)) for d in reversed(deliveries[::2])]
        for at in range(0, len(backwards), 4):
            await asyncio.sleep(0.02)
            assert len(await lab.complete(term, backwards[at : at + 4])) == 4

    order = [run.ref for run in deliveries]
    await asyncio.gather(
        completing(),
        *(working(pods[0], ref) for ref in order),
        *(working(pods[1], ref) for ref in reversed(order)),
    )
    assert {type(error) for error in failures} <= {Fenced}
    assert await stored(lab) == accepted
    lasting = {ref.run_id for ref in order[1::2]}
    assert len([step for step in accepted if step[0] in lasting]) == 6 * len(lasting)
    await check_counts(lab)
