"""A token kept in a file, re-read when the file changes.

A file that cannot be read, or holds no line of printable ASCII, which is all that gRPC can carry,
keeps its last token; an empty token opens nothing. For a minute after a change the token before it
is accepted too, because the two sides do not read the file at the same instant and a run refused as
UNAUTHENTICATED has failed for good.
"""

from __future__ import annotations

import hmac
import logging
import os
from collections.abc import Callable
from pathlib import Path

from baton._clock import boottime

log = logging.getLogger("baton")
PREVIOUS_ACCEPTED_SECONDS = 60.0


class TokenFile:
    """The token of one direction; `path` must name a readable file with a token in it."""

    def __init__(self, path: str | Path, clock: Callable[[], float] = boottime) -> None:
        self._path, self._clock = Path(path), clock
        self._seen: tuple[int, int, int] | None = None
        self._token = self._previous = b""
        self._changed_at = 0.0
        self._reread()
        if not self._token:
            raise ValueError(f"token file {self._path} is empty, or no line of printable ASCII")

    def current(self) -> str:
        """The token as the file has it now."""
        self._refresh()
        return self._token.decode()

    def accepts(self, token: str | bytes | None) -> bool:
        """Whether this is the token; takes the same time however wrong it is."""
        self._refresh()
        given = token.encode() if isinstance(token, str) else token or b""
        matches = hmac.compare_digest(given, self._token)
        recent = self._clock() - self._changed_at < PREVIOUS_ACCEPTED_SECONDS
        if self._previous and recent:
            matches |= hmac.compare_digest(given, self._previous)
        return matches

    def _refresh(self) -> None:
        try:
            self._reread()
        except OSError as error:
            log.warning("token file %s cannot be read: %s", self._path, error.strerror)

    def _reread(self) -> None:
        status = os.stat(self._path)
        seen = (status.st_mtime_ns, status.st_size, status.st_ino)
        if seen == self._seen:
            return
        token = self._path.read_bytes().strip()
        self._seen = seen
        if all(0x20 <= byte <= 0x7E for byte in token) and token not in (b"", self._token):
            self._previous, self._token = self._token, token
            self._changed_at = self._clock()
