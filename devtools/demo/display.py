"""The output of the demo: a live view on a terminal, else one line with its time per event.

Guarantees: the terminal is restored, whatever ends the view; each frame is one write, so nothing
flickers; when the view closes, the phases of the demo are printed again as plain lines.
"""

import os
import sys
import termios
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Protocol

from devtools.demo.model import Event
from devtools.demo.view import Page, render

# Alternate screen, no cursor, no wrapping; and back.
_ENTER = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J"
_LEAVE = "\x1b[?7h\x1b[?25h\x1b[?1049l"
_EVENTS_KEPT = 200


class Display(Protocol):
    """Reports each event once, and redraws a page."""

    events: list[Event]

    def report(self, style: str, text: str, at: datetime | None = None) -> None: ...
    def draw(self, page: Page) -> None: ...


class PlainDisplay:
    """Prints one line for each event."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def report(self, style: str, text: str, at: datetime | None = None) -> None:
        event = Event(at or datetime.now(UTC), style, text)
        self.events.append(event)
        print(format_event(event), flush=True)

    def draw(self, page: Page) -> None:
        """Only terminals have pages."""


class LiveDisplay:
    """Redraws a page in place."""

    def __init__(self, descriptor: int, *, colour: bool) -> None:
        self.events: list[Event] = []
        self._descriptor, self._colour = descriptor, colour
        self._frame = ""

    def report(self, style: str, text: str, at: datetime | None = None) -> None:
        self.events.append(Event(at or datetime.now(UTC), style, text))
        del self.events[:-_EVENTS_KEPT]

    def draw(self, page: Page) -> None:
        columns, rows = os.get_terminal_size(self._descriptor)
        frame = make_frame(render(page, columns or 80, rows or 24, colour=self._colour))
        if frame != self._frame:
            self._frame = frame
            _write(frame)


def format_event(event: Event) -> str:
    """`12:00:01.234  text`."""
    return f"{event.at:%H:%M:%S}.{event.at.microsecond // 1000:03d}  {event.text}"


def make_frame(rows: Sequence[str]) -> str:
    """The text that overwrites the previous frame; each row clears the rest of its line."""
    return "\x1b[H" + "\r\n".join(f"{row}\x1b[K" for row in rows) + "\x1b[J"


@contextmanager
def open_display() -> Iterator[Display]:
    """The display that suits standard output."""
    if not sys.stdout.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        yield PlainDisplay()
        return
    with _without_echo():
        display = LiveDisplay(sys.stdout.fileno(), colour=not os.environ.get("NO_COLOR"))
        _write(_ENTER)
        try:
            yield display
        finally:
            with suppress(OSError):  # the terminal may be gone
                _write(_LEAVE)
    for event in display.events:
        if event.style == "phase":
            print(format_event(event))


@contextmanager
def _without_echo() -> Iterator[None]:
    """Keys pressed during the view are neither echoed nor passed on to the shell."""
    if not sys.stdin.isatty():
        yield
        return
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    no_echo = termios.tcgetattr(descriptor)
    no_echo[3] &= ~termios.ECHO
    termios.tcsetattr(descriptor, termios.TCSADRAIN, no_echo)
    try:
        yield
    finally:
        with suppress(termios.error):
            termios.tcsetattr(descriptor, termios.TCSAFLUSH, before)


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
