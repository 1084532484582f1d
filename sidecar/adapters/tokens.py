"""Tokens that authenticate calls, one per direction, from files that may change."""

import hmac
from collections.abc import Sequence
from typing import Protocol

import structlog

from sidecar.config import SecretUnreadable
from sidecar.logs import add_secret

log = structlog.get_logger()

METADATA_KEY = "baton-token"
Sent = tuple[tuple[str, str], ...]
Received = Sequence[tuple[str, str | bytes]]


class TokenSource(Protocol):
    """A `SecretSource`, or one that is followed beside the loop (`adapters/files.py`)."""

    @property
    def is_set(self) -> bool: ...
    def stamp(self) -> object: ...
    def read_token(self) -> str: ...


class Token:
    """A token, read again when its file changes; while the file is unreadable the last is used."""

    def __init__(self, source: TokenSource) -> None:
        self._source = source
        self._value = ""
        self._stamp: object = None
        self._problem = ""

    @property
    def required(self) -> bool:
        return self._source.is_set

    def read(self) -> str:
        stamp = self._source.stamp()
        if stamp is None or stamp != self._stamp:
            try:
                self._value = self._source.read_token()
            except SecretUnreadable as error:
                if str(error) != self._problem:  # once, not with every call
                    self._problem = str(error)
                    log.warning("token_unreadable", problem=self._problem)
            else:
                self._stamp, self._problem = stamp, ""
                add_secret(self._value)
        return self._value

    def metadata(self) -> Sent:
        """The metadata that a call must have."""
        return ((METADATA_KEY, self.read()),) if self.required else ()

    def accepts(self, metadata: Received | None) -> bool:
        """Whether a call has the token; compared in constant time."""
        if not self.required:
            return True
        given = next((value for key, value in metadata or () if key == METADATA_KEY), "")
        given_bytes = given if isinstance(given, bytes) else given.encode()
        expected = self.read().encode()
        return bool(expected) and hmac.compare_digest(given_bytes, expected)
