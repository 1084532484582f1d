"""Is the app alive? The rules of health, on a link that does as it is told (G9)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from sidecar.election.app_watch import AppWatch
from sidecar.model.errors import AppNotServing, AppUnavailable, LeaderHandoffFailed
from sidecar.model.term import LossReason, Term
from sidecar.model.unacknowledged import UnacknowledgedLosses

INTERVAL = 0.01


class FakeLink:
    """Connected or not, healthy or not; notes what it was told."""

    def __init__(self) -> None:
        self.connected = asyncio.Event()
        self.disconnected = asyncio.Event()
        self.healthy = True
        self.frozen = False
        self.answers_losing = True
        self.checks = 0
        self.condition = asyncio.Condition()
        self.lost: list[Term] = []
        self.reasons: list[LossReason] = []

    def connect(self) -> None:
        self.disconnected.clear()
        self.connected.set()

    def disconnect(self) -> None:
        self.connected.clear()
        self.disconnected.set()

    async def wait_connected(self) -> None:
        await self.connected.wait()

    async def wait_disconnected(self) -> None:
        await self.disconnected.wait()

    async def checked(self, times: int) -> None:
        async with self.condition:
            await self.condition.wait_for(lambda: self.checks >= times)

    async def check(self, timeout: float) -> None:
        self.checks += 1
        async with self.condition:
            self.condition.notify_all()
        if self.frozen:
            raise AppUnavailable("DEADLINE_EXCEEDED")
        if not self.healthy:
            raise AppNotServing("NOT_SERVING")

    async def lose_leadership(self, term: Term, reason: LossReason, timeout: float) -> None:
        if not self.answers_losing:
            raise LeaderHandoffFailed("INTERNAL")
        self.lost.append(term)
        self.reasons.append(reason)


@pytest.fixture
def link() -> FakeLink:
    return FakeLink()


@pytest.fixture
def losses() -> UnacknowledgedLosses:
    return UnacknowledgedLosses()


@pytest.fixture
async def watch(link: FakeLink, losses: UnacknowledgedLosses) -> AsyncIterator[AppWatch]:
    loop = asyncio.get_running_loop()
    watch = AppWatch(
        link,
        ["default", "other"],
        losses,
        loop.time,
        interval=INTERVAL,
        failures_max=3,
        callback_timeout=1,
    )
    task = asyncio.create_task(watch.run())
    yield watch
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def _changes(watch: AppWatch) -> asyncio.Queue[bool]:
    queue: asyncio.Queue[bool] = asyncio.Queue()
    watch.on_change.append(queue.put_nowait)
    return queue


async def test_an_app_is_unhealthy_until_it_answered(watch: AppWatch, link: FakeLink) -> None:
    changes = _changes(watch)
    assert not watch.status.healthy
    link.connect()
    assert await changes.get()
    assert watch.status.healthy


async def test_every_term_it_may_believe_in_is_ended_first(watch: AppWatch, link: FakeLink) -> None:
    """G1: an earlier life of this sidecar may have made it leader."""
    changes = _changes(watch)
    link.connect()
    await changes.get()
    assert [(term.group, term.epoch) for term in link.lost] == [("default", 0), ("other", 0)]
    assert set(link.reasons) == {LossReason.SHUTDOWN}  # as callback.proto says of epoch 0


async def test_an_app_that_cannot_be_told_does_not_count_as_healthy(
    watch: AppWatch, link: FakeLink
) -> None:
    """G1: it may still believe that it leads."""
    link.answers_losing = False
    link.connect()
    await link.checked(5)
    assert not watch.status.healthy
    assert "INTERNAL" in watch.status.problem


async def test_one_failed_check_is_forgiven_three_are_not(watch: AppWatch, link: FakeLink) -> None:
    """G9."""
    changes = _changes(watch)
    link.connect()
    await changes.get()
    link.healthy = False
    before = link.checks
    assert await changes.get() is False
    assert link.checks >= before + 3
    link.healthy = True
    assert await changes.get()


async def test_a_broken_connection_is_unhealthy_at_once(watch: AppWatch, link: FakeLink) -> None:
    """G9: what answers next may be another process; it is told to lose everything again."""
    changes = _changes(watch)
    link.connect()
    await changes.get()
    link.disconnect()
    assert await changes.get() is False
    assert watch.status.problem == "connection lost"
    link.connect()
    assert await changes.get()
    assert len(link.lost) == 4


TERM = Term("default", 7, 1000)


async def test_a_loss_is_repeated_until_it_is_acknowledged(
    watch: AppWatch, link: FakeLink, losses: UnacknowledgedLosses
) -> None:
    """G1: an app that slept through OnLoseLeadership hears of it on the same connection."""
    changes = _changes(watch)
    link.connect()
    await changes.get()
    link.answers_losing = False
    losses.add(TERM, LossReason.LEASE_LOST)
    assert await changes.get() is False
    await link.checked(link.checks + 3)
    assert not watch.status.healthy
    link.answers_losing = True
    assert await changes.get()
    assert link.lost[2:] == [TERM]
    assert link.reasons[2:] == [LossReason.LEASE_LOST]
    assert not losses
    await link.checked(link.checks + 2)
    assert link.lost[2:] == [TERM]


async def test_an_app_that_is_not_serving_can_acknowledge_a_loss(
    watch: AppWatch, link: FakeLink, losses: UnacknowledgedLosses
) -> None:
    """G1: it answers, so it is told; it becomes no healthier by that."""
    changes = _changes(watch)
    link.connect()
    await changes.get()
    link.healthy = False
    losses.add(TERM, LossReason.APP_UNHEALTHY)
    assert await changes.get() is False
    await link.checked(link.checks + 3)
    assert link.lost[2:] == [TERM]
    assert not watch.status.healthy


async def test_a_silent_app_is_not_called_again(
    watch: AppWatch, link: FakeLink, losses: UnacknowledgedLosses
) -> None:
    """G1: the loss waits for the first answered health check."""
    changes = _changes(watch)
    link.connect()
    await changes.get()
    link.frozen = True
    losses.add(TERM, LossReason.APP_UNHEALTHY)
    await link.checked(link.checks + 4)
    assert link.lost[2:] == []
    link.frozen = False
    assert await changes.get() is False
    assert await changes.get()
    assert link.lost[2:] == [TERM]


def test_the_newest_loss_of_a_group_is_enough() -> None:
    """G1: it ends every earlier term of the group; an older acknowledgement does not end it."""
    losses = UnacknowledgedLosses()
    newer, other = Term("default", 7, 1001), Term("other", 8, 5)
    losses.add(newer, LossReason.FENCED)
    losses.add(TERM, LossReason.LEASE_LOST)
    losses.add(other, LossReason.LEASE_LOST)
    assert losses.pending() == [(other, LossReason.LEASE_LOST), (newer, LossReason.FENCED)]
    losses.acknowledge(TERM)
    assert len(losses.pending()) == 2
    losses.acknowledge(newer)
    losses.acknowledge(other)
    assert not losses
