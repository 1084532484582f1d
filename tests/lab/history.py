"""What the toy apps wrote down, as events in the order they happened.

One JSON object per line. Times are seconds of CLOCK_BOOTTIME, so the files of all processes of one
machine fit together.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Event:
    """`kind` is start, become, lose, execute, watch, watch_broken or woke; calls arrive and end.

    `woke`: the app stood still, from its field `since` until now.
    """

    at: float
    app: str
    kind: str
    phase: str = "arrived"
    call: int = 0
    group: str = ""
    epoch: int = 0
    is_leader: bool = False
    trusted_for: float = 0.0
    trusted_until: float | None = None
    ignored: bool = False
    outcome: str = ""
    fields: dict[str, Any] = field(default_factory=dict)

    @property
    def trust_ends_at(self) -> float:
        """Until when this message lets the app act as leader."""
        end = self.at + self.trusted_for
        return end if self.trusted_until is None else min(end, self.trusted_until)


def parsed(line: str) -> Event:
    return Event(**json.loads(line))


class Reader:
    """Follows the files of several apps; each line is read once."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._offsets = dict.fromkeys(paths, 0)
        self._events: list[Event] = []

    def events(self) -> list[Event]:
        """All events so far by time; a last line that is not whole is left for later."""
        for path, offset in self._offsets.items():
            if path.exists():
                with path.open("rb") as file:
                    file.seek(offset)
                    text = file.read()
                whole = text[: text.rfind(b"\n") + 1]
                self._offsets[path] = offset + len(whole)
                self._events += map(parsed, whole.decode().splitlines())
        self._events.sort(key=lambda event: event.at)
        return list(self._events)


def read(paths: Iterable[Path]) -> list[Event]:
    """All events of these files by time; a last line that was cut off by a kill is left out."""
    return Reader(paths).events()


def select(
    events: Iterable[Event], kind: str, phase: str = "arrived", **wanted: object
) -> list[Event]:
    """Events of one kind whose attributes, or else whose fields, have the wanted values."""
    return [
        event
        for event in events
        if (event.kind, event.phase) == (kind, phase)
        and all(_value(event, name) == value for name, value in wanted.items())
    ]


def _value(event: Event, name: str) -> object:
    return getattr(event, name) if name in Event.__slots__ else event.fields.get(name)
