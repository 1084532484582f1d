"""The state that a run starts from: read from Postgres, fitted to what its owner declares.

Guarantees: a load that fails is an error to be tried again (StateLoadFailed) and never becomes the
initial state; bytes that cannot be decoded are set aside in Postgres before the run starts from the
initial state, counted and logged; an older `state.version` never sees what a newer one wrote.
"""

import asyncio
from dataclasses import dataclass

import structlog

from sidecar import metrics
from sidecar.model.errors import SchemaDecodeFailed, StateLoadFailed, StoreUnavailable
from sidecar.model.state_schema import StatePolicy, decoded, initial_state
from sidecar.model.state_words import OwnedRecord, Owner
from sidecar.state.ports import Truth

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class LoadedState:
    """The bytes to start from, and the version of the entry they are from; 0: there is none."""

    value: bytes
    version: int


class StateLoader:
    def __init__(self, truth: Truth) -> None:
        self._truth = truth

    async def load(self, owner_kind: str, name: str, policy: StatePolicy) -> LoadedState:
        """`owner_kind` is 'singleton' or 'schedule'."""
        owner = Owner(owner_kind, name)
        try:
            return await self._load(owner, policy)
        except StoreUnavailable as error:
            metrics.STATE_ERRORS.labels(StateLoadFailed.__name__).inc()
            raise StateLoadFailed(f"{owner.key}: {error}") from error

    async def _load(self, owner: Owner, policy: StatePolicy) -> LoadedState:
        record = await self._truth.load(owner, policy.version)
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
            await self._truth.set_aside(owner, record, str(error))
            value = initial_state(policy)
        return LoadedState(value, _own_version(record, policy))


async def _decoded(stored: bytes, policy: StatePolicy) -> bytes:
    """In a thread where a schema is applied: that may take seconds, which pings cannot wait."""
    if not policy.schema:
        return stored
    return await asyncio.to_thread(decoded, stored, policy)


def _own_version(record: OwnedRecord | None, policy: StatePolicy) -> int:
    """What a compare-and-set of the declared state.version must expect."""
    if record is None or record.value is None or record.state_version != policy.version:
        return 0
    return record.version
