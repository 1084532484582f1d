"""Where the demo is seen: a live view on a terminal, plain lines with their time anywhere else.

Guarantees: the terminal is as it was before, whatever ends the view; each frame is one write, so
nothing flickers; what was told is printed again below when the view goes, for the record.
"""

import os
import sys
import termios
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Protocol

from sidecar.cli.demo.view import Page, rendered
from sidecar.cli.demo.words import Line

# Alternate screen, no cursor, no wrapping; and back.
_ENTER = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J"
_LEAVE = "\x1b[?7h\x1b[?25h\x1b[?1049l"
_LINES_KEPT = 200


class Show(Protocol):
    """Lines that are told once, and a page that is drawn again and again."""

    lines: list[Line]

    def tell(self, tone: str, text: str, at: datetime | None = None) -> None: ...
    def draw(self, page: Page) -> None: ...


class PlainShow:
    """One line for each thing that happens."""

    def __init__(self) -> None:
        self.lines: list[Line] = []

    def tell(self, tone: str, text: str, at: datetime | None = None) -> None:
        line = Line(at or datetime.now(UTC), tone, text)
        self.lines.append(line)
        print(plain(line), flush=True)

    def draw(self, page: Page) -> None:
        """A page is for terminals."""


class LiveShow:
    """A page that is redrawn in place."""

    def __init__(self, descriptor: int, *, colour: bool) -> None:
        self.lines: list[Line] = []
        self._descriptor, self._colour = descriptor, colour
        self._frame = ""

    def tell(self, tone: str, text: str, at: datetime | None = None) -> None:
        self.lines.append(Line(at or datetime.now(UTC), tone, text))
        del self.lines[:-_LINES_KEPT]

    def draw(self, page: Page) -> None:
        columns, rows = os.get_terminal_size(self._descriptor)
        frame = framed(rendered(page, columns or 80, rows or 24, colour=self._colour))
        if frame != self._frame:
            self._frame = frame
            _write(frame)


def plain(line: Line) -> str:
    """`12:00:01.234  text`."""
    return f"{line.at:%H:%M:%S}.{line.at.microsecond // 1000:03d}  {line.text}"


def framed(rows: Sequence[str]) -> str:
    """One write that replaces the frame before: each row clears what is left of the old one."""
    return "\x1b[H" + "\r\n".join(f"{row}\x1b[K" for row in rows) + "\x1b[J"


@contextmanager
def opened() -> Iterator[Show]:
    """The show that fits standard output."""
    if not sys.stdout.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        yield PlainShow()
        return
    with _silent_keyboard():
        show = LiveShow(sys.stdout.fileno(), colour=not os.environ.get("NO_COLOR"))
        _write(_ENTER)
        try:
            yield show
        finally:
            with suppress(OSError):  # the terminal may be gone
                _write(_LEAVE)
    for line in show.lines:
        if line.tone == "act":
            print(plain(line))


@contextmanager
def _silent_keyboard() -> Iterator[None]:
    """Keys pressed meanwhile neither show in the view nor reach the shell afterwards."""
    if not sys.stdin.isatty():
        yield
        return
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    silent = termios.tcgetattr(descriptor)
    silent[3] &= ~termios.ECHO
    termios.tcsetattr(descriptor, termios.TCSADRAIN, silent)
    try:
        yield
    finally:
        with suppress(termios.error):
            termios.tcsetattr(descriptor, termios.TCSAFLUSH, before)


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
