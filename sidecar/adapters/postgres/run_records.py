"""The table of runs for API calls: get, list, cancel, retry, checkpoint, heartbeat."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Any

from psycopg.errors import UniqueViolation

from sidecar.adapters.postgres import arrays
from sidecar.adapters.postgres.database import Database, Row
from sidecar.model.errors import DamagedRow, Fenced, NotFound
from sidecar.model.identity import Identity
from sidecar.model.run import (
    CHECKPOINT_BYTES_MAX,
    CHECKPOINTS_MAX,
    Outcome,
    RunKind,
    RunRef,
    RunState,
    idempotency_key,
)
from sidecar.model.run_records import RunEvent, RunFilter, RunRecord, Step, StoredStep
from sidecar.model.schedule import SkipReason


class PostgresRunRecords:
    def __init__(self, database: Database, identity: Callable[[], Awaitable[Identity]]) -> None:
        self._database = database
        self._identity = identity

    async def get(self, run_id: int) -> RunRecord:
        identity = await self._identity()
        row = await self._database.fetch_one("runs/get", _one(identity, run_id))
        if row is None:
            raise NotFound(f"there is no run {run_id}")
        return _record(row, identity.cluster)

    async def page(
        self, wanted: RunFilter, *, before: int | None, limit: int
    ) -> Sequence[RunRecord]:
        identity = await self._identity()
        parameters = {
            "cluster_id": identity.cluster_id,
            "before": before,
            "limit": limit,
            "name": wanted.name,
            "outcome": wanted.outcome,
            "state": wanted.state,
            "kind": wanted.kind,
            "since": wanted.since,
            "until": wanted.until,
        }
        rows = await self._database.fetch("runs/list", parameters)
        return [_record(row, identity.cluster) for row in rows]

    async def cancel(self, run_id: int, cause: str) -> bool:
        identity = await self._identity()
        parameters = _one(identity, run_id) | {"runner_id": identity.runner_id, "cause": cause}
        return await self._database.fetch_one("runs/cancel", parameters) is not None

    async def retry(self, run_id: int) -> bool:
        identity = await self._identity()
        parameters = _one(identity, run_id) | {"runner_id": identity.runner_id}
        return await self._database.fetch_one("runs/retry", parameters) is not None

    async def checkpoint(self, run: RunRef, step: str, value: bytes) -> StoredStep:
        identity = await self._identity()
        parameters = _ref(identity, run) | {
            "step": step,
            "value": value,
            "count_max": CHECKPOINTS_MAX,
            "bytes_max": CHECKPOINT_BYTES_MAX,
        }
        try:
            row = await self._database.fetch_one("runs/checkpoint", parameters)
            unseen = row is not None and not row["stored"] and row["existing"] is None
        except UniqueViolation:
            unseen = True
        if unseen:
            # The same step was being stored by another call, which may also have reached the run's
            # limits: only a new statement sees its value.
            row = await self._database.fetch_one("runs/checkpoint", parameters)
        if row is None or not row["is_current"]:
            raise Fenced(f"attempt {run.attempt} of run {run.run_id} is not the live one: stop")
        existing = row["existing"]
        return StoredStep(row["stored"], None if existing is None else bytes(existing))

    async def checkpoint_all(self, steps: Sequence[Step]) -> list[StoredStep | None]:
        """Steps of one epoch, each of another run. None: not stored; `checkpoint` tells why."""
        if len(steps) == 1:
            return [await self.checkpoint(steps[0].run, steps[0].name, steps[0].value)]
        identity = await self._identity()
        parameters = {
            "cluster_id": identity.cluster_id,
            "epoch": steps[0].run.epoch,
            "run_ids": arrays.plain(step.run.run_id for step in steps),
            "attempts": arrays.plain(step.run.attempt for step in steps),
            "steps": arrays.texts(step.name for step in steps),
            "values": arrays.blobs(step.value for step in steps),
            "count_max": CHECKPOINTS_MAX,
            "bytes_max": CHECKPOINT_BYTES_MAX,
        }
        rows = await self._database.fetch("runs/checkpoint_all", parameters)
        stored = {row["run_id"] for row in rows}
        return [StoredStep(True) if step.run.run_id in stored else None for step in steps]

    async def heartbeat(self, run: RunRef, progress: float | None, message: str | None) -> bool:
        identity = await self._identity()
        parameters = _ref(identity, run) | {"progress": progress, "message": message}
        return await self._database.fetch_one("runs/heartbeat", parameters) is not None


def _one(identity: Identity, run_id: int) -> dict[str, Any]:
    return {"cluster_id": identity.cluster_id, "run_id": run_id}


def _ref(identity: Identity, run: RunRef) -> dict[str, Any]:
    return _one(identity, run.run_id) | {"attempt": run.attempt, "epoch": run.epoch}


def _record(row: Row, cluster: str) -> RunRecord:
    try:
        return _read(row, cluster)
    except (KeyError, TypeError, ValueError) as error:
        problem = f"run {row['id']} is damaged in the database: {error}"
        raise DamagedRow(problem) from None


def _read(row: Row, cluster: str) -> RunRecord:
    kind, state = RunKind(row["kind"]), RunState(row["state"])
    return RunRecord(
        run_id=row["id"],
        kind=kind,
        name=row["name"],
        group=row["group_name"],
        scheduled_at=row["tick"],
        idempotency_key=idempotency_key(cluster, kind, row["name"], row["id"], row["tick"]),
        state=state,
        attempt=max(0, row["attempt"]),
        created_at=row["created_at"],
        outcome=Outcome(row["outcome"]) if row["outcome"] else None,
        reason=SkipReason(row["reason"]) if row["reason"] else None,
        started_at=row["started_at"],
        finished_at=row["finished_at"],
        error=row["error"],
        progress=row["progress"],
        progress_message=row["progress_message"],
        epoch=max(0, row["epoch"]),
        runner_id=row["runner_id"],
        last_scheduled_at=row["tick_last"],
        tick_count=max(0, row["tick_count"]),
        next_attempt_at=row["due_at"] if state is RunState.WAITING else None,
        cancel_requested=state is RunState.RUNNING and row["cancel_reason"] is not None,
        result=bytes(row["result"] or b""),
        history=tuple(event_of(event) for event in row["history"]),
    )


def event_of(event: dict[str, Any]) -> RunEvent:
    return RunEvent(
        at=datetime.fromisoformat(event["at"]),
        state=RunState(event["state"]),
        outcome=Outcome(event["outcome"]) if event["outcome"] else None,
        attempt=event["attempt"],
        epoch=event["epoch"],
        runner_id=event["runner_id"],
        cause=event["cause"] or "",
    )
