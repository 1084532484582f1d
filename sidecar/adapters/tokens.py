"""Tokens that prove who calls, one per direction, from files that may change while we run."""

import hmac
from collections.abc import Sequence

import structlog

from sidecar.config import SecretSource, SecretUnreadable
from sidecar.logs import add_secret

log = structlog.get_logger()

METADATA_KEY = "baton-token"
Sent = tuple[tuple[str, str], ...]
Received = Sequence[tuple[str, str | bytes]]


class Token:
    """A token read anew when its file changes; while the file cannot be read the last one holds."""

    def __init__(self, source: SecretSource) -> None:
        self._source = source
        self._value = ""
        self._stamp: object = None
        self._problem = ""

    @property
    def required(self) -> bool:
        return self._source.is_set

    def read(self) -> str:
        stamp = self._file_stamp()
        if stamp is None or stamp != self._stamp:
            try:
                self._value = self._source.read_token()
            except SecretUnreadable as error:
                if str(error) != self._problem:  # every call asks
                    self._problem = str(error)
                    log.warning("token_unreadable", problem=self._problem)
            else:
                self._stamp, self._problem = stamp, ""
                add_secret(self._value)
        return self._value

    def metadata(self) -> Sent:
        """What a call must carry."""
        return ((METADATA_KEY, self.read()),) if self.required else ()

    def accepts(self, metadata: Received | None) -> bool:
        """Whether a call carries the token; compared in constant time."""
        if not self.required:
            return True
        given = next((value for key, value in metadata or () if key == METADATA_KEY), "")
        given_bytes = given if isinstance(given, bytes) else given.encode()
        expected = self.read().encode()
        return bool(expected) and hmac.compare_digest(given_bytes, expected)

    def _file_stamp(self) -> object:
        if self._source.path is None:
            return "text"
        try:
            status = self._source.path.stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_ino, status.st_size
