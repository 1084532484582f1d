"""Copies of state in Redis: intact or absent, the newest wins, each expires.

Guarantees:
- every call ends within the time limit, and every failure is a CacheError;
- a copy never overwrites a newer version (a script compares and sets in Redis itself);
- a returned copy was written by a sidecar of this installation under this key and is intact: a
  checksum covers key and content. Any other value is treated as absent and removed, so that it does
  not prevent correct writes.

`state/freshness.py` decides how old a copy may be: it contains the time of the read of Postgres.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from sidecar.adapters.redis_client import redis_client
from sidecar.model.state_types import Address, Cached, CacheError, Record

T = TypeVar("T")

_FORMAT = b"1"
_DIGEST_BYTES = 16
_NUMBER = 20  # digits: more than 64 bits need
_HEAD = len(_FORMAT) + 1 + 4 * _NUMBER
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

# The version is at a fixed offset. A value that is not a copy of ours is overwritten.
_KEEP_NEWEST = """
local head = redis.pcall('GETRANGE', KEYS[1], 0, 21)
if type(head) == 'string' and string.sub(head, 1, 1) == '1' then
  local held = tonumber(string.sub(head, 3, 22))
  if held and held > tonumber(ARGV[2]) then return 0 end
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[3])
return 1
"""


class RedisCache:
    """`url` is called again after a failure, so that a changed secret is used."""

    def __init__(self, url: Callable[[], str], *, timeout_seconds: float) -> None:
        self._url = url
        self._seconds = timeout_seconds
        self._used_url = ""
        self._client: Any = None
        self._to_close: list[Any] = []
        self._under_way: set[asyncio.Future[Any]] = set()

    async def get(self, space: str, addresses: Sequence[Address]) -> list[Cached | None]:
        names = [_name(space, address) for address in addresses]

        async def ask(client: Any) -> list[Cached | None]:
            blobs = await _blobs(client, names)
            found = list(map(_decoded, names, addresses, blobs))
            await _remove(client, names, blobs, found)
            return found

        return await self._bounded(ask)

    async def put(self, space: str, entries: Sequence[Cached], seconds: Sequence[float]) -> None:
        async def tell(client: Any) -> None:
            pipeline = client.pipeline(transaction=False)
            for cached, kept_seconds in zip(entries, seconds, strict=True):
                name = _name(space, cached.address)
                milliseconds = max(1, round(kept_seconds * 1000))
                blob = _encoded(name, cached)
                pipeline.eval(_KEEP_NEWEST, 1, name, blob, cached.record.version, milliseconds)
            await pipeline.execute()

        await self._bounded(tell)

    async def ping(self) -> None:
        """Raise CacheError unless Redis answers."""
        await self._bounded(lambda client: client.ping())

    async def close(self) -> None:
        if self._under_way:
            await asyncio.wait(self._under_way, timeout=1.0)
        await self._drop_client()

    async def _bounded(self, exchange: Callable[[Any], Awaitable[T]]) -> T:
        """The answer within the time limit, or CacheError.

        An exchange that is late is left to end by its own socket timeouts: redis-py leaks the
        connection when it is cancelled while connecting.
        """
        work = asyncio.ensure_future(self._exchanged(exchange))
        self._under_way.add(work)
        work.add_done_callback(self._ended)
        await asyncio.wait({work}, timeout=self._seconds)
        if not work.done():
            raise CacheError(f"no answer within {self._seconds:g} s")
        return work.result()

    async def _exchanged(self, exchange: Callable[[Any], Awaitable[T]]) -> T:
        try:
            if self._client is None:
                self._used_url = self._url()
                self._client, self._to_close = redis_client(self._used_url, self._seconds)
            return await exchange(self._client)
        except Exception as error:
            # redis-py raises many kinds of errors: none of them may fail a call.
            with suppress(Exception):
                if _is_lost(error) or self._url() != self._used_url:
                    await self._drop_client()
            raise CacheError(f"{type(error).__name__}: {error}") from error

    def _ended(self, work: asyncio.Future[Any]) -> None:
        self._under_way.discard(work)
        if not work.cancelled():
            work.exception()  # the caller may have timed out: mark the error as retrieved

    async def _drop_client(self) -> None:
        self._client, to_close, self._to_close = None, self._to_close, []
        for client in to_close:
            with suppress(Exception):
                await client.aclose()


def _is_lost(error: Exception) -> bool:
    """A cluster client knows only the nodes that it found last. When none of them is left, for
    example after a restart of all with new addresses, it must start again from the URL."""
    from redis.exceptions import RedisClusterException

    return isinstance(error, RedisClusterException)


async def _blobs(client: Any, names: list[bytes]) -> Sequence[Any]:
    if len(names) == 1:
        return [await client.get(names[0])]
    pipeline = client.pipeline(transaction=False)
    for name in names:
        pipeline.get(name)
    blobs: Sequence[Any] = await pipeline.execute(raise_on_error=False)
    return blobs


async def _remove(
    client: Any, names: list[bytes], blobs: Sequence[Any], found: list[Cached | None]
) -> None:
    """Remove a value that is not a copy: its version could prevent correct writes."""
    for name, blob, cached in zip(names, blobs, found, strict=True):
        if isinstance(blob, Exception) and "WRONGTYPE" not in str(blob):
            raise blob
        if blob is not None and cached is None:
            await client.delete(name)


def _name(space: str, address: Address) -> bytes:
    version = "" if address.state_version is None else address.state_version
    return f"baton:{space}:{version}:{address.key}".encode()


def _encoded(name: bytes, cached: Cached) -> bytes:
    record = cached.record
    numbers = (
        record.version,
        _microseconds(cached.as_of),
        _microseconds(record.updated_at),
        _microseconds(record.expires_at) if record.expires_at else 0,
    )
    kind = b"t" if record.value is None else b"e"
    head = _FORMAT + kind + b"".join(b"%020d" % number for number in numbers)
    body = head + (record.value or b"")
    return body + _digest(name, body)


def _decoded(name: bytes, address: Address, blob: Any) -> Cached | None:
    """The entry that was encoded under this name; None for any other value."""
    if not isinstance(blob, bytes) or len(blob) < _HEAD + _DIGEST_BYTES:
        return None
    body = blob[:-_DIGEST_BYTES]
    if blob[:1] != _FORMAT or _digest(name, body) != blob[-_DIGEST_BYTES:]:
        return None
    version, as_of, updated_at, expires_at = (
        int(body[start : start + _NUMBER]) for start in range(2, _HEAD, _NUMBER)
    )
    record = Record(
        key=address.key,
        version=version,
        value=None if body[1:2] == b"t" else body[_HEAD:],
        updated_at=_instant(updated_at),
        expires_at=_instant(expires_at) if expires_at else None,
    )
    return Cached(address, record, _instant(as_of))


def _digest(name: bytes, body: bytes) -> bytes:
    digest = hashlib.blake2b(name, digest_size=_DIGEST_BYTES)
    digest.update(b"\0")
    digest.update(body)
    return digest.digest()


def _microseconds(at: datetime) -> int:
    return (at - _EPOCH) // _MICROSECOND


def _instant(microseconds: int) -> datetime:
    return _EPOCH + microseconds * _MICROSECOND
