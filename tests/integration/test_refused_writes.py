"""What an app writes on behalf of a run: each refusal is told, so that the election can look."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial

import pytest

from sidecar.adapters.clock import boottime
from sidecar.adapters.postgres.deferreds import PostgresDeferreds
from sidecar.adapters.postgres.run_records import PostgresRunRecords
from sidecar.adapters.postgres.state import PostgresState
from sidecar.deferreds import Deferreds
from sidecar.execution.authority import Authorities, Authority
from sidecar.execution.runs import Runs
from sidecar.model.errors import Fenced
from sidecar.model.run import RunRef
from sidecar.model.state_types import Delete, Put
from sidecar.model.term import Term
from sidecar.state import NoCopies, StateStore
from tests.integration.runs_lab import Lab, laboratory
from tests.state_lab import NoHints, nobody_known


@dataclass
class Steps:
    """What the API's services call, on one database."""

    lab: Lab
    authorities: Authorities = field(default_factory=Authorities)
    verified: list[int] = field(default_factory=list)  # the tokens that were doubted

    def issue(self, term: Term) -> None:
        """The election has issued an authority for this term."""
        doubted = partial(self.verified.append, term.epoch)
        self.authorities.add(Authority(term, lambda: 3.0, lambda _: None, doubted))

    def __post_init__(self) -> None:
        lab, told = self.lab, self.authorities
        truth = PostgresState(lab.database, lab.who, heartbeat_seconds=30.0)
        self.runs = Runs(PostgresRunRecords(lab.database, lab.who), lab.hints, authorities=told)
        self.deferreds = Deferreds(
            PostgresDeferreds(lab.database, lab.who), lab.hints, authorities=told
        )
        self.state = StateStore(
            truth, NoCopies(), NoHints(), nobody_known, monotonic=boottime, authorities=told
        )


@pytest.fixture
async def steps(database_url: str) -> AsyncIterator[Steps]:
    async with laboratory(database_url) as lab:
        yield Steps(lab)


WRITES: dict[str, Callable[[Steps, RunRef], Awaitable[object]]] = {
    "checkpoint": lambda steps, run: steps.runs.checkpoint(run, "charge", b"1"),
    "heartbeat": lambda steps, run: steps.runs.heartbeat(run, 0.5, None),
    "deferred": lambda steps, run: steps.deferreds.create("approval", run=run),
    "put": lambda steps, run: steps.state.put(Put("key", b"1", run=run)),
    "delete": lambda steps, run: steps.state.delete(Delete("key", run=run)),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
async def test_a_refused_write_is_told_and_an_accepted_one_is_not(
    steps: Steps, write: Callable[[Steps, RunRef], Awaitable[object]]
) -> None:
    """G3."""
    term = await steps.lab.term()
    steps.issue(term)
    run = (await steps.lab.runs.start_singleton(term, "keeper")).ref
    await write(steps, run)
    assert steps.verified == []
    await steps.lab.term()
    with pytest.raises(Fenced):
        await write(steps, run)
    assert steps.verified == [run.epoch]
