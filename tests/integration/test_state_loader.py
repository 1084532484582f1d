"""The state that a run starts from, on a real Postgres."""

import pytest

from sidecar import metrics
from sidecar.adapters.postgres.state import PostgresState
from sidecar.model.definitions import State
from sidecar.model.errors import StateLoadFailed
from sidecar.model.run import RunRef
from sidecar.model.state_types import Put
from sidecar.state import LoadedState, StateLoader
from tests.lab.proxy import FaultProxy
from tests.state_lab import StateLab, state_lab

KEY = "singleton-state:coordinator"
COUNTER = {"type": "object", "properties": {"n": {"type": "integer", "default": 0}}}


@pytest.fixture
async def lab(database_url: str) -> StateLab:
    return await state_lab(database_url)


async def load(truth: PostgresState, policy: State) -> LoadedState:
    return await StateLoader(truth).load("singleton", "coordinator", policy)


async def write(truth: PostgresState, run: RunRef, value: bytes, state_version: int = 1) -> int:
    record = (await truth.put_fenced(Put(KEY, value), run, state_version)).record
    assert record is not None
    return record.version


def errors(reason: str) -> float:
    found = metrics.REGISTRY.get_sample_value("singleton_state_errors_total", {"reason": reason})
    return found or 0.0


async def test_the_initial_state_comes_first(lab: StateLab) -> None:
    async with lab.pod() as truth:
        loaded = await load(truth, State(initial={"n": 1}))
        assert loaded == LoadedState(b'{"n":1}', 0)


async def test_what_was_written_comes_next(lab: StateLab) -> None:
    run = await lab.live_run()
    async with lab.pod() as truth:
        version = await write(truth, run, b"\xff opaque")
        assert await load(truth, State()) == LoadedState(b"\xff opaque", version)


async def test_a_new_version_starts_from_the_older_one(lab: StateLab) -> None:
    """And an older one, as after a rollback, goes on where it was."""
    run = await lab.live_run()
    async with lab.pod() as truth:
        old = await write(truth, run, b'{"n":1,"gone":2}')
        second = State(version=2, schema=COUNTER)
        assert await load(truth, second) == LoadedState(b'{"n":1}', 0)
        new = await write(truth, run, b'{"n":5}', 2)
        assert await load(truth, second) == LoadedState(b'{"n":5}', new)
        assert await load(truth, State(version=1)) == LoadedState(b'{"n":1,"gone":2}', old)


async def test_what_cannot_be_decoded_is_set_aside(lab: StateLab) -> None:
    run = await lab.live_run()
    async with lab.pod() as truth:
        version = await write(truth, run, b"\xff not JSON")
        before = errors("SchemaDecodeFailed")
        policy = State(initial={"n": 7}, schema=COUNTER)
        assert await load(truth, policy) == LoadedState(b'{"n":7}', version)
        assert errors("SchemaDecodeFailed") == before + 1
        kept = await lab.sql("SELECT key, state_version, version, value FROM baton.state_set_aside")
        assert kept == [(KEY, 1, version, b"\xff not JSON")]


async def test_a_load_that_fails_is_never_the_initial_state(lab: StateLab) -> None:
    """G7."""
    run = await lab.live_run()
    with FaultProxy.before(lab.url) as proxy:
        async with lab.pod(url=proxy.url(lab.url), seconds=2.0) as truth:
            await write(truth, run, b"kept")
            proxy.silence()
            with pytest.raises(StateLoadFailed) as caught:
                await load(truth, State(initial={"n": 7}))
            assert caught.value.retryable
            proxy.heal()
            assert (await load(truth, State(initial={"n": 7}))).value == b"kept"


async def test_deleted_state_begins_anew(lab: StateLab) -> None:
    run = await lab.live_run()
    async with lab.pod() as truth:
        await write(truth, run, b"one", 1)
        await write(truth, run, b"two", 2)
        await lab.sql("UPDATE baton.state SET value = NULL WHERE state_version = 2")
        assert await load(truth, State(version=2)) == LoadedState(b"{}", 0)
