"""From a wedged schedule in a real Postgres to the answer of a real probe, and back."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from functools import partial

import pytest

from sidecar import metrics
from sidecar.adapters.clock import boottime
from sidecar.adapters.http import probes
from sidecar.adapters.postgres.database import Database
from sidecar.adapters.postgres.heartbeats import Heartbeats
from sidecar.adapters.postgres.membership import Membership
from sidecar.adapters.postgres.migrate import migrate
from sidecar.health import Check, Checks, DeadMansSwitch, Health
from sidecar.model.definitions import Singleton
from sidecar.model.errors import AppUnavailable
from sidecar.model.term import Term
from tests.lab.execution import NoPeers, an_authority


@dataclass
class Runner:
    """A leader's health, served over HTTP."""

    health: Health = field(init=False)
    port: int = 0
    app_answers: bool = True

    async def get(self, path: str) -> tuple[int, str]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(f"GET {path} HTTP/1.0\r\n\r\n".encode())
        answer = (await reader.read()).decode()
        writer.close()
        return int(answer.split()[1]), answer.partition("\r\n\r\n")[2]

    async def until(self, status: int, text: str, seconds: float = 60.0) -> None:
        async with asyncio.timeout(seconds):
            while True:
                answer = await self.get("/readyz")
                if answer[0] == status and text in answer[1]:
                    return
                await asyncio.sleep(0.05)


@pytest.fixture
async def runner(database_url: str) -> AsyncIterator[Runner]:
    led = Runner()
    await migrate(database_url, "baton")
    database = Database(lambda: database_url, schema="baton", size=2, statement_seconds=3.0)
    membership = Membership(database, runner_id="r1", host="h", version="0")
    identity = await membership.join("orders", "", ["default"])
    store = Heartbeats(database, lambda: identity, [Singleton(name="coordinator")])

    async def app() -> None:
        if not led.app_answers:
            raise AppUnavailable("no answer")

    switch = DeadMansSwitch(
        store,
        heartbeat_seconds=0.4,
        stale_after_seconds=1.0,
        app_answers=lambda: led.app_answers,
        peers=NoPeers(),
        clock=boottime,
    )
    checks = Checks(
        [
            Check("app", app, interval_seconds=0.1, failures=1),
            Check("postgres", partial(database.fetch, "health/select_one"), interval_seconds=0.1),
        ],
        boottime,
    )
    health = Health(
        checks,
        switch,
        readiness=("singletons",),
        about=lambda: {"leadership": {"default": {"is_leader": True, "epoch": 0}}},
        clock=boottime,
    )
    led.health = health
    port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    term = Term("default", identity.groups["default"], 0)
    authority = an_authority(term)
    served = probes.serve("127.0.0.1:0", health, metrics.REGISTRY, listening=port.set_result)
    tasks = [asyncio.create_task(each) for each in (served, health.run(), switch.watch(authority))]
    led.port = await port
    yield led
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    await database.close()


async def test_a_probe_turns_red_with_its_reason_and_green_again(runner: Runner) -> None:
    """G10"""
    await runner.until(503, "starting")
    assert (await runner.get("/startupz"))[0] == 503
    runner.health.servers_listen()
    assert (await runner.get("/startupz"))[0] == 200
    await runner.until(200, "ok")
    runner.app_answers = False
    await runner.until(503, "singleton coordinator: no heartbeat")
    status, body = await runner.get("/health")
    report = json.loads(body)
    assert (status, report["status"]) == (200, "unready")
    assert report["dependencies"]["app"]["detail"] == "no answer"
    assert report["dependencies"]["postgres"]["status"] == "up"
    assert report["leadership"]["default"]["is_leader"] is True
    (singleton,) = report["singletons"]
    assert singleton["stale"].startswith("no heartbeat for ")
    assert singleton["last_run_at"] == "never"
    runner.app_answers = True
    await runner.until(200, "ok")
    runner.health.drain()
    await runner.until(503, "draining")
    assert (await runner.get("/livez"))[0] == 200
