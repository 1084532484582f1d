"""Limits on the HTTP/2 frames that a peer of the API may send, counted from their headers.

gRPC's core allocates memory for each PING and SETTINGS reply, reads header blocks of any length,
and stores every field of a block before it counts them: a few megabytes of such frames use a
gigabyte. A `FrameMeter` gets the bytes of one connection before gRPC does and returns the first
limit that they exceed.

It reads only the 9-byte header of each frame (RFC 9113, section 4.1), so large messages cost almost
nothing.
"""

from dataclasses import dataclass

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _RST_STREAM, _WINDOW_UPDATE, _CONTINUATION = 0, 1, 3, 8, 9
_FRAME_HEADER_BYTES = 9
_SMALL_BYTES = 64  # an empty message of a stream has 5


@dataclass(frozen=True, slots=True)
class FrameLimits:
    """Limits per connection: a budget starts at `…_burst` and refills by `…_per_second`."""

    # gRPC allows 8 KiB of metadata by default, and compression only makes it smaller.
    header_block_bytes: int = 8192
    continuations: int = 4  # of one header block
    # PING, SETTINGS and all other frames that gRPC answers or stores. Clients send some 10 to 1,000
    # PINGs per second to measure their bandwidth.
    control_burst: int = 3000
    control_per_second: int = 1500
    # WINDOW_UPDATE and nearly empty DATA frames: a client on a busy stream sends thousands.
    small_burst: int = 50_000
    small_per_second: int = 50_000


class Budget:
    """A token bucket that starts full."""

    __slots__ = ("_at", "_burst", "_left", "_per_second")

    def __init__(self, burst: float, per_second: float, now: float) -> None:
        self._burst, self._per_second = burst, per_second
        self._left, self._at = float(burst), now

    def spend(self, amount: int, now: float) -> bool:
        """Take `amount` and return True, or take nothing and return False if too little is left."""
        self._refill(now)
        if amount > self._left:
            return False
        self._left -= amount
        return True

    def borrow(self, amount: int, now: float) -> float:
        """Take `amount`, even below zero; return the seconds until the balance is zero again."""
        self._refill(now)
        self._left -= amount
        return max(0.0, -self._left / self._per_second)

    def fine(self, amount: int) -> None:
        """Take up to `amount`, not below zero."""
        self._left = max(0.0, self._left - amount)

    def _refill(self, now: float) -> None:
        self._left = min(self._burst, self._left + (now - self._at) * self._per_second)
        self._at = now


class FrameMeter:
    """Counts the frames that one peer sends."""

    __slots__ = (
        "_block", "_continuations", "_control", "_limits", "_partial",
        "_payload_left", "_preface_left", "_small", "calls", "resets",
    )  # fmt: skip

    def __init__(self, limits: FrameLimits, now: float) -> None:
        self._limits = limits
        self._control = Budget(limits.control_burst, limits.control_per_second, now)
        self._small = Budget(limits.small_burst, limits.small_per_second, now)
        self._preface_left = PREFACE
        self._partial = b""  # an incomplete frame header
        self._payload_left = 0
        self._block = self._continuations = 0
        self.calls = self.resets = 0  # calls begun and calls cancelled

    def feed(self, data: bytes, now: float) -> str:
        """The limit that these bytes exceed; empty if they may pass."""
        if self._preface_left:
            size = min(len(data), len(self._preface_left))
            if data[:size] != self._preface_left[:size]:
                return "it does not speak HTTP/2"
            self._preface_left, data = self._preface_left[size:], data[size:]
        if self._partial:
            data, self._partial = self._partial + data, b""
        return self._frames(data, now)

    def _frames(self, data: bytes, now: float) -> str:
        position, size = self._payload_left, len(data)
        control = small = 0
        while position + _FRAME_HEADER_BYTES <= size:
            length = data[position] << 16 | data[position + 1] << 8 | data[position + 2]
            kind = data[position + 3]
            if kind in (_DATA, _WINDOW_UPDATE):
                if length < _SMALL_BYTES:
                    small += 1
            elif kind in (_HEADERS, _CONTINUATION):
                if problem := self._header_block(kind, length):
                    return problem
            elif kind == _RST_STREAM:
                self.resets += 1
            else:
                control += 1
            position += _FRAME_HEADER_BYTES + length
        if position < size:
            self._partial, position = data[position:], size
        self._payload_left = position - size
        return self._spent(control, small, now) if control or small else ""

    def _spent(self, control: int, small: int, now: float) -> str:
        if control and not self._control.spend(control, now):
            return f"more than {self._limits.control_per_second} control frames a second"
        if small and not self._small.spend(small, now):
            return f"more than {self._limits.small_per_second} empty frames a second"
        return ""

    def _header_block(self, kind: int, length: int) -> str:
        if kind == _CONTINUATION:
            self._continuations += 1
            self._block += length
        else:
            self.calls += 1
            self._continuations, self._block = 0, length
        if self._block > self._limits.header_block_bytes:
            return f"a header block of more than {self._limits.header_block_bytes} bytes"
        if self._continuations > self._limits.continuations:
            return f"more than {self._limits.continuations} CONTINUATION frames"
        return ""
