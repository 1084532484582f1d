"""Rows that no release writes: by hand, by a bug, by a release of the future (G11).

Whatever stands in the database, the sidecar lives on, keeps its term, goes on with everything else,
and says what is wrong. All damage is done at once, to one sidecar.
"""

# ruff: noqa: S608 - every statement is made of this file's own texts

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import grpc
import psycopg
import pytest
from psycopg import sql

from sidecar._proto.baton.v1 import (
    deferreds_pb2,
    deferreds_pb2_grpc,
    ids_pb2,
    ids_pb2_grpc,
    runs_pb2,
    runs_pb2_grpc,
    schedules_pb2,
    schedules_pb2_grpc,
    singletons_pb2,
    singletons_pb2_grpc,
    state_pb2,
    state_pb2_grpc,
)
from tests.lab.cluster import Cluster
from tests.lab.processes import wait_until
from tests.lab.replica import Replica, Setup
from tests.lab.stalls import Stalls


def _defined(**values: str) -> str:
    """An assignment that changes keys of the definition to these JSON texts."""
    keys = ", ".join(f'"{key}": {text}' for key, text in values.items())
    return f"definition = definition || '{{{keys}}}'"


# A copy of the witness, made due, with one thing changed; and what is said of it.
SCHEDULES: dict[str, tuple[str, str]] = {
    "broken-cron": (_defined(cron='"rubbish"', every_seconds="null"), "cron: expression: has 1"),
    "cron-and-every": (_defined(cron='"@daily"'), "exactly one of cron, every and at is needed"),
    "cron-that-never-fires": (_defined(cron='"0 0 30 2 *"', every_seconds="null"), "cron: "),
    "unknown-timezone": (
        _defined(cron='"@daily"', every_seconds="null", timezone='"Mars/Base"'),
        "timezone: 'Mars/Base' is not an IANA time zone",
    ),
    "no-timing": ("definition = definition - 'every_seconds'", "exactly one of cron"),
    "broken-instant": (_defined(at='"yesterday"', every_seconds="null"), "definition.at"),
    "instant-without-zone": (_defined(start_at='"2026-01-01T00:00:00"'), "definition.start_at"),
    "broken-start": (_defined(start_at='"rubbish"'), "definition.start_at"),
    "negative-every": (_defined(every_seconds="-5"), "definition.every_seconds"),
    "tiny-every": (_defined(every_seconds="1e-300"), "every: must be longer than nothing"),
    "giant-every": (_defined(every_seconds="1e300"), "definition.every_seconds"),
    "wordy-every": (_defined(every_seconds='"often"'), "definition.every_seconds"),
    "list": ("definition = '[]'", "its definition is"),
    "null": ("definition = 'null'", "its definition is"),
    "text": ("definition = '\"text\"'", "its definition is"),
    "retry-text": (_defined(retry='"rubbish"'), "definition.retry"),
    "retry-attempts": (_defined(retry='{"attempts": "x"}'), "definition.retry"),
    "unknown-overlap": (_defined(overlap='"sideways"'), "definition.overlap"),
    "unknown-catch-up": (_defined(catch_up='"sometimes"'), "definition.catch_up"),
    "enabled-maybe": (_defined(enabled='"maybe"'), "definition.enabled"),
    "expected-soon": (_defined(expected_interval_seconds='"soon"'), "expected_interval_seconds"),
    "giant-jitter": (_defined(jitter_seconds="1e300"), "definition.jitter_seconds"),
    "state-version": (_defined(state='{"version": "x"}'), "definition.state"),
    "state-schema": (_defined(state='{"schema": 5}'), "definition.state"),
    "watermark-infinity": ("watermark = 'infinity'", "its watermark lies in the year 9999"),
    "watermark-bc": ("watermark = '0044-03-15 BC'", "its watermark lies in the year 1"),
    "tick-infinity": ("next_tick = 'infinity'", "its next_tick lies in the year 9999"),
}

_RUN = "cluster_id, group_id, kind, name, schedule_id, tick, state, due_at"
# A queued run of the schedule `rare`, with one thing changed; how it ends, and its error.
RUNS: dict[str, tuple[str, str, str]] = {
    "payload-null": ("payload = NULL, result = NULL", "SUCCEEDED", ""),
    "unknown-overlap": ("overlap = 'sideways'", "SUCCEEDED", ""),
    "negative-counters": (
        "attempt = -5, failures = -3, attempts_free = -9, checkpoint_count = -1", "SUCCEEDED", "",
    ),
    "attempt-at-its-end": ("attempt = 2147483647", "SUCCEEDED", ""),
    "failures-at-their-end": ("failures = 2147483647", "SUCCEEDED", ""),
    "history-object": ("history = '{}'", "SUCCEEDED", ""),
    "history-null": ("history = 'null'", "SUCCEEDED", ""),
    "no-such-schedule": ("schedule_id = 987654321", "SUCCEEDED", ""),
    "no-schedule": ("schedule_id = NULL", "SUCCEEDED", ""),
    "due-since-ever": ("due_at = '-infinity', queued_at = '-infinity'", "SUCCEEDED", ""),
    "epoch-of-the-future": ("epoch = 9223372036854775807", "SUCCEEDED", ""),
    "progress-nan": ("progress = 'NaN'", "SUCCEEDED", ""),
    "definition-damaged": (
        "schedule_id = (SELECT id FROM baton.schedule WHERE name = 'bad-list')",
        "FAILED", "DATA_LOSS: schedule",
    ),
}  # fmt: skip
# An ended run with one thing changed, and what Get says.
RECORDS: dict[str, tuple[str, str]] = {
    "unknown-kind": ("kind = 'magic'", "'magic' is not a valid RunKind"),
    "unknown-state": ("state = 'limbo'", "'limbo' is not a valid RunState"),
    "unknown-outcome": ("outcome = 'maybe'", "'maybe' is not a valid Outcome"),
    "unknown-reason": ("reason = 'because'", "'because' is not a valid SkipReason"),
    "history-of-numbers": ("history = '[1, 2]'", "is damaged in the database"),
    "history-without-time": ("history = '[{}]'", "is damaged in the database"),
    "history-of-nonsense": ('history = \'[{"at": "x"}]\'', "is damaged in the database"),
}
_ENTRY = "cluster_id, key, state_version, version, value, updated_at"
# Everything else: what is done, what is asked, and the code of the answer.
OTHERS: dict[str, tuple[str, tuple[str, str, Any], str]] = {
    "state-expires-never": (
        f"INSERT INTO baton.state ({_ENTRY}, expires_at)"
        " SELECT id, 'forever', 0, 7, 'x', now(), 'infinity' FROM baton.cluster",
        ("State", "Get", state_pb2.StateGetRequest(key="forever")), "OK",
    ),
    "state-version-negative": (
        f"INSERT INTO baton.state ({_ENTRY})"
        " SELECT id, 'minus', 0, -7, 'x', now() FROM baton.cluster",
        ("State", "Get", state_pb2.StateGetRequest(key="minus", consistency="CONSISTENCY_STRONG")),
        "DATA_LOSS",
    ),
    "state-key-of-control-characters": (
        f"INSERT INTO baton.state ({_ENTRY})"
        " SELECT id, E'\\x1b[31m\\n', 0, 7, 'x', now() FROM baton.cluster",
        ("State", "List", state_pb2.StateListRequest(page_size=1)), "OK",
    ),
    "execution-of-nonsense": (
        "INSERT INTO baton.execution (cluster_id, entity_type, name, run_count, average_seconds,"
        " last_seconds, last_run_at, heartbeat_at) SELECT id, 'singleton', 'one', -5, 'NaN',"
        " '-Infinity', '-infinity', now() + interval '9 years' FROM baton.cluster"
        " ON CONFLICT (cluster_id, entity_type, name) DO UPDATE SET run_count = -5,"
        " average_seconds = 'NaN', last_seconds = '-Infinity', last_run_at = '-infinity'",
        ("Singletons", "Get", singletons_pb2.SingletonsGetRequest(name="one")), "OK",
    ),
    "deferred-in-limbo": (
        "UPDATE baton.deferred SET state = 'limbo' WHERE name = 'deferred-in-limbo'",
        ("Deferreds", "Get", deferreds_pb2.DeferredsGetRequest(token="TOKEN")), "DATA_LOSS",
    ),
    "deferred-of-a-negative-run": (
        "UPDATE baton.deferred SET run_id = -1 WHERE name = 'deferred-of-a-negative-run'",
        ("Deferreds", "Get", deferreds_pb2.DeferredsGetRequest(token="TOKEN")), "DATA_LOSS",
    ),
    "runner-of-the-future": (
        "INSERT INTO baton.runner (runner_id, cluster_id, host, version, campaigning,"
        " campaigning_since, seen_at) SELECT E'odd\\n', id, '', 'x', false, 'infinity', 'infinity'"
        " FROM baton.cluster",
        ("Ids", "Generate", ids_pb2.IdsGenerateRequest(count=1)), "OK",
    ),
    "machine-of-nobody": (
        "INSERT INTO baton.machine SELECT id, 1000, '', 'infinity', 9223372036854775807"
        " FROM baton.cluster",
        ("Ids", "Generate", ids_pb2.IdsGenerateRequest(count=1)), "OK",
    ),
    "config-of-nobody": (
        "INSERT INTO baton.config_load (cluster_id, digest, revision, first_loaded_at, seen_at)"
        " SELECT id, 'x', -1, '-infinity', '-infinity' FROM baton.cluster",
        ("Schedules", "Get", schedules_pb2.SchedulesGetRequest(name="witness")), "OK",
    ),
    "resignation-of-the-future": (
        "INSERT INTO baton.resign_request (group_id, epoch, requested_at)"
        " SELECT id, 9223372036854775807, 'infinity' FROM baton.leader_group",
        ("Schedules", "Get", schedules_pb2.SchedulesGetRequest(name="witness")), "OK",
    ),
    "schema-of-the-future": (
        "UPDATE baton.meta SET schema_version = 999, oldest_reader = 999",
        ("Schedules", "Get", schedules_pb2.SchedulesGetRequest(name="witness")), "OK",
    ),
}  # fmt: skip

STUBS: dict[str, Any] = {
    "Deferreds": deferreds_pb2_grpc.DeferredsStub,
    "Ids": ids_pb2_grpc.IdsStub,
    "Runs": runs_pb2_grpc.RunsStub,
    "Schedules": schedules_pb2_grpc.SchedulesStub,
    "Singletons": singletons_pb2_grpc.SingletonsStub,
    "State": state_pb2_grpc.StateStub,
}


@dataclass(frozen=True, slots=True)
class Damaged:
    cluster: Cluster
    replica: Replica
    channel: grpc.Channel
    runs: dict[str, int]  # ids of RUNS and RECORDS
    tokens: dict[str, str]
    terms: int  # so many apps had been told to lead when the damage was done
    executed: int  # so many runs of the witness had begun
    stalls: Stalls  # since then

    def ask(self, service: str, method: str, request: Any) -> tuple[str, str, Any]:
        try:
            answer = getattr(STUBS[service](self.channel), method)(request, timeout=10)
        except grpc.RpcError as error:
            told: Any = error
            return told.code().name, told.details(), None
        return "OK", "", answer

    def said(self) -> str:
        return self.replica.sidecar.output


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory, module_database: str) -> Iterator[Damaged]:
    config = {
        "singletons": [{"name": "one"}],
        "schedules": [_WITNESS, {"name": "rare", "cron": "0 0 29 2 *"}],
    }
    directory = tmp_path_factory.mktemp("rows") / "lab"
    with Cluster(directory, 1, Setup(module_database, config=config)) as cluster:
        replica = cluster.wait_for_leader()
        cluster.wait_for("execute", 2, name="witness")
        stalls = Stalls(replica.sidecar.pid)
        with grpc.insecure_channel(replica.api_address) as channel, stalls:
            tokens = {name: _deferred(channel, name) for name in OTHERS if "deferred" in name}
            terms, executed = len(cluster.events("become")), len(_witness(cluster))
            with psycopg.connect(module_database, autocommit=True) as connection:
                runs = _damage(connection)
            yield Damaged(cluster, replica, channel, runs, tokens, terms, executed, stalls)
        assert replica.sidecar.running


def _deferred(channel: grpc.Channel, name: str) -> str:
    create = deferreds_pb2.DeferredsCreateRequest(name=name)
    return str(STUBS["Deferreds"](channel).Create(create, timeout=10).token)


@pytest.fixture(scope="module")
def module_database(postgres_url: str) -> Iterator[str]:
    name = f"test_{os.urandom(8).hex()}"
    with psycopg.connect(postgres_url, autocommit=True) as administrator:
        administrator.execute(f"CREATE DATABASE {name} TEMPLATE template0".encode())
        yield urlsplit(postgres_url)._replace(path=f"/{name}").geturl()
        administrator.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def _witness(cluster: Cluster) -> list[Any]:
    return cluster.events("execute", name="witness")


def _damage(connection: psycopg.Connection) -> dict[str, int]:
    """Take the checks away, then do all of it."""
    checks = connection.execute(
        "SELECT conrelid::regclass::text, conname FROM pg_constraint"
        " WHERE contype = 'c' AND conislocal AND connamespace = 'baton'::regnamespace"
    ).fetchall()
    for table, name in checks:
        connection.execute(f"ALTER TABLE {table} DROP CONSTRAINT {name}".encode())
    for name, (change, _) in SCHEDULES.items():
        connection.execute(_COPY, {"name": f"bad-{name}"})
        connection.execute(f"UPDATE baton.schedule SET {change} WHERE name = 'bad-{name}'".encode())
    ids: dict[str, int] = {}
    for name, (change, *_) in RUNS.items():
        ids[name] = _insert_run(connection, change, "queued")
    for name, (change, _) in RECORDS.items():
        ids[name] = _insert_run(connection, change, "ended")
    for statement, _, _ in OTHERS.values():
        connection.execute(statement.encode())
    return ids


# What is damaged does not run, hence is stale sooner or later: that is the dead man's switch.
_WITNESS = {"name": "witness", "every": "1s", "expected_interval": "1d"}
_COPY = sql.SQL(
    "INSERT INTO baton.schedule (cluster_id, group_id, name, source, definition, watermark,"
    " next_tick, next_due_at) SELECT cluster_id, group_id, %(name)s, 'api', definition,"
    " clock_timestamp(), clock_timestamp(), clock_timestamp()"
    " FROM baton.schedule WHERE name = 'witness'"
)


def _insert_run(connection: psycopg.Connection, change: str, state: str) -> int:
    """Out of the leader's sight until it is damaged."""
    row = connection.execute(
        f"INSERT INTO baton.run ({_RUN}, outcome, finished_at) SELECT cluster_id, group_id,"
        " 'trigger', name, id, now(), 'ended', now(), 'failed', now()"
        " FROM baton.schedule WHERE name = 'rare' RETURNING id".encode()
    ).fetchone()
    assert row
    if state == "queued":
        change = f"state = 'queued', outcome = NULL, finished_at = NULL, {change}"
    connection.execute(f"UPDATE baton.run SET {change} WHERE id = {row[0]}".encode())
    return int(row[0])


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_damaged_schedule_is_named_and_can_be_deleted(damaged: Damaged, name: str) -> None:
    """G11: it is said of this schedule alone; Delete takes it away."""
    words, row = SCHEDULES[name][1], f"bad-{name}"

    def said() -> bool:
        lines = [line for line in damaged.replica.log() if line["event"] == "schedule_unusable"]
        return any(line["schedule"] == row and words in line["problem"] for line in lines)

    wait_until(said, 25, lambda: f"words about {row}: {damaged.said()[-3000:]}")
    request = schedules_pb2.SchedulesPauseRequest(name=row)
    code, message, _ = damaged.ask("Schedules", "Pause", request)
    assert (code, words in message) == ("DATA_LOSS", True), message
    delete = schedules_pb2.SchedulesDeleteRequest(name=row)
    if name != "list":  # a run of RUNS stands on it
        assert damaged.ask("Schedules", "Delete", delete)[:2] == ("OK", "")


@pytest.mark.parametrize("name", RUNS)
def test_a_damaged_run_ends(damaged: Damaged, name: str) -> None:
    """G4 G11: delivered as well as can be, or failed for good with the reason."""
    _, outcome, words = RUNS[name]

    def ended() -> Any:
        request = runs_pb2.RunsGetRequest(run_id=damaged.runs[name])
        code, message, answer = damaged.ask("Runs", "Get", request)
        assert code == "OK", message
        return answer.run if answer.run.state == runs_pb2.RUN_STATE_ENDED else None

    run = wait_until(ended, 25, lambda: f"the end of {name}: {damaged.replica.describe()}")
    assert runs_pb2.Outcome.Name(run.outcome) == f"OUTCOME_{outcome}", run
    assert run.error.startswith(words)


@pytest.mark.parametrize("name", RECORDS)
def test_a_damaged_record_is_told_to_who_asks(damaged: Damaged, name: str) -> None:
    """G11: DATA_LOSS with the run and what is wrong with it."""
    request = runs_pb2.RunsGetRequest(run_id=damaged.runs[name])
    code, message, _ = damaged.ask("Runs", "Get", request)
    assert code == "DATA_LOSS", message
    assert f"run {damaged.runs[name]} " in message
    assert RECORDS[name][1] in message


@pytest.mark.parametrize("name", OTHERS)
def test_other_damage_is_bearable(damaged: Damaged, name: str) -> None:
    """G11: an answer, or DATA_LOSS; never an error inside the sidecar."""
    _, (service, method, request), wanted = OTHERS[name]
    if service == "Deferreds":
        request = deferreds_pb2.DeferredsGetRequest(token=damaged.tokens[name])
    code, message, _ = damaged.ask(service, method, request)
    assert code == wanted, message


def test_all_else_goes_on_in_the_same_term(damaged: Damaged) -> None:
    """G11: nobody lost leadership over it, the witness ticks, nothing broke inside."""
    cluster = damaged.cluster
    begun = len(_witness(cluster))
    wait_until(lambda: len(_witness(cluster)) >= begun + 2, 25, damaged.replica.describe)
    kept = len(cluster.events("become")) == damaged.terms
    assert kept or damaged.stalls.cost_a_term, "it lost its term"
    assert len(_witness(cluster)) > damaged.executed
    ours = {"api_call_failed", "execute_call_failed", "load_failed", "announce_failed",
            "answer_not_storable", "crashed", "vitals_failed",
            "election_task_failed", "config_not_applied"}  # fmt: skip
    broken = [line for line in damaged.replica.log() if line["event"] in ours]
    assert not broken, broken
