"""State of the cluster: Postgres commits every change before it is acknowledged; Redis copies it.

Guarantees:
- G7: nothing acknowledged is lost. Redis is written after the commit, in the background; its copies
  are used only within the rules of `freshness`, and its failure never fails a call;
- G3: a write on behalf of a run succeeds only while that run is live under the current term;
- only the owner writes an owned key; Clear and Delete of others never touch it;
- STRONG reads, Has, List and Size come from Postgres;
- an entry that another session of Postgres has locked holds up no other for long: its writers try
  again by themselves, for LOCKED_SECONDS_MAX.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from sidecar.batching import Batcher
from sidecar.execution.authority import Authorities
from sidecar.hints import Hints
from sidecar.model.definitions import State
from sidecar.model.errors import (
    Conflict,
    Fenced,
    InvalidArgument,
    NotFound,
    RowLocked,
    SidecarError,
    StoreUnavailable,
)
from sidecar.model.run import RunRef
from sidecar.model.state import (
    OWNED_TTL_SECONDS_MIN,
    check_delete,
    check_key,
    check_prefix,
    check_put,
    owner_of,
)
from sidecar.model.state_types import Address, Delete, Page, Put, Reading, Record
from sidecar.state.copies import READ_BATCH, Copies
from sidecar.state.failures import Failures
from sidecar.state.hinting import CoalescedHints
from sidecar.state.ports import Policies, StateTable

PAGE_SIZE_DEFAULT = 100
PAGE_SIZE_MAX = 1000
TOPIC = "state"
LOCKED_SECONDS = 0.1
LOCKED_SECONDS_MAX = 3.0
_CLEAR_BATCH = 500


class StateStore:
    """Get, Put, Delete, Has, List, Size and Clear, from any pod."""

    def __init__(
        self,
        table: StateTable,
        copies: Copies,
        hints: Hints,
        policies: Policies,
        *,
        monotonic: Callable[[], float],
        authorities: Authorities | None = None,
    ) -> None:
        self._table = table
        self._copies = copies
        self._hints = CoalescedHints(hints, TOPIC)
        self._policies = policies
        self._monotonic = monotonic
        self._authorities = authorities or Authorities()
        self._failures = Failures(monotonic)
        self._put_batch = Batcher(
            table.put, name_of=lambda put: put.key, bytes_of=lambda put: len(put.value)
        )
        self._locked_batch = Batcher(
            table.put_free,
            name_of=lambda put: put.key,
            bytes_of=lambda put: len(put.value),
            lanes=1,
        )
        self._locked: Counter[str] = Counter()  # how many writers wait for each entry
        self._get_batch = Batcher(table.get, name_of=lambda address: address.key, size=READ_BATCH)

    async def get(self, key: str, *, strong: bool = False) -> Record:
        check_key(key)
        address = await self._address(key)
        record = None if strong else await self._copies.find(address)
        if record is None:
            record = (await self._read(address)).record
        if record is None or record.value is None:
            raise NotFound(f"there is no entry {key}")
        return record

    async def has(self, key: str) -> bool:
        check_key(key)
        record = (await self._read(await self._address(key))).record
        return record is not None and record.value is not None

    async def put(self, put: Put) -> Record:
        check_put(put)
        policy = await self._policy(put.key)
        address = Address(put.key, policy.version if policy else None)
        if policy and policy.ttl_seconds and put.ttl_seconds is None:
            put = replace(put, ttl_seconds=max(policy.ttl_seconds, OWNED_TTL_SECONDS_MIN))
        asked = self._monotonic()
        try:
            written = await self._write(put, address)
        except SidecarError as error:
            raise self._not_written(error, put.run) from error
        assert written.record is not None  # noqa: S101 - a put returns the record it wrote
        self._changed(address, written, asked)
        return written.record

    def returned(self, key: str, state_version: int) -> None:
        """A run completed on this pod and returned this state; its completion stored it."""
        self._copies.outdated(Address(key, state_version))
        self._hints.notify()

    async def delete(self, delete: Delete) -> bool:
        """Returns whether there was an entry."""
        check_delete(delete)
        address = await self._address(delete.key)
        asked = self._monotonic()
        try:
            if delete.run is None:
                gone = await self._table.delete(delete)
            else:
                version = _written_version(address)
                gone = await self._table.delete_fenced(delete, delete.run, version)
        except SidecarError as error:
            raise self._not_written(error, delete.run) from error
        if gone is not None:
            self._changed(address, gone, asked)
            return True
        if delete.expected_version is not None:
            raise Conflict(f"{delete.key} does not have version {delete.expected_version}")
        # Another pod deleted it: this read makes sure that the next `get` returns no older copy.
        await self._read(address)
        return False

    async def list_page(self, prefix: str, *, after: str = "", limit: int = 0) -> Page:
        check_prefix(prefix)
        if not 0 <= limit <= PAGE_SIZE_MAX:
            raise InvalidArgument("page_size", f"must be 0 to {PAGE_SIZE_MAX}")
        try:
            return await self._table.page(prefix, after, limit or PAGE_SIZE_DEFAULT)
        except StoreUnavailable as error:
            raise self._failures.load(error) from error

    async def size(self, prefix: str) -> int:
        check_prefix(prefix)
        try:
            return await self._table.size(prefix)
        except StoreUnavailable as error:
            raise self._failures.load(error) from error

    async def clear(self, prefix: str) -> int:
        """Returns how many entries were deleted. A failed call may be repeated."""
        check_prefix(prefix)
        deleted, after = 0, ""
        while True:
            asked = self._monotonic()
            try:
                gone, live = await self._table.clear(prefix, after, _CLEAR_BATCH)
            except StoreUnavailable as error:
                raise self._failures.persist(error) from error
            deleted += live
            for reading in gone:
                assert reading.record is not None  # noqa: S101 - a tombstone
                after = max(after, reading.record.key)
                self._changed(Address(reading.record.key), reading, asked)
            if len(gone) < _CLEAR_BATCH:
                # Other pods may have deleted more of them just before.
                self._copies.cleared(prefix)
                return deleted

    async def _write(self, put: Put, address: Address) -> Reading:
        if put.run is not None:
            return await self._table.put_fenced(put, put.run, _written_version(address))
        written = await (self._locked_batch if put.key in self._locked else self._put_batch)(put)
        if isinstance(written, RowLocked):
            written = await self._retried(put, written)
        if isinstance(written, SidecarError):
            raise written
        return written

    async def _retried(self, put: Put, locked: SidecarError) -> Reading | SidecarError:
        """Write the entry as soon as it is free; meanwhile its writers share no other batch."""
        until = self._monotonic() + LOCKED_SECONDS_MAX
        written: Reading | SidecarError = locked
        self._locked[put.key] += 1
        try:
            while isinstance(written, RowLocked) and self._monotonic() < until:
                await asyncio.sleep(LOCKED_SECONDS)
                written = await self._locked_batch(put)
        finally:
            self._locked -= Counter((put.key,))
        return written

    def _not_written(self, error: SidecarError, run: RunRef | None) -> SidecarError:
        """The error for the caller."""
        if run and isinstance(error, Fenced):
            self._authorities.write_refused(run.epoch)
        return self._failures.persist(error)

    async def _read(self, address: Address) -> Reading:
        asked = self._monotonic()
        try:
            reading = await self._get_batch(address)
        except StoreUnavailable as error:
            raise self._failures.load(error) from error
        self._copies.remember(address, reading, asked)
        return reading

    async def _address(self, key: str) -> Address:
        policy = await self._policy(key)
        return Address(key, policy.version if policy else None)

    async def _policy(self, key: str) -> State | None:
        owner = owner_of(key)
        if owner is None:
            return None
        try:
            return await self._policies(owner)
        except StoreUnavailable as error:
            raise self._failures.load(error) from error

    def _changed(self, address: Address, reading: Reading, asked: float) -> None:
        self._copies.remember(address, reading, asked)
        self._hints.notify()


def _written_version(address: Address) -> int:
    """The `state.version` to write: 1 for an owner that this pod does not know, 0 without owner."""
    return address.state_version or (1 if owner_of(address.key) else 0)
