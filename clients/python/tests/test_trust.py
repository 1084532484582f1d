"""The trust time: until when an app may act as leader, and what follows its end."""

from __future__ import annotations

import asyncio

from baton import Baton, Context
from baton._clock import boottime
from baton.testing import FakeSidecar, eventually
from baton.v1 import callback_pb2 as pb
from baton.v1.runs_pb2 import RUN_KIND_SINGLETON, RUN_STATE_WAITING


async def test_trust_ends_without_renewal(app: Baton, sidecar: FakeSidecar):
    """G1: is_leader is never true past the trust time; what runs is cancelled, no more begins."""
    begun: list[int] = []
    reasons: list[str] = []
    stopped = asyncio.Event()

    @app.singleton("coordinator")
    async def coordinator(context: Context) -> None:
        begun.append(context.run_id)
        try:
            await asyncio.sleep(60)
        finally:
            reasons.append(context.cancel_reason)
            stopped.set()

    sidecar.freeze()
    await sidecar.lead(trusted_seconds=3.0)
    told_at = boottime()
    task = asyncio.create_task(sidecar.execute("coordinator", kind=RUN_KIND_SINGLETON))
    asked_at = boottime()
    while app.is_leader():
        assert asked_at < told_at + 3.0
        assert not stopped.is_set()
        await asyncio.sleep(0.01)
        asked_at = boottime()
    run = await asyncio.wait_for(task, 20)
    assert stopped.is_set()
    assert reasons == ["TRUST_EXPIRED"]
    assert run.state == RUN_STATE_WAITING
    refused = await sidecar.execute("coordinator", kind=RUN_KIND_SINGLETON)
    assert refused.state == RUN_STATE_WAITING
    assert "UNAVAILABLE" in refused.error
    assert begun == [run.run_id]


async def test_an_expired_term_ends_by_itself_and_once(app: Baton, sidecar: FakeSidecar):
    """G1: the hook runs when trust has run out, and not again when the loss is told at last."""
    told: list[tuple[str, int]] = []
    app.on_lose_leadership()(lambda context, reason: told.append((reason, context.epoch)))
    sidecar.freeze()
    epoch = await sidecar.lead(trusted_seconds=0.5)
    await eventually(lambda: told)
    assert not app.is_leader()
    await sidecar.lose(reason=pb.LOSS_REASON_FENCED)
    assert told == [("LEASE_LOST", epoch)]
    sidecar.thaw()
    assert await sidecar.lead() > epoch
    assert app.is_leader()


async def test_an_expired_term_is_given_back(app: Baton, sidecar: FakeSidecar):
    """A sidecar that leads on would wait for this app for ever: it is asked to hand over."""
    sidecar.freeze()
    epoch = await sidecar.lead(trusted_seconds=0.3)
    await eventually(lambda: app._leading and app._leading.terms.last_lost("default") == epoch)
    assert sidecar._terms.groups["default"].leads
    sidecar.thaw()
    await eventually(lambda: not sidecar._terms.groups["default"].leads, 20)


async def test_trust_is_renewed_by_the_watch(app: Baton, sidecar: FakeSidecar):
    """G1: while the sidecar renews, the app leads beyond the trust it was first given."""
    await sidecar.lead(trusted_seconds=5.0)
    for _ in range(60):
        await asyncio.sleep(0.1)
        assert app.is_leader()


async def test_the_watch_survives_a_sidecar_that_comes_late(app: Baton):
    """The client reconnects by itself: an API that was away renews trust once it is back."""
    async with FakeSidecar() as fake:
        address = fake.address
    async with app.serving("127.0.0.1:0", address) as served:
        late = FakeSidecar(address=address)
        late.call_app_at(served)
        await late.lead(trusted_seconds=4.0)
        await asyncio.sleep(1.2)
        async with late:
            await asyncio.sleep(4.5)
            assert app.is_leader()
