"""The lease behind the ids: asked for once, renewed in time, never used beyond its end."""

import asyncio
from dataclasses import dataclass, field

import pytest

from sidecar.ids import LEASE_SECONDS, RENEW_AFTER_SECONDS, RETRY_SECONDS, Ids
from sidecar.model.errors import LimitExceeded, StoreUnavailable
from sidecar.model.snowflake import Lease, Window

HOUR_MS = 3_600_000


@dataclass
class Machines:
    """Leases by a clock that the test moves; `open` holds answers back."""

    seconds: float = 1000.0
    behind: float = 0.0  # how far the database's clock was set back
    asked: list[str] = field(default_factory=list)
    error: Exception | None = None
    renewal_error: Exception | None = None
    lost: bool = False
    open: asyncio.Event = field(default_factory=asyncio.Event)
    released: list[tuple[int, int]] = field(default_factory=list)

    def clock(self) -> float:
        return self.seconds

    async def acquire(self) -> Lease:
        self.asked.append("acquire")
        await self.open.wait()
        if self.error:
            raise self.error
        now = int((self.seconds - self.behind) * 1000)
        number = self.asked.count("acquire")
        return Lease(Window(number, now, now + HOUR_MS), now)

    async def renew(self, number: int, used_ms: int) -> Lease | None:
        self.asked.append("renew")
        await self.open.wait()
        if self.renewal_error:
            raise self.renewal_error
        now = int((self.seconds - self.behind) * 1000)
        window = Window(number, used_ms, max(now, used_ms) + HOUR_MS)
        return None if self.lost else Lease(window, now)

    async def release(self, number: int, used_ms: int) -> None:
        self.released.append((number, used_ms))


async def _settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.fixture
def machines() -> Machines:
    machines = Machines()
    machines.open.set()
    return machines


@pytest.fixture
def ids(machines: Machines) -> Ids:
    return Ids(machines, machines.clock)


async def test_many_callers_share_one_lease_and_survive_one_that_hangs_up(
    machines: Machines, ids: Ids
) -> None:
    machines.open.clear()
    callers = [asyncio.create_task(ids.generate(2)) for _ in range(20)]
    await _settled()
    callers[0].cancel()
    await _settled()
    machines.open.set()
    answers = await asyncio.gather(*callers[1:])
    assert machines.asked == ["acquire"]
    assert len({each for answer in answers for each in answer}) == 38


async def test_a_lease_is_renewed_in_the_background(machines: Machines, ids: Ids) -> None:
    await ids.generate(1)
    machines.seconds += RENEW_AFTER_SECONDS + 1
    machines.open.clear()  # a slow answer delays nobody
    assert await ids.generate(1)
    await _settled()
    assert machines.asked == ["acquire", "renew"]
    machines.open.set()
    await _settled()
    machines.seconds += LEASE_SECONDS - 1
    assert await ids.generate(1)
    await _settled()
    assert machines.asked == ["acquire", "renew", "renew"]
    await ids.close()


async def test_a_renewal_that_failed_is_not_tried_again_with_every_id(
    machines: Machines, ids: Ids
) -> None:
    """Postgres is away: ids go on, one try in a second."""
    await ids.generate(1)
    machines.seconds += RENEW_AFTER_SECONDS
    machines.renewal_error = StoreUnavailable("away")
    for _ in range(20):
        await ids.generate(1)
        await _settled()
    assert machines.asked.count("renew") == 1
    machines.seconds += RETRY_SECONDS
    machines.renewal_error = None
    for _ in range(20):
        await ids.generate(1)
        await _settled()
    assert machines.asked.count("renew") == 2


async def test_no_id_is_given_out_after_the_end_of_the_lease(machines: Machines, ids: Ids) -> None:
    """It counts from when it was asked for, however late the answer came."""
    machines.renewal_error = StoreUnavailable("away")
    machines.open.clear()
    caller = asyncio.create_task(ids.generate(1))
    await _settled()
    machines.seconds += LEASE_SECONDS - 1
    machines.open.set()
    assert await caller
    machines.seconds += 2
    with pytest.raises(StoreUnavailable):
        await ids.generate(1)


@pytest.mark.parametrize("behind", [0.0, 2 * LEASE_SECONDS])
async def test_a_number_that_was_lost_is_replaced_and_ids_still_rise(
    machines: Machines, ids: Ids, behind: float
) -> None:
    before = await ids.generate(10_000)
    machines.seconds += LEASE_SECONDS + 1
    machines.lost, machines.behind = True, behind
    after = await ids.generate(1)
    assert ids.decompose(after[0]).machine == 2
    assert after[0] > before[-1]


async def test_an_answer_that_is_always_too_late_is_an_error(machines: Machines, ids: Ids) -> None:
    def late() -> float:
        machines.seconds += LEASE_SECONDS
        return machines.seconds

    with pytest.raises(StoreUnavailable, match="in time"):
        await Ids(machines, late).generate(1)


async def test_all_numbers_taken_reaches_the_caller(machines: Machines, ids: Ids) -> None:
    """G11"""
    machines.error = LimitExceeded("all 1,024 machine numbers")
    with pytest.raises(LimitExceeded):
        await ids.generate(1)


async def test_closing_gives_back_all_time_that_was_not_used(machines: Machines, ids: Ids) -> None:
    made = await ids.generate(3)
    await ids.close()
    await ids.close()
    assert machines.released == [(1, (made[-1] >> 22) + 1)]


async def test_closing_unused_gives_back_nothing(machines: Machines, ids: Ids) -> None:
    await ids.close()
    assert machines.released == []
