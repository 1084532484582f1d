"""Parts of the jobs API without a database: rules, wake-ups, waits, queue settings and depths."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from sidecar import metrics
from sidecar.jobs.queue_depths import NAMES_MAX, QueueDepths
from sidecar.jobs.queue_sync import QueueSync
from sidecar.jobs.wakeup import HINT_SECONDS, Wakeup
from sidecar.jobs.watches import Watches
from sidecar.model.errors import StoreUnavailable
from sidecar.model.job import JobSpec, OnConflict, Priority, Unique
from sidecar.model.job_queue import QueueSettings
from sidecar.model.job_spec import Submission, with_replacements
from sidecar.model.job_views import Queue


class CountedHints:
    def __init__(self) -> None:
        self.sent: list[str] = []

    def notify(self, topic: str, detail: str = "") -> None:
        self.sent.append(topic)

    def subscribe(self, topic: str) -> Any:
        raise NotImplementedError

    def unsubscribe(self, topic: str, subscription: Any) -> None:
        raise NotImplementedError


async def test_many_submissions_send_few_hints_and_the_last_is_followed_by_one() -> None:
    hints = CountedHints()
    wakeup = Wakeup(hints)
    woken: list[None] = []
    wakeup.on_submit.append(lambda: woken.append(None))
    for _ in range(100):
        wakeup.submitted()
    assert (len(woken), hints.sent) == (100, ["jobs"])
    await asyncio.sleep(10 * HINT_SECONDS)
    assert hints.sent == ["jobs", "jobs"]
    wakeup.submitted()
    assert len(hints.sent) == 3


class Versioned:
    """The live jobs, and how often they were asked for."""

    def __init__(self, **versions: str) -> None:
        self.live = {int(key[1:]): version for key, version in versions.items()}
        self.asked = 0
        self.fails = False

    async def versions(self, job_ids: Sequence[int]) -> Mapping[int, str]:
        self.asked += 1
        if self.fails:
            self.fails = False
            raise StoreUnavailable("away")
        return {job_id: self.live[job_id] for job_id in job_ids if job_id in self.live}


async def test_waits_share_a_poll_and_without_waits_there_is_none() -> None:
    store = Versioned(j1="a", j2="a")
    watches = Watches(store)
    polls = asyncio.create_task(watches.run())
    await asyncio.sleep(0.2)
    assert store.asked == 0
    changed = asyncio.create_task(watches.changed(1, "a", 30))
    ends = [asyncio.create_task(watches.ended(1, 30)) for _ in range(50)]
    assert not await watches.ended(2, 0.3)  # the time is up
    assert 1 <= store.asked <= 10
    store.live[1] = "b"
    store.fails = True
    assert await changed
    assert not any(end.done() for end in ends)
    del store.live[1]
    assert all(await asyncio.gather(*ends))
    asked = store.asked
    await asyncio.sleep(0.2)
    assert store.asked == asked
    polls.cancel()


async def test_queue_settings_are_stored_as_soon_as_postgres_answers() -> None:
    class Store:
        def __init__(self) -> None:
            self.stored: list[Sequence[QueueSettings]] = []
            self.done = asyncio.Event()
            self.failures = 2

        async def configure_queues(self, queues: Sequence[QueueSettings]) -> int:
            if self.failures:
                self.failures -= 1
                raise StoreUnavailable("away")
            self.stored.append(queues)
            self.done.set()
            return len(queues)

    store = Store()
    sync = QueueSync(store, retry_seconds=0.01)
    sync.declare((QueueSettings("old"),))
    sync.declare((QueueSettings("mail"),))
    task = asyncio.create_task(sync.run())
    async with asyncio.timeout(10):
        await store.done.wait()
    assert store.stored == [(QueueSettings("mail"),)]
    task.cancel()


def depth(queue: str, state: str = "ready") -> float | None:
    labels = {"queue": queue, "state": state}
    return metrics.REGISTRY.get_sample_value("baton_job_queue_depth", labels)


def test_queue_names_beyond_the_cap_share_one_series() -> None:
    """G11: callers cannot grow the number of series."""
    depths = QueueDepths(None, lambda: True, configured=["mail"])  # type: ignore[arg-type]
    depths.show([Queue(f"q{n:04}", ready=1) for n in range(NAMES_MAX + 7)] + [Queue("mail", 5)])
    assert (depth("q0000"), depth("other"), depth("mail")) == (1, 7, 5)
    depths.show([Queue("mail", 2, dead=3, oldest_wait_seconds=1.5)])
    assert (depth("q0000"), depth("other"), depth("mail")) == (None, None, 2)
    dead = metrics.REGISTRY.get_sample_value("baton_job_dead", {"queue": "mail"})
    assert dead == 3
    depths.show([])
    assert depth("mail") is None


JOB = JobSpec("mail", payload=b"x", labels={"b": "2", "a": "1"})


@pytest.mark.parametrize(
    "changed",
    [
        {"name": "other"},
        {"payload": b"y"},
        {"queue": "q"},
        {"priority": Priority.LOW},
        {"due_at": datetime(2030, 1, 1, tzinfo=UTC)},
        {"delay_seconds": 1.0},
        {"labels": {"a": "1"}},
        {"unique": Unique()},
        {"unique": Unique(on_conflict=OnConflict.REJECT)},
        {"batch": "b"},
    ],
)
def test_the_digest_is_that_of_the_jobs(changed: dict[str, Any]) -> None:
    digest = Submission([JOB], request_id="r").digest
    assert Submission([replace(JOB, labels={"a": "1", "b": "2"})]).digest == digest
    assert Submission([replace(JOB, **changed)]).digest != digest
    assert Submission([JOB, JOB]).digest != digest
    assert Submission([JOB], closes="b").digest != digest


def test_a_job_is_replaced_by_a_later_one_of_the_same_call() -> None:
    def job(payload: bytes, on_conflict: OnConflict, key: str = "k") -> JobSpec:
        return JobSpec("mail", payload=payload, unique=Unique(key, on_conflict=on_conflict))

    first = job(b"1", OnConflict.EXISTING)
    second = job(b"2", OnConflict.REPLACE)
    third = job(b"3", OnConflict.EXISTING)
    other = job(b"4", OnConflict.REPLACE, key="other")
    found = with_replacements([first, second, third, other])
    assert [each.payload for each in found] == [b"2", b"2", b"3", b"4"]
