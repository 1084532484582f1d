"""Converts rows of the state queries."""

from collections.abc import Callable

from sidecar.adapters.postgres.database import Row
from sidecar.model.errors import (
    Conflict,
    DamagedRow,
    FailedPrecondition,
    Fenced,
    InvalidArgument,
    SidecarError,
)
from sidecar.model.run import RunRef
from sidecar.model.state_types import Put, Reading, Record


def record_of(row: Row, key: str) -> Record:
    if row["version"] < 0:
        raise DamagedRow(f"state {key!r} is damaged in the database: its version is negative")
    return Record(key, row["version"], row.get("value"), row["updated_at"], row.get("expires_at"))


def reading_of(row: Row, key: str) -> Reading:
    return Reading(record_of(row, key) if row["version"] else None, row["as_of"])


def put_answer(put: Put, row: Row | None, digest: Callable[[Put], bytes]) -> Reading | SidecarError:
    """The result of a put; a row with a digest is the answer to an earlier request."""
    if row is None:
        wanted = put.expected_version
        return Conflict(
            f"{put.key} exists already"
            if wanted == 0
            else f"{put.key} does not have version {wanted}"
        )
    earlier_digest = row.get("digest")
    if earlier_digest is not None and earlier_digest != digest(put):
        return InvalidArgument("request_id", "was used for another value of this key")
    record = Record(put.key, row["version"], put.value, row["updated_at"], row["expires_at"])
    return Reading(record, row["as_of"], current=earlier_digest is None)


def allowed(row: Row, run: RunRef, key: str) -> None:
    """Raise unless the run may write the key."""
    if not row["live"]:
        raise Fenced(f"attempt {run.attempt} of run {run.run_id} (epoch {run.epoch}) is not live")
    if not row["allowed"]:
        raise FailedPrecondition(
            f"{key} is written only by its owner, which run {run.run_id} is not"
        )
