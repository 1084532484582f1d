"""The hosts of a Postgres URL: which there are, and which of them wins."""

from __future__ import annotations

import asyncio
from functools import partial

import psycopg
import pytest

from sidecar.adapters.postgres.hosts import addresses_of, first_success, hosts_of, label
from sidecar.model.errors import StoreUnavailable


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PGHOST", "PGHOSTADDR", "PGPORT", "PGSERVICE", "PGTARGETSESSIONATTRS"):
        monkeypatch.delenv(name, raising=False)


def _host(**parameters: str) -> dict[str, str]:
    return parameters


_RW = {"target_session_attrs": "read-write"}


@pytest.mark.parametrize(
    ("url", "hosts"),
    [
        pytest.param("postgresql://u:p@a/d", [_host(host="a", port="5432")], id="one"),
        pytest.param("dbname=d", [{}], id="the default socket"),
        pytest.param("host=/run/pg", [_host(host="/run/pg", port="5432")], id="a socket"),
        pytest.param(
            "postgresql://u:p@a:1,b:2/d?target_session_attrs=read-write",
            [_host(host="a", port="1"), _host(host="b", port="2")],
            id="a list",
        ),
        pytest.param(
            "host=a,b port=6432 target_session_attrs=any",
            [_host(host="a", port="6432"), _host(host="b", port="6432")],
            id="one port for all",
        ),
        pytest.param(
            "postgresql://[::1]:1,[::2]:2/d",
            [_host(host="::1", port="1", **_RW), _host(host="::2", port="2", **_RW)],
            id="a list that does not ask for a primary",
        ),
        pytest.param(
            "host=a,b hostaddr=10.0.0.1,10.0.0.2",
            [
                _host(host="a", hostaddr="10.0.0.1", port="5432", **_RW),
                _host(host="b", hostaddr="10.0.0.2", port="5432", **_RW),
            ],
            id="names with addresses",
        ),
        pytest.param("host=a,b,c port=1,2", [{}], id="ports that do not match"),
        pytest.param("host=a,b service=s", [{}], id="a service file"),
    ],
)
def test_the_hosts_of_a_url(url: str, hosts: list[dict[str, str]]) -> None:
    assert hosts_of(url) == hosts


def test_hosts_and_ports_of_the_environment_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGHOST", "a,b")
    monkeypatch.setenv("PGPORT", "1,2")
    monkeypatch.setenv("PGTARGETSESSIONATTRS", "primary")
    assert hosts_of("dbname=d") == [_host(host="a", port="1"), _host(host="b", port="2")]


def test_load_balancing_changes_the_order() -> None:
    url = "host=a,b,c,d load_balance_hosts=random"
    orders = {tuple(host["host"] for host in hosts_of(url)) for _ in range(200)}
    assert len(orders) > 1
    assert {tuple(sorted(order)) for order in orders} == {("a", "b", "c", "d")}


def test_a_url_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(psycopg.ProgrammingError):
        hosts_of("hunter2")


async def test_a_name_is_kept_beside_its_address() -> None:
    """verify-full compares the certificate with the name."""
    found = await addresses_of(_host(host="localhost", port="5432"))
    assert _host(host="localhost", port="5432", hostaddr="127.0.0.1") in found


@pytest.mark.parametrize("host", ["/run/pg", "10.0.0.1", "::1", ""])
async def test_what_is_no_name_is_not_resolved(host: str) -> None:
    assert await addresses_of(_host(host=host)) == [_host(host=host)]


def test_a_label_says_where() -> None:
    assert label(_host(host="a", hostaddr="10.0.0.1", port="1")) == "a (10.0.0.1) port 1"
    assert label({}) == "default socket"


class _Attempts:
    """Attempts that end when told to; what was started, and what was thrown away."""

    def __init__(self, count: int) -> None:
        self.ends = [asyncio.get_running_loop().create_future() for _ in range(count)]
        self.started: list[int] = []
        self.cancelled: list[int] = []
        self.discarded: list[str] = []

    async def _run(self, at: int) -> str:
        self.started.append(at)
        try:
            result: str = await asyncio.shield(self.ends[at])
        except asyncio.CancelledError:
            self.cancelled.append(at)
            raise
        return result

    def race(self) -> asyncio.Task[str]:
        attempts = [partial(self._run, at) for at in range(len(self.ends))]
        return asyncio.create_task(first_success(attempts, discard=self.discarded.append))

    async def all_started(self, count: int) -> None:
        async with asyncio.timeout(10):
            while len(self.started) < count:  # noqa: ASYNC110 - what is awaited is under test
                await asyncio.sleep(0.01)


async def test_a_silent_attempt_does_not_keep_the_next_from_starting() -> None:
    attempts = _Attempts(2)
    race = attempts.race()
    await attempts.all_started(2)
    attempts.ends[1].set_result("second")
    assert await race == "second"
    await asyncio.sleep(0)
    assert attempts.cancelled == [0]


async def test_a_failed_attempt_starts_the_next_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sidecar.adapters.postgres.hosts.STAGGER_SECONDS", 3600)
    attempts = _Attempts(2)
    attempts.ends[0].set_exception(StoreUnavailable("refused"))
    attempts.ends[1].set_result("second")
    async with asyncio.timeout(10):
        assert await attempts.race() == "second"
    assert attempts.discarded == []


async def test_an_attempt_that_answers_is_the_only_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A list whose first host is well costs one connection."""
    monkeypatch.setattr("sidecar.adapters.postgres.hosts.STAGGER_SECONDS", 3600)
    attempts = _Attempts(3)
    attempts.ends[0].set_result("first")
    assert await attempts.race() == "first"
    assert attempts.started == [0]


async def test_two_successes_in_one_instant_leave_one() -> None:
    attempts = _Attempts(2)
    race = attempts.race()
    await attempts.all_started(2)
    attempts.ends[0].set_result("first")
    attempts.ends[1].set_result("second")
    winner = await race
    await asyncio.sleep(0)
    assert {winner, *attempts.discarded} == {"first", "second"}
    assert len(attempts.discarded) == 1


async def test_the_problems_of_all_are_told() -> None:
    attempts = _Attempts(2)
    attempts.ends[0].set_exception(StoreUnavailable("refused"))
    attempts.ends[1].set_exception(StoreUnavailable("silent"))
    with pytest.raises(StoreUnavailable, match=r"^refused; silent$"):
        await attempts.race()


async def test_a_race_that_is_given_up_ends_its_attempts() -> None:
    attempts = _Attempts(2)
    race = attempts.race()
    await attempts.all_started(2)
    race.cancel()
    await asyncio.wait({race})
    await asyncio.sleep(0)
    assert sorted(attempts.cancelled) == [0, 1]
