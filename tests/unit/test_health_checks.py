"""Checks run beside the requests; the probes answer from what is known."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from time import monotonic
from typing import Any

import pytest

from sidecar.health import Check, Checks, DeadMansSwitch, Health
from sidecar.model.health import VitalsReading
from sidecar.model.term import Term
from tests.lab.execution import NoPeers


class Nothing:
    """A store for a runner that leads nothing."""

    async def read(self, groups: object, limit: int = 0) -> VitalsReading:
        raise AssertionError("nothing is led here")

    async def beat(self, term: Term, older_than_seconds: float) -> bool:
        raise AssertionError("nothing is led here")


def _health(checks: Checks, *readiness: str) -> Health:
    switch = DeadMansSwitch(
        Nothing(),
        heartbeat_seconds=30,
        stale_after_seconds=60,
        app_answers=lambda: True,
        peers=NoPeers(),
        clock=monotonic,
    )
    health = Health(
        checks, switch, readiness=readiness, about=lambda: {"cluster": "orders"}, clock=monotonic
    )
    health.servers_listen()
    return health


@asynccontextmanager
async def _running(checks: Checks) -> AsyncIterator[None]:
    task = asyncio.create_task(checks.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - any condition will do
            await asyncio.sleep(0.005)


def _quick(name: str, probe: Callable[[], Awaitable[Any]], failures: int = 1) -> Check:
    return Check(name, probe, interval_seconds=0.01, limit_seconds=0.05, failures=failures)


async def test_a_check_that_hangs_is_down_and_delays_no_other() -> None:
    """G10: an unhealthy dependency shows, whatever hangs."""
    started = 0

    async def stubborn() -> None:
        nonlocal started
        started += 1
        for _ in range(10):  # ignores its cancellation for a while, as some drivers do
            try:
                await asyncio.sleep(0.1)
            except asyncio.CancelledError:
                continue

    async def fine() -> None: ...

    checks = Checks([_quick("postgres", stubborn), _quick("redis", fine)], monotonic)
    async with _running(checks):
        await _until(lambda: checks.results["redis"].status == "up")
        await _until(lambda: checks.results["postgres"].status == "down")
        assert checks.results["postgres"].detail == "no answer within 0.05 s"
        await asyncio.sleep(0.1)
        assert started == 1


async def test_one_lost_answer_is_no_outage_but_several_are() -> None:
    """G10: never red without cause."""
    answers = iter([None, OSError("lost"), None, OSError("gone"), OSError("gone"), OSError("gone")])
    seen: list[str] = []

    async def flaky() -> None:
        seen.append(checks.results["app"].status)
        error = next(answers, OSError("gone"))
        if error:
            raise error

    checks = Checks([_quick("app", flaky, failures=2)], monotonic)
    async with _running(checks):
        await _until(lambda: len(seen) >= 7)
    assert seen[:7] == ["unknown", "up", "up", "up", "up", "down", "down"]


async def test_a_latency_measured_elsewhere_is_kept() -> None:
    async def watched() -> float:
        return 0.25

    checks = Checks([_quick("app", watched)], monotonic)
    async with _running(checks):
        await _until(lambda: checks.results["app"].status == "up")
    assert checks.results["app"].latency_seconds == 0.25


async def test_secrets_and_control_characters_stay_out_of_details() -> None:
    """G12"""

    async def leaky() -> None:
        raise OSError("no route to redis://:hunter22@cache\n\x1b[31m")

    checks = Checks([_quick("redis", leaky)], monotonic)
    async with _running(checks):
        await _until(lambda: checks.results["redis"].status == "down")
    assert checks.results["redis"].detail == "no route to redis://:***@cache\\n\\x1b[31m"


async def test_readiness_selects_what_fails_the_probe() -> None:
    async def away() -> None:
        raise OSError("refused")

    async def fine() -> None: ...

    checks = Checks([_quick("app", fine), _quick("postgres", away)], monotonic)
    async with _running(checks):
        await _until(lambda: checks.results["app"].status == "up")
        await _until(lambda: checks.results["postgres"].status == "down")
    lenient, strict = _health(checks, "app"), _health(checks, "app", "postgres")
    assert lenient.ready().good
    assert lenient.report()["status"] == "degraded"
    assert strict.ready().reasons == ("postgres: refused",)
    assert strict.report()["status"] == "unready"
    assert strict.report()["dependencies"]["postgres"]["status"] == "down"
    assert strict.report()["cluster"] == "orders"


def test_what_was_never_checked_is_not_ready() -> None:
    async def never() -> None: ...

    health = _health(Checks([Check("app", never)], monotonic), "app")
    assert health.ready().reasons == ("app: not checked yet",)
    assert health.live().good


def test_starting_draining_and_blocked() -> None:
    health = _health(Checks([], monotonic), "app")
    assert health.started().good
    assert health.ready().good
    health.block("schema", "the schema is at version 1: run 'baton migrate'")
    assert health.ready().reasons == ("the schema is at version 1: run 'baton migrate'",)
    assert health.started().good
    health.unblock("schema")
    health.drain()
    assert health.ready().reasons == ("draining: leadership is being handed over",)


@pytest.mark.parametrize("probe", ["started", "ready"])
def test_nothing_is_said_before_the_servers_listen(probe: str) -> None:
    checks = Checks([], monotonic)
    health = _health(checks)
    health.block("start", "starting")
    assert getattr(health, probe)().reasons == ("starting",)
