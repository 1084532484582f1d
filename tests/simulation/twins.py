"""The same calls on the modelled and on the real tables, and their answers in common words.

Run ids, epochs and instants differ between two databases, so runs are named by the order of their
birth, and instants count only as far as they decide something: there or not, past or future.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import UTC, datetime
from enum import Enum
from typing import Any, TypeVar, cast

from sidecar.adapters.postgres.heartbeats import Heartbeats
from sidecar.adapters.postgres.run_records import PostgresRunRecords
from sidecar.model.definitions import Schedule, Singleton
from sidecar.model.errors import SidecarError
from sidecar.model.run import RunRef
from sidecar.model.schedule import timing_of
from sidecar.model.stored_schedule import created
from sidecar.model.term import Term
from tests.integration.runs_lab import Lab
from tests.simulation.run_statements import RunStatements
from tests.simulation.schedule_statements import ScheduleStatements
from tests.simulation.tables import CLUSTER, RunRow, Segment, Tables
from tests.simulation.work_client import ModelPool, ModelRuns, ModelSchedules

T = TypeVar("T")
# What the model leaves out, or what is no decision of the database.
_UNTOLD = {
    "idempotency_key", "scheduled_at", "metadata", "queued_seconds", "late_seconds", "seconds",
    "finished_at", "now", "content_type", "state_policy", "has_state", "note", "counted_from",
    "created_at", "changed_at", "pause_note", "payload", "state_version", "missed_total",
}  # fmt: skip
_ROW = (
    "kind", "name", "group_id", "tick_count", "state", "outcome", "reason", "attempt",
    "attempts_free", "failures", "epoch", "overlap", "backfill", "cancel_reason",
)  # fmt: skip


_RUNS = "SELECT *, due_at <= clock_timestamp() AS due FROM baton.run ORDER BY id"
_STATES = "SELECT key, value FROM baton.state"


@dataclass(slots=True)
class Twin:
    """One of the two; `ids` are its runs in the order of their birth."""

    runs: Any
    records: Any
    schedules: Any
    beats: Any
    ids: list[int]

    def run_id(self, number: int) -> int:
        return self.ids[number] if number < len(self.ids) else 10**9

    def ref(self, ref: RunRef) -> RunRef:
        """A reference whose run is given by its number."""
        return replace(ref, run_id=self.run_id(ref.run_id))

    def told(self, answer: Any) -> Any:
        """An answer in words that both understand."""
        match answer:
            case SidecarError():
                return type(answer).__name__
            case datetime():
                return _instant(answer)
            case Enum():
                return answer.value
            case Mapping():
                return {self._number(key): self.told(value) for key, value in answer.items()}
            case str() | bytes():
                return answer
            case frozenset():
                return sorted(answer)
            case Sequence():
                return sorted((self.told(each) for each in answer), key=repr)
        return self._fields(answer) if is_dataclass(answer) else answer

    def _fields(self, answer: Any) -> dict[str, Any]:
        told = {
            field.name: self.told(getattr(answer, field.name))
            for field in fields(answer)
            if field.name not in _UNTOLD
        }
        for key in ("run_id", "running_ids", "waiting_ids", "backfill_ids"):
            if key in told:
                ids = getattr(answer, key)
                told[key] = sorted(map(self._number, ids)) if key != "run_id" else self._number(ids)
        return told

    def _number(self, run_id: Any) -> Any:
        return self.ids.index(run_id) if run_id in self.ids else run_id


class _AtOnce:
    """In place of the pool of connections."""

    async def call(self, act: Callable[..., T], *arguments: Any) -> T:
        return act(*arguments)

    @property
    def world(self) -> Any:
        return self

    now = 0.0


class _NoJudge:
    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *_: None


class Twins:
    """Both, side by side."""

    def __init__(
        self, lab: Lab, singletons: list[Singleton], statements: type[RunStatements] = RunStatements
    ) -> None:
        self._lab = lab
        self._epochs: dict[int, int] = {}
        self._tables = Tables(
            now=lambda: datetime.now(UTC),
            seconds=lambda: 0.0,
            stands=lambda group_id, epoch: self._epochs.get(group_id) == epoch,
            vacant=lambda group_id: self._epochs.get(group_id, 0),  # no runner lives in the lab
            auditor=cast(Any, _NoJudge()),
        )
        groups = dict(lab.identity.groups)
        pool = cast(ModelPool, _AtOnce())
        runs = ModelRuns(pool, statements(self._tables))
        schedules = ModelSchedules(pool, ScheduleStatements(self._tables, groups, singletons))
        self.model = Twin(runs, runs, schedules, schedules, [])
        self.real = Twin(
            lab.runs,
            PostgresRunRecords(lab.database, lab.who),
            lab.schedules,
            Heartbeats(lab.database, lambda: lab.identity, singletons),
            [],
        )

    async def term(self, group: str) -> Term:
        term = await self._lab.term(group)
        self._epochs[term.group_id] = term.epoch
        return term

    async def add(self, definition: Schedule, moment: datetime) -> None:
        """A schedule as if it had been created then."""
        change = created(definition, "api", self._lab.identity.cluster, moment)
        await self._lab.schedules.create(definition.name, lambda _: change)
        number = len(self._tables.schedules) + 1
        stored = replace(change.after, id=number, version=1, counted_from=datetime.now(UTC))
        self._tables.put_schedule(stored)
        self._tables.segments[number] = (Segment(timing_of(definition, CLUSTER), moment),)

    async def ask(self, call: Callable[[Twin], Any]) -> tuple[Any, Any]:
        """What the model and the real one answer, and what stands there then, in common words."""
        answers = [await _answer(twin, call) for twin in (self.model, self.real)]
        rows = await self._lab.sql(_RUNS)
        self.model.ids, self.real.ids = sorted(self._tables.runs), [row["id"] for row in rows]
        states = {row["key"]: bytes(row["value"]) for row in await self._lab.sql(_STATES)}
        modelled = [_modelled(run) for _, run in sorted(self._tables.runs.items())]
        found = [{key: row[key] for key in _ROW} | _instants(row) for row in rows]
        return (
            (self.model.told(answers[0]), modelled, self._tables.states),
            (self.real.told(answers[1]), found, states),
        )


def _instant(instant: datetime) -> str:
    """A tick, which is of an hour here, is the same for both."""
    if instant <= datetime.now(UTC):
        return "past"
    return "future" if instant.second or instant.minute else instant.isoformat()


async def _answer(twin: Twin, call: Callable[[Twin], Any]) -> Any:
    try:
        return await call(twin)
    except SidecarError as error:
        return error


def _modelled(run: RunRow) -> dict[str, Any]:
    row = {key: getattr(run, key) for key in _ROW}
    row = {key: value.value if isinstance(value, Enum) else value for key, value in row.items()}
    whole = {field.name: getattr(run, field.name) for field in fields(run)}
    return row | _instants(whole | {"due": run.due_at <= datetime.now(UTC)})


def _instants(row: Mapping[str, Any]) -> dict[str, Any]:
    there = ("finished_at", "attempt_started_at")
    tick = str(row["kind"]) == "schedule" or getattr(row["kind"], "value", "") == "schedule"
    return {
        "due": row["due"],
        "tick": row["tick"] if tick else None,
        "tick_last": row["tick_last"],
        **{key: row[key] is not None for key in there},
    }
