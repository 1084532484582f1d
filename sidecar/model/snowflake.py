"""64-bit ids that grow with time: 42 bits milliseconds since 2025-01-01, 10 machine, 12 sequence.

A runner counts positions: milliseconds and sequence as one number. Positions never decrease: if the
clock steps back, or a millisecond needs more than 4,096 ids, the runner uses positions ahead of the
clock. Ids stay inside the window of time that is reserved for the machine number. Windows of one
machine number never overlap, so successive holders of the number never issue the same id.
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
    """The parts of an id."""

    at: datetime
    machine: int
    sequence: int


def decomposed(id: int) -> Parts:
    """The parts of any unsigned 64-bit number."""
    if not 0 <= id < 1 << 64:
        raise ValueError("an id is an unsigned 64-bit number")
    return Parts(
        at=EPOCH + timedelta(milliseconds=id >> (_SEQUENCE_BITS + _MACHINE_BITS)),
        machine=(id >> _SEQUENCE_BITS) & (MACHINES_MAX - 1),
        sequence=id & _SEQUENCE_MASK,
    )


@dataclass(frozen=True, slots=True)
class Window:
    """A machine number, reserved for ids in [floor_ms, ceiling_ms)."""

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
    """A window that Postgres reserved, and its clock in milliseconds since EPOCH."""

    window: Window
    now_ms: int


def taken(window: Window, position: int, now_ms: int, count: int) -> tuple[list[int], int] | None:
    """`count` ascending ids and the next free position; None if the window has too little room."""
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
    """The first millisecond without any issued id."""
    return -(-position >> _SEQUENCE_BITS)


def first_position(window: Window, position: int) -> int:
    """The first position in a new window: above all issued ids, even of other machine numbers."""
    return max(used_ms(position), window.floor_ms) << _SEQUENCE_BITS
