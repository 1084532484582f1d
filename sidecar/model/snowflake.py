"""64-bit ids that rise with time: 42 bits milliseconds since 2025-01-01, 10 machine, 12 sequence.

A runner counts positions: milliseconds and sequence as one number. It never goes back, whatever
the clock does: a clock that stepped back, or more than 4,096 ids in a millisecond, borrow from the
future. It stays inside the window of time that was reserved for its machine number; windows of one
number never overlap, so neither do the ids of those who hold it one after the other.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

EPOCH = datetime(2025, 1, 1, tzinfo=UTC)
EPOCH_UNIX_MS = int(EPOCH.timestamp() * 1000)
MACHINES_MAX = 1024
BATCH_MAX = 10_000
_SEQUENCE_BITS = 12
_MACHINE_BITS = 10
_SEQUENCE_MASK = (1 << _SEQUENCE_BITS) - 1
_MS_MAX = (1 << 42) - 1


@dataclass(frozen=True, slots=True)
class Parts:
    """What an id is made of."""

    at: datetime
    machine: int
    sequence: int


def decomposed(id: int) -> Parts:
    """Take any 64-bit number apart."""
    if not 0 <= id < 1 << 64:
        raise ValueError("an id is an unsigned 64-bit number")
    return Parts(
        at=EPOCH + timedelta(milliseconds=id >> (_SEQUENCE_BITS + _MACHINE_BITS)),
        machine=(id >> _SEQUENCE_BITS) & (MACHINES_MAX - 1),
        sequence=id & _SEQUENCE_MASK,
    )


@dataclass(frozen=True, slots=True)
class Window:
    """A machine number is ours for ids of `floor_ms` up to, not including, `ceiling_ms`."""

    machine: int
    floor_ms: int  # since EPOCH
    ceiling_ms: int

    def __post_init__(self) -> None:
        if not 0 <= self.machine < MACHINES_MAX:
            raise ValueError(f"machine {self.machine} is outside of 0 to {MACHINES_MAX - 1}")
        if not 0 <= self.floor_ms <= self.ceiling_ms <= _MS_MAX:
            raise ValueError(f"{self.floor_ms} to {self.ceiling_ms} ms is no window")


@dataclass(frozen=True, slots=True)
class Lease:
    """A window as Postgres gave it, and the time there, in milliseconds since EPOCH."""

    window: Window
    now_ms: int


def taken(window: Window, position: int, now_ms: int, count: int) -> tuple[list[int], int] | None:
    """`count` rising ids and the next free position; None if they do not fit into the window."""
    first = max(position, window.floor_ms << _SEQUENCE_BITS, now_ms << _SEQUENCE_BITS)
    end = first + count
    if end > window.ceiling_ms << _SEQUENCE_BITS:
        return None
    stamp = window.machine << _SEQUENCE_BITS
    ids = [
        (each >> _SEQUENCE_BITS << (_SEQUENCE_BITS + _MACHINE_BITS)) | stamp | each & _SEQUENCE_MASK
        for each in range(first, end)
    ]
    return ids, end


def used_ms(position: int) -> int:
    """The first millisecond of which no id was given out."""
    return -(-position >> _SEQUENCE_BITS)


def first_position(window: Window, position: int) -> int:
    """Where to go on under a new window: above all ids given out, whatever the machine number."""
    return max(used_ms(position), window.floor_ms) << _SEQUENCE_BITS
