"""Schedules as people use them: real processes, the public API and the command line (G4, G5, G11).

Nothing here looks inside the product but for the rows that everybody may read.
"""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import grpc
import psycopg
import pytest
import yaml

from sidecar._proto.baton.v1 import runs_pb2, runs_pb2_grpc, schedules_pb2, schedules_pb2_grpc
from tests.acceptance.test_ticks import Row, _account, _rows
from tests.lab.cluster import Cluster
from tests.lab.processes import baton, wait_until
from tests.lab.replica import Replica, Setup

HOURLY = {"every": "1h"}
FAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1")


class Api:
    """Schedules and Runs of one sidecar, as any client sees them."""

    def __init__(self, channel: Any, address: str) -> None:
        self.schedules: Any = schedules_pb2_grpc.SchedulesStub(channel)
        self.runs: Any = runs_pb2_grpc.RunsStub(channel)
        self.address = address

    def trigger(self, name: str) -> int:
        request = schedules_pb2.SchedulesTriggerRequest(name=name)
        return int(self.schedules.Trigger(request, timeout=5).run_id)

    def run(self, run_id: int) -> runs_pb2.Run:
        found: runs_pb2.Run = self.runs.Get(runs_pb2.RunsGetRequest(run_id=run_id), timeout=5).run
        return found

    def outcome(self, run_id: int, seconds: float = 60) -> str:
        """`succeeded`, `failed`, or the reason why it was skipped, once it has ended."""

        def ended() -> runs_pb2.Run | None:
            try:
                return found if (found := self.run(run_id)).outcome else None
            except grpc.RpcError:
                return None

        run = wait_until(ended, seconds, lambda: f"the outcome of {self.run(run_id)}")
        if run.reason:
            return str(runs_pb2.SkipReason.Name(run.reason)).removeprefix("SKIP_REASON_").lower()
        return str(runs_pb2.Outcome.Name(run.outcome)).removeprefix("OUTCOME_").lower()

    def wait_for_schedules(self, *names: str) -> None:
        """Until these schedules stand, and no others."""

        def standing() -> set[str]:
            page = self.schedules.List(schedules_pb2.SchedulesListRequest(), timeout=5)
            return {schedule.name for schedule in page.schedules}

        def there() -> bool:
            try:
                return standing() == set(names)
            except grpc.RpcError:
                return False

        wait_until(there, 30, lambda: f"schedules {names}, not {standing()}")


@pytest.fixture
def api_of() -> Iterator[Callable[[Replica], Api]]:
    with ExitStack() as channels:

        def api(replica: Replica) -> Api:
            channel = channels.enter_context(grpc.insecure_channel(replica.api_address))
            grpc.channel_ready_future(channel).result(timeout=20)
            return Api(channel, replica.api_address)

        yield api


def _setup(url: str, *schedules: dict[str, Any], **config: Any) -> Setup:
    return Setup(url, profile="steady", config={"schedules": list(schedules), **config})


def test_what_operators_do(
    tmp_path: Path, database_url: str, api_of: Callable[[Replica], Api]
) -> None:
    """G4: overlap, cancel, retry, pause, backfill, trigger: asked of a pod that does not lead."""
    schedules: list[dict[str, Any]] = [
        {"name": policy, "overlap": policy, **HOURLY}
        for policy in ("allow", "skip", "queue", "replace")
    ]
    schedules += [
        {"name": "once", "payload": "own", **HOURLY},
        {"name": "broken", **HOURLY},
        {"name": "endless", **HOURLY},
        {"name": "past", "every": "1h", "catch_up": "none"},
        {"name": "each", "every": "1s"},
    ]
    with Cluster(tmp_path / "lab", 2, _setup(database_url, *schedules)) as cluster:
        slow = dict.fromkeys(("allow", "skip", "queue", "replace"), "sleep:4")
        behaviour = {**slow, "broken": "fail:final|ok", "endless": "hang"}
        for replica in cluster.replicas:
            replica.tell(execute=behaviour)
        (standby,) = cluster.others(cluster.wait_for_leader())
        api = api_of(standby)
        api.wait_for_schedules(*(schedule["name"] for schedule in schedules))
        paused_at = _pause(api)
        _overlap(api)
        _trigger_once(cluster, api)
        _cancel(cluster, api)
        _retry(api)
        _backfill(api)
        _resume(api, database_url, paused_at)
        cluster.check("become", "execute")


def _overlap(api: Api) -> None:
    runs = {
        policy: [api.trigger(policy) for _ in range(3)]
        for policy in ("allow", "skip", "queue", "replace")
    }
    ended = {policy: [api.outcome(run_id) for run_id in ids] for policy, ids in runs.items()}
    assert ended["allow"] == ["succeeded"] * 3
    assert Counter(ended["skip"]) == {"succeeded": 1, "overlap": 2}
    assert ended["queue"][0] == "succeeded"
    assert Counter(ended["queue"]) == {"succeeded": 2, "overlap": 1}
    assert ended["replace"] == ["overlap", "overlap", "succeeded"]
    first, second = (api.run(run_id) for run_id in runs["queue"][:2])
    assert second.started_at.ToNanoseconds() >= first.finished_at.ToNanoseconds()


def _trigger_once(cluster: Cluster, api: Api) -> None:
    words = ("trigger", "once", "--request-id", "r-1", "--payload", "mine")
    ids = {int(baton(*words, "--address", api.address)) for _ in range(2)}
    assert len(ids) == 1
    assert api.outcome(ids.pop()) == "succeeded"
    (event,) = cluster.events("execute", name="once")
    assert event.fields["payload"] == "mine"
    assert "once" in baton("runs", "once", "--address", api.address)


def _cancel(cluster: Cluster, api: Api) -> None:
    run_id = api.trigger("endless")
    (event,) = cluster.wait_for("execute", name="endless")
    api.runs.Cancel(runs_pb2.RunsCancelRequest(run_id=run_id, note="enough"), timeout=5)
    assert api.outcome(run_id) == "operator"
    assert "enough" in api.run(run_id).history[-1].cause
    ended = wait_until(
        lambda: cluster.events("execute", "ended", call=event.call), 10, "the end of the call"
    )
    assert ended[0].outcome == "cancelled"
    with pytest.raises(grpc.RpcError) as refused:
        api.runs.Cancel(runs_pb2.RunsCancelRequest(run_id=run_id), timeout=5)
    assert refused.value.code() is grpc.StatusCode.FAILED_PRECONDITION


def _retry(api: Api) -> None:
    run_id = api.trigger("broken")
    assert api.outcome(run_id) == "failed"
    assert "broken" in baton("runs", "--outcome", "failed", "--address", api.address)
    api.runs.Retry(runs_pb2.RunsRetryRequest(run_id=run_id), timeout=5)
    assert api.outcome(run_id) == "succeeded"
    run = api.run(run_id)
    assert run.attempt == 2
    causes = [event.cause for event in run.history]
    assert "retried by request" in causes


def _backfill(api: Api) -> None:
    now = datetime.now(UTC)
    request = schedules_pb2.SchedulesBackfillRequest(name="past")
    request.from_at.FromDatetime(now - timedelta(hours=6))
    request.to_at.FromDatetime(now - timedelta(hours=2))
    run_ids = api.schedules.Backfill(request, timeout=5).run_ids
    assert len(run_ids) == 4
    assert [api.outcome(run_id) for run_id in run_ids] == ["succeeded"] * 4
    assert not api.schedules.Backfill(request, timeout=5).run_ids


def _pause(api: Api) -> datetime:
    """By the command line; what `status` says of it."""
    baton("pause", "each", "--note", "night shift", "--address", api.address)
    stored = api.schedules.Get(schedules_pb2.SchedulesGetRequest(name="each"), timeout=5).schedule
    assert (stored.paused, stored.pause_note) == (True, "night shift")
    assert "paused" in baton("status", "--address", api.address)
    return datetime.now(UTC)


def _resume(api: Api, url: str, paused_at: datetime) -> None:
    baton("resume", "each", "--address", api.address)
    resumed_at = datetime.now(UTC)
    wait_until(
        lambda: [r for r in _rows(url, "each") if r.first > resumed_at and r.outcome], 15, "a tick"
    )
    rows = [row for row in _rows(url, "each") if row.outcome]
    _account(rows)
    (pause,) = [row for row in rows if row.reason == "paused"]
    margin = timedelta(seconds=2)
    assert pause.first < paused_at + margin
    assert pause.last > resumed_at - margin - timedelta(seconds=5)


def test_why_the_app_declined_is_shown(
    tmp_path: Path, database_url: str, api_of: Callable[[Replica], Api]
) -> None:
    """In the app's own words, which only the run's history holds."""
    with Cluster(tmp_path / "lab", 1, _setup(database_url, {"name": "no", **HOURLY})) as cluster:
        replica = cluster.wait_for_leader()
        replica.tell(execute={"no": "decline"})
        api = api_of(replica)
        api.wait_for_schedules("no")
        assert api.outcome(api.trigger("no")) == "app_declined"
        shown = baton("runs", "no", "--address", api.address)
        assert "skipped (app_declined)" in shown
        assert shown.splitlines()[1].endswith("as told"), shown


def test_a_file_that_changes(
    tmp_path: Path, database_url: str, api_of: Callable[[Replica], Api]
) -> None:
    """G4 G11: on a change, on SIGHUP, there and back; a bad file changes nothing; missed ticks."""
    each = {"name": "each", "every": "1s", "catch_up": "latest"}
    with Cluster(tmp_path / "lab", 1, _setup(database_url, each)) as cluster:
        (replica,) = cluster.replicas
        api = api_of(replica)
        api.wait_for_schedules("each")
        _write(replica, each, {"name": "new", **HOURLY})
        api.wait_for_schedules("each", "new")
        replica.config_file.write_text("schedules: [{name: 1, cron: nonsense}]\n")
        wait_until(lambda: _logged(replica, "config_refused"), 10, "the refusal")
        api.wait_for_schedules("each", "new")
        _write(replica, each)
        os.kill(replica.sidecar.pid, signal.SIGHUP)
        api.wait_for_schedules("each")
        _missed(cluster, replica, database_url)


def _missed(cluster: Cluster, replica: Replica, url: str) -> None:
    """Nobody runs for a while: the app is told how many ticks it missed, and which one this is."""
    before = len(_rows(url, "each"))

    def just_ended() -> bool:
        rows = _rows(url, "each")
        return len(rows) > max(before, 2) and all(row.outcome for row in rows)

    wait_until(just_ended, 20, "a tick that has just ended")  # nothing is left to be redelivered
    replica.sidecar.kill()
    known, seen = _rows(url, "each")[-1].last, len(cluster.events("execute"))
    time.sleep(4)
    replica.sidecar.start()
    event = cluster.wait_for("execute", seen + 1, timeout=30)[seen]

    def gaps() -> list[Row]:
        rows = _rows(url, "each")
        return [row for row in rows if row.reason == "coalesced" and row.first > known]

    gap = wait_until(gaps, 10, "the row")[0]
    assert event.fields["missed_count"] == gap.count >= 3
    told = datetime.fromisoformat(str(event.fields["scheduled_at"]))
    assert told == gap.last + timedelta(seconds=1)
    wait_until(lambda: _rows(url, "each")[-2].outcome, 10, "the tick after it")
    _account([row for row in _rows(url, "each") if row.outcome])


def test_old_and_new_pods_in_a_rollout(
    tmp_path: Path, database_url: str, api_of: Callable[[Replica], Api]
) -> None:
    """G4: two files at once; the newer one stands whoever restarts, and no tick is lost by it."""
    each = {"name": "each", "every": "1s", "catch_up": "all"}
    with Cluster(tmp_path / "lab", 2, _setup(database_url, each)) as cluster:
        old, new = cluster.replicas
        api_of(old)  # it is up, and SIGTERM finds it listening
        api = api_of(new)
        for replica, revision, name in ((old, 1, "old"), (new, 2, "new")):
            _write(replica, each, {"name": name, **HOURLY}, config_revision=revision)
        api.wait_for_schedules("each", "new")
        old.sidecar.terminate()
        assert old.sidecar.wait() == 0
        old.sidecar.start()
        wait_until(lambda: _logged(old, "config_not_applied"), 20, "its file to be refused")
        api.wait_for_schedules("each", "new")
        cluster.wait_for_leader()
        until = datetime.now(UTC)
        _wait_for_ticks(database_url, 2)

        def settled() -> list[Row]:
            rows = [row for row in _rows(database_url, "each") if row.last <= until]
            return rows if all(row.outcome for row in rows) else []

        rows = wait_until(settled, 20, "the ticks to end")
        assert set(_account(rows)) == {"succeeded"}


def _write(replica: Replica, *schedules: dict[str, Any], **config: Any) -> None:
    """As a mounted file changes: the new one takes the old one's place."""
    changed = {**replica.config(), "schedules": list(schedules), **config}
    part = replica.config_file.with_suffix(".part")
    part.write_text(yaml.safe_dump(changed))
    part.rename(replica.config_file)


def _logged(replica: Replica, event: str) -> bool:
    return any(line["event"] == event for line in replica.log())


def test_an_app_that_fails_every_call_is_not_hammered(
    tmp_path: Path, database_url: str, api_of: Callable[[Replica], Api]
) -> None:
    """G4: the breaker lets one probe through at a time; once the app works, every run ends."""
    names = [f"job-{n:02}" for n in range(20)]
    setup = _setup(
        database_url,
        *(
            {"name": name, "retry": {"attempts": 10, "initial": "100ms"}, **HOURLY}
            for name in names
        ),
        breaker={"failures": 3, "open": "2s"},
        app={"max_concurrent": 1},
    )
    with Cluster(tmp_path / "lab", 1, setup) as cluster:
        (replica,) = cluster.replicas
        replica.tell(execute={"*": "status:INTERNAL"})
        api = api_of(replica)
        api.wait_for_schedules(*names)
        run_ids = [api.trigger(name) for name in names]
        wait_until(lambda: "baton_breaker_open 1.0" in replica.http("/metrics")[1], 20, "open")
        before, since = len(cluster.events("execute")), time.monotonic()
        time.sleep(5)
        probes = len(cluster.events("execute")) - before
        assert probes <= (time.monotonic() - since) / 2 + 1
        replica.tell(execute={})
        assert {api.outcome(run_id, 40) for run_id in run_ids} == {"succeeded"}
        assert "baton_breaker_open 0.0" in replica.http("/metrics")[1]


def test_the_calls_of_singletons_count_among_those_at_once(
    tmp_path: Path, database_url: str, api_of: Callable[[Replica], Api]
) -> None:
    """With one open for each singleton, one of three is left for runs."""
    names = [f"job-{n}" for n in range(4)]
    setup = _setup(
        database_url,
        *({"name": name, **HOURLY} for name in names),
        singletons=[{"name": "one"}, {"name": "two"}],
        app={"max_concurrent": 3},
    )
    with Cluster(tmp_path / "lab", 1, setup) as cluster:
        (replica,) = cluster.replicas
        replica.tell(execute=dict.fromkeys(names, "sleep:1"))
        api = api_of(replica)
        api.wait_for_schedules(*names)
        cluster.wait_for("execute", 2)
        run_ids = [api.trigger(name) for name in names]
        assert {api.outcome(run_id, 40) for run_id in run_ids} == {"succeeded"}
        open_calls: set[int] = set()
        for event in cluster.events():
            if event.kind == "execute":
                (open_calls.add if event.phase == "arrived" else open_calls.discard)(event.call)
                assert len(open_calls) <= 3


def test_a_handler_that_only_the_new_pod_knows(
    tmp_path: Path, database_url: str, api_of: Callable[[Replica], Api]
) -> None:
    """G5: UNIMPLEMENTED uses up no retry; the run waits for a pod that knows it."""
    schedule = {"name": "fresh", "retry": {"attempts": 1}, **HOURLY}
    with Cluster(tmp_path / "lab", 2, _setup(database_url, schedule)) as cluster:
        leader = cluster.wait_for_leader()
        leader.tell(execute={"fresh": "status:UNIMPLEMENTED"})
        api = api_of(cluster.others(leader)[0])
        api.wait_for_schedules("fresh")
        run_id = api.trigger("fresh")
        cluster.wait_for("execute", 2)
        leader.sidecar.terminate()
        assert api.outcome(run_id, 30) == "succeeded"
        run = api.run(run_id)
        assert run.attempt >= 3
        assert "UNIMPLEMENTED" in {event.cause.partition(":")[0] for event in run.history}


@pytest.mark.skipif(not FAKETIME.exists(), reason="needs libfaketime (apt install faketime)")
def test_the_clock_of_the_leader_jumps(tmp_path: Path, database_url: str) -> None:
    """G4: an hour ahead, then a day back; no tick early, lost or doubled."""
    each = {"name": "each", "every": "1s", "catch_up": "all"}
    with Cluster(tmp_path / "lab", 1, _setup(database_url, each)) as cluster:
        (replica,) = cluster.replicas
        replica.sidecar.kill()
        offset = tmp_path / "offset"
        offset.write_text("+0")
        replica.sidecar.env.update(
            LD_PRELOAD=str(FAKETIME),
            FAKETIME_TIMESTAMP_FILE=str(offset),
            FAKETIME_NO_CACHE="1",
            FAKETIME_DONT_FAKE_MONOTONIC="1",
        )
        replica.sidecar.start()
        cluster.wait_for_leader()
        for jump in ("+0", "+3600", "-86400", "+0"):
            offset.write_text(jump)
            os.kill(replica.sidecar.pid, signal.SIGHUP)  # a line in its log shows its clock
            _wait_for_ticks(database_url, 3)
        reloads = [line for line in replica.log() if line["event"] == "config_reloaded"]
        shown = [datetime.fromisoformat(line["timestamp"]) for line in reloads]
        jumps = [later - earlier for earlier, later in pairwise(shown)]
        assert max(jumps) > timedelta(hours=23), "the clock of the sidecar never jumped"
        assert min(jumps) < -timedelta(hours=24), "the clock of the sidecar never jumped"
        rows = [row for row in _rows(database_url, "each") if row.outcome]
        assert set(_account(rows)) == {"succeeded"}
        with psycopg.connect(database_url) as connection:
            (early,) = connection.execute(
                "SELECT count(*) FROM baton.run WHERE created_at < tick OR started_at < tick"
            ).fetchone() or (1,)
        assert early == 0
        cluster.check("become", "execute")


def _wait_for_ticks(url: str, count: int) -> None:
    """Until so many ticks from now on have their outcome."""
    since = datetime.now(UTC)
    wait_until(
        lambda: (
            sum(row.first > since and row.outcome == "succeeded" for row in _rows(url, "each"))
            >= count
        ),
        30,
        lambda: f"{count} ticks since {since}; the newest: {_rows(url, 'each')[-3:]}",
    )
