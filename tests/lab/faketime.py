"""Wall clocks that step while a process runs, by libfaketime (`apt-get install faketime`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from devtools.servers import PostgresServer

_PLACES = ("x86_64-linux-gnu", "aarch64-linux-gnu")
_LIBRARIES = [Path(f"/usr/lib/{place}/faketime/libfaketime.so.1") for place in _PLACES]
LIBRARY = next((library for library in _LIBRARIES if library.exists()), None)


def why_not() -> str:
    """Why no clock can be stepped here, in one line; empty if one can."""
    return "" if LIBRARY else "stepping clocks needs libfaketime (apt-get install faketime)"


class WallClock:
    """One clock for all processes that are started with `environment`."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.step(0)

    def step(self, seconds: int) -> None:
        """From now on the wall clock is off by so much; the monotonic clocks stay right."""
        unfinished = self._file.with_suffix(".new")
        unfinished.write_text(f"{seconds:+d}")
        unfinished.chmod(0o644)  # the server may be another user
        unfinished.rename(self._file)

    @property
    def environment(self) -> dict[str, str]:
        return {
            "LD_PRELOAD": str(LIBRARY),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }


class SteppedPostgres(PostgresServer):
    """A Postgres whose clock steps when told to."""

    def __init__(self, clock: WallClock, settings: Mapping[str, str | int] | None = None) -> None:
        super().__init__(settings=settings or {"fsync": "off"})
        self._clock = clock

    def _command(self) -> Sequence[str | Path]:
        variables = [f"{name}={value}" for name, value in self._clock.environment.items()]
        return ["/usr/bin/env", *variables, *super()._command()]
