"""Steps and deferreds: what survives an attempt."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from baton import AlreadyExists, Baton, Context, DeferredFailed, NotFound, Retry
from baton.testing import FakeSidecar, eventually
from baton.v1 import runs_pb2 as pb


async def test_stored_steps_are_not_run_again(app: Baton, sidecar: FakeSidecar):
    """G5: a later attempt gets its checkpoints and skips what was done, whatever the kind."""
    done: list[str] = []

    async def charge(amount: int, *, currency: str) -> dict[str, object]:
        done.append("charge")
        return {"amount": amount, "currency": currency, "pair": (1, 2)}

    def pack() -> bytes:
        done.append("pack")
        return b"\x00\xffbox"

    @app.schedule("order")
    async def order(context: Context) -> None:
        paid = await context.step("charge", charge, 7, currency="EUR")
        box = await context.step("pack", pack)
        note = await context.step("note", dict[str, str]().get, "missing")
        assert paid == {"amount": 7, "currency": "EUR", "pair": [1, 2]}
        assert box == b"\x00\xffbox"
        assert note is None
        if context.attempt == 1:
            raise Retry("crashed")

    await sidecar.lead()
    run = await sidecar.execute("order", attempts=2)
    assert run.outcome == pb.OUTCOME_SUCCEEDED
    assert run.attempt == 2
    assert done == ["charge", "pack"]


async def test_steps_survive_a_change_of_leader(app: Baton, sidecar: FakeSidecar):
    """G5: a run cut off by the end of its term goes on in the next one."""
    done: list[str] = []
    waiting = asyncio.Event()

    @app.schedule("order")
    async def order(context: Context) -> str:
        await context.step("charge", lambda: done.append("charge"))
        if context.attempt == 1:
            waiting.set()
            await asyncio.sleep(60)
        return f"attempt {context.attempt}"

    first = await sidecar.lead()
    task = asyncio.create_task(sidecar.execute("order"))
    await waiting.wait()
    await sidecar.lose()
    run = await task
    assert run.state == pb.RUN_STATE_WAITING
    assert await sidecar.lead() > first
    run = await sidecar.resume(run.run_id)
    assert run.result == b'"attempt 2"'
    assert done == ["charge"]


async def test_steps_may_be_nested_and_concurrent(app: Baton, sidecar: FakeSidecar):
    """Distinct names suffice; a plain handler may wait for steps too."""

    @app.schedule("order")
    async def order(context: Context) -> list[int]:
        async def outer() -> int:
            return 1 + await context.step("inner", lambda: 1)

        both = context.step("outer", outer), context.step("other", lambda: 5)
        return [*await asyncio.gather(*both)]

    @app.schedule("plain")
    def plain(context: Context) -> int:
        return context.wait(context.step("one", lambda: 41)) + 1

    await sidecar.lead()
    assert (await sidecar.execute("order")).result == b"[2,5]"
    assert (await sidecar.execute("plain")).result == b"42"


async def test_a_step_name_used_twice_fails_for_good(app: Baton, sidecar: FakeSidecar):
    """The second step would silently get the first one's result: a mistake, so no retry."""

    @app.schedule("order")
    async def order(context: Context) -> None:
        await context.step("charge", lambda: 1)
        await context.step("charge", lambda: 2)

    await sidecar.lead()
    run = await sidecar.execute("order", attempts=3)
    assert (run.outcome, run.attempt) == (pb.OUTCOME_FAILED, 1)
    assert "'charge' was used twice" in run.error


async def test_a_failed_step_is_not_stored(app: Baton, sidecar: FakeSidecar):
    """Only what a step returned is remembered; after an error it runs again."""
    tries: list[int] = []

    @app.schedule("order")
    async def order(context: Context) -> int:
        def charge() -> int:
            tries.append(1)
            if len(tries) == 1:
                raise OSError("declined")
            return len(tries)

        return await context.step("charge", charge)

    await sidecar.lead()
    assert (await sidecar.execute("order", attempts=2)).result == b"2"


async def test_a_deferred_is_awaited_over_attempts(app: Baton, sidecar: FakeSidecar):
    """The same name of one run is the same token; the first completion stands."""
    tokens: list[str] = []

    @app.schedule("approval")
    async def approval(context: Context) -> object:
        deferred = await context.create_deferred("boss")
        tokens.append(deferred.token)
        if context.attempt == 1:
            raise Retry("restarted")
        return await deferred

    await sidecar.lead()
    task = asyncio.create_task(sidecar.execute("approval", attempts=2))
    await eventually(lambda: len(tokens) == 2)
    assert tokens[0] == tokens[1]
    await app.deferreds.complete(tokens[0], {"approved": True})
    await app.deferreds.complete(tokens[0], {"approved": True})
    with pytest.raises(AlreadyExists):
        await app.deferreds.complete(tokens[0], {"approved": False})
    assert (await task).result == b'{"approved":true}'


async def test_deferreds_fail_expire_and_are_unknown(app: Baton, sidecar: FakeSidecar):
    """Awaiting one that was failed or has expired raises; raw values are bytes."""
    failed = await app.deferreds.create("failed")
    await app.deferreds.fail(failed.token, "refused")
    with pytest.raises(DeferredFailed, match="refused"):
        await failed
    expiring = await app.deferreds.create("expiring", ttl=timedelta(seconds=0.1))
    with pytest.raises(DeferredFailed, match="expired"):
        await expiring
    raw = await app.deferreds.create("raw")
    await app.deferreds.complete(raw.token, b"\xff")
    assert await raw.raw() == b"\xff"
    with pytest.raises(DeferredFailed, match="not JSON"):
        await raw
    with pytest.raises(NotFound):
        await app.deferreds.get("no such token")
