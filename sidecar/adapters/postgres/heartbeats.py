"""Heartbeats and vitals of singletons and schedules, in Postgres.

Guarantees: a heartbeat is written only under the term it belongs to (G3); every statement ends
within 3 s or raises StoreUnavailable; reading ten thousand schedules never blocks the event loop
for long. The expected interval of a cron expression takes milliseconds to compute, so it is
computed only for schedules that may be late: those without a success in twice the time between
their last tick and the next one.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from time import monotonic
from typing import Protocol

import structlog

from sidecar.adapters.postgres import arrays
from sidecar.adapters.postgres.database import Database, Row
from sidecar.adapters.postgres.definitions import from_json
from sidecar.model.errors import SidecarError
from sidecar.model.health import Vitals, VitalsReading, expected_seconds
from sidecar.model.identity import Identity
from sidecar.model.term import Term
from sidecar.slices import in_slices

log = structlog.get_logger()

SCHEDULES_MAX = 20_000
_SECONDS_MAX = 3.0
_SUSPECTS_MAX = 200  # computed per reading, within this time:
_DERIVING_SECONDS_MAX = 0.3
_ROWS_AT_ONCE = 200
_NO_SIGNS: Row = {"heartbeat_at": None, "last_run_at": None, "last_success_at": None}


class Singleton(Protocol):
    """What the config says of a singleton."""

    @property
    def name(self) -> str: ...
    @property
    def group(self) -> str: ...
    @property
    def expected_interval_seconds(self) -> float: ...


class Heartbeats:
    """The vitals of one cluster. `identity` is called each time: it is known after joining."""

    def __init__(
        self, database: Database, identity: Callable[[], Identity], singletons: Iterable[Singleton]
    ) -> None:
        self._database = database
        self._identity = identity
        self._singletons = singletons
        self._first_seen: dict[str, datetime] = {}
        self._paces = _Paces(database, identity)

    async def beat(self, term: Term, older_than_seconds: float) -> bool:
        """Write the heartbeats that are due. False: the term is over and nothing was written."""
        singletons = [each for each in self._singletons if each.group == term.group]
        row = await self._database.fetch_one(
            "heartbeats/beat",
            {
                "cluster_id": self._identity().cluster_id,
                "group_id": term.group_id,
                "epoch": term.epoch,
                "singletons": [each.name for each in singletons],
                "expected": [each.expected_interval_seconds for each in singletons],
                "older_than_seconds": older_than_seconds,
            },
            seconds=_SECONDS_MAX,
        )
        return bool(row and row["is_current"])

    async def read(self, groups: Sequence[str], limit: int = SCHEDULES_MAX) -> VitalsReading:
        """The vitals of all singletons in these groups, and of at most `limit` schedules."""
        ids = {number: name for name, number in self._identity().groups.items() if name in groups}
        rows = await self._fetch("schedules", group_ids=list(ids), limit=limit)
        now: datetime = rows[0]["now"]
        schedules = [row for row in rows if row["id"]]
        names = arrays.texts(row["name"] for row in schedules)
        found_signs = await self._fetch("executions", names=names) if schedules else []
        signs = {row["name"]: row for row in found_signs}
        async for row in in_slices(schedules, _ROWS_AT_ONCE):
            row |= signs.get(row["name"], _NO_SIGNS)
            row["counted_from"] = _counted_from(row)
        await self._paces.derive(schedules, now)
        found = list(await self._read_singletons(groups, now))
        found += [self._schedule(row, ids) async for row in in_slices(schedules, _ROWS_AT_ONCE)]
        return VitalsReading(now, tuple(found))

    async def _fetch(self, query: str, **parameters: object) -> list[Row]:
        return await self._database.fetch(
            f"heartbeats/{query}",
            {"cluster_id": self._identity().cluster_id, **parameters},
            seconds=_SECONDS_MAX,
        )

    def _schedule(self, row: Row, groups: dict[int, str]) -> Vitals:
        expected = row["expected_seconds"]
        return Vitals(
            kind="schedule",
            name=row["name"],
            group=groups[row["group_id"]],
            counted_from=row["counted_from"],
            expected_seconds=self._paces.known(row) if expected is None else expected,
            watched=row["watched"],
            heartbeat_at=row["heartbeat_at"],
            last_run_at=row["last_run_at"],
            last_success_at=row["last_success_at"],
            next_run_at=row["next_tick"] if row["watched"] else None,
        )

    async def _read_singletons(self, groups: Sequence[str], now: datetime) -> list[Vitals]:
        wanted = {each.name: each for each in self._singletons if each.group in groups}
        rows = await self._fetch("singletons", names=list(wanted)) if wanted else []
        return [self._singleton(row, wanted[row["name"]], now) for row in rows]

    def _singleton(self, row: Row, configured: Singleton, now: datetime) -> Vitals:
        # Without a run on record: when this process first saw it.
        first_seen = self._first_seen.setdefault(row["name"], now)
        counted_from, expected = row["created_at"] or first_seen, row["expected_seconds"]
        # A changed interval counts from the first heartbeat that is written with it.
        unchanged = expected is not None and expected == configured.expected_interval_seconds
        return Vitals(
            kind="singleton",
            name=row["name"],
            group=configured.group,
            counted_from=max(counted_from, row["expected_since"] or counted_from),
            expected_seconds=expected if unchanged else 0.0,
            heartbeat_at=row["heartbeat_at"],
            last_run_at=row["last_run_at"],
            last_success_at=row["last_success_at"],
        )


class _Paces:
    """The expected intervals of cron schedules that may be late, computed a few at a time."""

    def __init__(self, database: Database, identity: Callable[[], Identity]) -> None:
        self._database = database
        self._identity = identity
        # By schedule id: version and next tick that it was computed from, and the seconds.
        self._derived: dict[int, tuple[tuple[int, datetime], float]] = {}

    def known(self, row: Row) -> float:
        """The expected interval in seconds; 0 if it is not computed yet.

        After a tick the previous value is used until the new one is computed: otherwise a schedule
        that is late would look healthy meanwhile.
        """
        (version, _), seconds = self._derived.get(row["id"], ((None, None), 0.0))
        return seconds if version == row["version"] else 0.0

    def _up_to_date(self, row: Row) -> bool:
        return row["id"] in self._derived and self._derived[row["id"]][0] == _stamp(row)

    async def derive(self, rows: Iterable[Row], now: datetime) -> None:
        suspects = {row["id"]: row for row in rows if _may_be_late(row, now)}
        self._derived = {key: each for key, each in self._derived.items() if key in suspects}
        missing = [key for key, row in suspects.items() if not self._up_to_date(row)]
        if not missing:
            return
        missing.sort(key=self._derived.__contains__)  # those never computed come first
        definitions = await self._database.fetch(
            "heartbeats/definitions", {"ids": missing[:_SUSPECTS_MAX]}, seconds=_SECONDS_MAX
        )
        deadline = monotonic() + _DERIVING_SECONDS_MAX
        for stored in definitions:
            self._derived[stored["id"]] = (_stamp(suspects[stored["id"]]), self._pace(stored, now))
            await asyncio.sleep(0)  # milliseconds each: let pings and probes run in between
            if monotonic() > deadline:
                return

    def _pace(self, stored: Row, now: datetime) -> float:
        try:
            schedule = from_json(stored["name"], "", b"", stored["definition"])
            return expected_seconds(schedule, self._identity().cluster, now)
        except SidecarError as error:  # such as an unknown time zone
            log.warning("pace_unknown", schedule=stored["name"], error=error)
            return 0.0


def _counted_from(row: Row) -> datetime:
    """Nothing is expected of a schedule before it starts."""
    counted_from: datetime = row["counted_from"]
    if row["start_at"] is None:
        return counted_from
    try:
        return max(counted_from, datetime.fromisoformat(row["start_at"]))
    except (ValueError, TypeError):  # damaged: the leader logs it
        return counted_from


def _stamp(row: Row) -> tuple[int, datetime]:
    return row["version"], row["next_tick"]


def _may_be_late(row: Row, now: datetime) -> bool:
    if row["expected_seconds"] is not None or not row["watched"]:
        return False
    success = max(row["last_success_at"] or row["counted_from"], row["counted_from"])
    return bool(now - success > 2 * (row["next_tick"] - row["watermark"]))
