"""Admission control for the API: limits on concurrent calls and streams, and on memory.

Guarantees: callers without the token get the lowest stream limit; one connection cannot take all
streams; a refusal carries a retry delay. Near the memory ceiling the API refuses new work and ends
the oldest streams, so that the sidecar keeps its term.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sidecar.model.errors import Overloaded

# Used if the container has no memory limit: several times the memory that a sidecar needs.
CEILING_BYTES = 512 * 1024 * 1024
_CEILING_SHARE = 0.85
_ENDED_SHARE = 0.1  # of the open streams, at each reading above the ceiling


@dataclass(frozen=True, slots=True)
class AdmissionLimits:
    """Limits per pod, except `connection_streams`, which is per connection."""

    open_streams: int = 16  # without the token
    streams: int = 1000
    connection_streams: int = 500
    calls: int = 1000  # unary calls


class Stream:
    """An open stream; `end` requests its end, with a status that gives the reason.

    A stream to `keep` is not ended when memory is short, and not refused.
    """

    __slots__ = ("authenticated", "connection", "end", "ended", "keep")

    def __init__(
        self,
        connection: str,
        authenticated: bool,
        end: Callable[[], object],
        *,
        keep: bool = False,
    ) -> None:
        self.keep = keep
        self.connection = connection
        self.authenticated = authenticated
        self.end = end
        self.ended = False


def memory_ceiling(limit_bytes: int | None) -> int:
    """The memory use at which this process refuses work. A limit of None means no limit is set."""
    return CEILING_BYTES if limit_bytes is None else int(limit_bytes * _CEILING_SHARE)


class Admission:
    """Counts open calls and streams, and refuses those above the limits."""

    def __init__(self, limits: AdmissionLimits | None = None) -> None:
        self.limits = limits or AdmissionLimits()
        self._streams: dict[Stream, None] = {}  # oldest first
        self._per_connection: Counter[str] = Counter()
        self._open = 0
        self._calls = 0
        self._memory_short = False

    @property
    def streams(self) -> int:
        return len(self._streams)

    @contextmanager
    def call(self, *, essential: bool = False) -> Iterator[None]:
        """Count one unary call; raise Overloaded above a limit.

        `essential` calls are admitted when memory is short, but not above the limit on calls.
        """
        if self._memory_short and not essential:
            raise Overloaded("memory is short on this pod")
        if self._calls >= self.limits.calls:
            raise Overloaded(f"{self.limits.calls} calls are under way on this pod")
        self._calls += 1
        try:
            yield
        finally:
            self._calls -= 1

    @contextmanager
    def stream(self, stream: Stream) -> Iterator[None]:
        """Count one stream while it is open; raise Overloaded above a limit."""
        self._check(stream)
        self._streams[stream] = None
        self._per_connection[stream.connection] += 1
        self._open += not stream.authenticated
        try:
            yield
        finally:
            del self._streams[stream]
            self._open -= not stream.authenticated
            self._per_connection[stream.connection] -= 1
            if not self._per_connection[stream.connection]:
                del self._per_connection[stream.connection]

    def record_memory(self, used_bytes: int, ceiling_bytes: int) -> int:
        """Record a reading; from the ceiling on, end the oldest streams and return their count."""
        self._memory_short = used_bytes >= ceiling_bytes
        if not self._memory_short:
            return 0
        open_ = [each for each in self._streams if not each.ended and not each.keep]
        # Streams without the token end first; a stable sort keeps the order by age.
        open_.sort(key=lambda stream: stream.authenticated)
        oldest = open_[: max(1, int(len(open_) * _ENDED_SHARE))]
        for stream in oldest:
            stream.ended = True
            stream.end()
        return len(oldest)

    def _check(self, stream: Stream) -> None:
        limits = self.limits
        if self._memory_short and not stream.keep:
            raise Overloaded("memory is short on this pod")
        if not stream.authenticated and self._open >= limits.open_streams:
            raise Overloaded(f"{limits.open_streams} streams without a token are open on this pod")
        if len(self._streams) >= limits.streams:
            raise Overloaded(f"{limits.streams} streams are open on this pod")
        if self._per_connection[stream.connection] >= limits.connection_streams:
            raise Overloaded(f"{limits.connection_streams} streams are open on this connection")
