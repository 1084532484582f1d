"""Reads the evidence from where it lies: the database's rows in one snapshot, the apps' files."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from typing import Any

import psycopg

from tests.lab import ops as operations
from tests.lab.evidence import Commit, Tick
from tests.lab.ops import WRITES, Op

_TICKS = """
SELECT name, tick, coalesce(tick_last, tick), tick_count, id, state, outcome, reason, started_at
FROM baton.run WHERE kind = 'schedule' AND runner_id <> 'history' ORDER BY tick"""
_COMMITS = """
SELECT event ->> 'at', run.id, (event ->> 'epoch')::bigint, event ->> 'state', event ->> 'outcome'
FROM baton.run, jsonb_array_elements(run.history) AS event WHERE runner_id <> 'history'"""
_VALUES = "SELECT key, value FROM baton.state WHERE value IS NOT NULL"

ops = operations.read


def rows(url: str, text: str, *parameters: object) -> list[tuple[Any, ...]]:
    with psycopg.connect(url, autocommit=True, connect_timeout=5) as connection:
        cursor = connection.execute(text.encode(), parameters or None)
        return cursor.fetchall() if cursor.description else []


def database(url: str) -> tuple[list[Tick], list[Commit], dict[str, int]]:
    """Ticks, commits and values as they stood together at one moment."""
    with psycopg.connect(url, connect_timeout=5) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        ticks = [Tick(*row) for row in connection.execute(_TICKS)]
        commits = [
            Commit(datetime.fromisoformat(at), *more)
            for at, *more in connection.execute(_COMMITS)
        ]  # fmt: skip
        values = {key: _number(value) for key, value in connection.execute(_VALUES)}
    return ticks, commits, values


def as_of(calls: Iterable[Op], at: float) -> list[Op]:
    """The calls as they were known then: what was acknowledged later is not in the snapshot."""
    return [
        replace(op, answered_at=None, outcome="")
        if op.kind in WRITES and (op.answered_at or at) >= at
        else op
        for op in calls
    ]


def _number(value: bytes) -> int:
    found = json.loads(value)
    return int(found["count"] if isinstance(found, dict) else found)
