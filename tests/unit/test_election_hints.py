"""The hints of the election: each becomes an event, and a malformed one is ignored."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from sidecar.election.elector import Elector
from sidecar.election.hints import follow_releases, follow_resign_requests
from sidecar.hints import Hints, Subscription
from sidecar.model.election_types import Ping, Poll, Result, Statement
from sidecar.model.term import LossReason, Term
from tests.unit.election_driver import EPOCH, Driver, G

Follow = Callable[[Hints, Elector], Coroutine[Any, Any, None]]


class _Subscription:
    """Delivers its hints once, then nothing more."""

    def __init__(self, details: list[str]) -> None:
        self._details = details
        self._delivered = False
        self.drained = asyncio.Event()

    async def wait(self, timeout: float | None = None) -> bool:
        if self._delivered:
            self.drained.set()
            await asyncio.Event().wait()
        self._delivered = True
        return True

    def details(self) -> list[str]:
        return self._details


class _Hints:
    def __init__(self, topic: str, subscription: _Subscription) -> None:
        self._subscriptions = {topic: subscription}

    def notify(self, topic: str, detail: str = "") -> None: ...

    def subscribe(self, topic: str) -> Subscription:
        return self._subscriptions[topic]

    def unsubscribe(self, topic: str, subscription: Any) -> None: ...


class _NoSession:
    async def open(self) -> None: ...
    async def execute(self, statement: Statement) -> Result:
        raise AssertionError(statement)

    def hang_up(self) -> None: ...
    async def close(self) -> None: ...


class _NoApp:
    async def become_leader(self, term: Term, trusted_until: float, timeout: float) -> None: ...
    async def lose_leadership(self, term: Term, reason: LossReason, timeout: float) -> None: ...


async def _follow(follow: Follow, driver: Driver, topic: str, *details: str) -> None:
    """Run the loop until it has handled all hints."""
    subscription = _Subscription([*details])
    elector = Elector(
        driver.election, _NoSession(), _NoApp(), lambda: driver.now, takeover_sla=10.0
    )
    following = asyncio.create_task(follow(_Hints(topic, subscription), elector))
    async with asyncio.timeout(30):
        await subscription.drained.wait()
    following.cancel()
    with pytest.raises(asyncio.CancelledError):
        await following


async def test_a_released_group_is_tried_before_the_next_poll() -> None:
    driver = Driver()
    driver.polled()
    assert driver.ask() is None
    await _follow(follow_releases, driver, "release", "not a group", str(G), "999")
    assert driver.ask() == Poll((G,), (G,))


async def test_a_resign_request_causes_a_ping_before_the_next_one_is_due() -> None:
    driver = Driver()
    driver.lead()
    assert driver.ask() is None
    await _follow(follow_resign_requests, driver, "resign", "default")
    assert driver.ask() == Ping((G,), (EPOCH,))
