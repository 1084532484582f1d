"""Loads the state that a run starts from, and applies its owner's schema to it.

Guarantees: a failed load raises a retryable error (StateLoadFailed) and never becomes the initial
state; bytes that cannot be decoded are set aside in Postgres, counted and logged before the run
starts from the initial state; an older `state.version` never sees what a newer one wrote.
"""

import asyncio
from dataclasses import dataclass

import structlog

from sidecar import metrics
from sidecar.model.definitions import State
from sidecar.model.errors import SchemaDecodeFailed, StateLoadFailed, StoreUnavailable
from sidecar.model.state_schema import decoded, initial_state
from sidecar.model.state_types import OwnedRecord, Owner
from sidecar.state.ports import StateTable

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class LoadedState:
    """The bytes to start from, and the version of their entry; 0: there is no entry."""

    value: bytes
    version: int


class StateLoader:
    def __init__(self, table: StateTable) -> None:
        self._table = table

    async def load(self, owner_kind: str, name: str, policy: State) -> LoadedState:
        """`owner_kind` is 'singleton' or 'schedule'."""
        owner = Owner(owner_kind, name)
        try:
            return await self._load(owner, policy)
        except StoreUnavailable as error:
            metrics.STATE_ERRORS.labels(StateLoadFailed.__name__).inc()
            raise StateLoadFailed(f"{owner.key}: {error}") from error

    async def _load(self, owner: Owner, policy: State) -> LoadedState:
        record = await self._table.load(owner, policy.version)
        if record is None or record.value is None:
            return LoadedState(initial_state(policy), _own_version(record, policy))
        try:
            value = await _decoded(record.value, policy)
        except SchemaDecodeFailed as error:
            metrics.STATE_ERRORS.labels(error.reason).inc()
            log.warning(
                "state_not_decodable",
                key=owner.key,
                state_version=record.state_version,
                version=record.version,
                problem=str(error),
                kept_in="state_set_aside",
            )
            await self._table.set_aside(owner, record, str(error))
            value = initial_state(policy)
        return LoadedState(value, _own_version(record, policy))


async def _decoded(stored: bytes, policy: State) -> bytes:
    """In a thread if there is a schema: applying it may take seconds, and pings cannot wait."""
    if not policy.schema:
        return stored
    return await asyncio.to_thread(decoded, stored, policy)


def _own_version(record: OwnedRecord | None, policy: State) -> int:
    """The version that a compare-and-set under the declared `state.version` must expect."""
    if record is None or record.value is None or record.state_version != policy.version:
        return 0
    return record.version
