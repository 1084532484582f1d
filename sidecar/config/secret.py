"""A secret from a text or from a file that may change; it is never shown.

Guarantee: neither `repr`, `str` nor an error contains the secret. A file is read again by each
`read()`, so a rotated secret is used at the next connect without a restart; and checked again, so
that no library gets an invalid secret and quotes it in an error.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from sidecar.config.files import FileUnreadable, file_stamp, read_file

_BYTES_MAX = 64 * 1024


class SecretUnreadable(OSError):
    """The file of a secret is missing, not a regular file, empty, too large, not text or invalid;
    try again later."""


@dataclass(frozen=True, slots=True, repr=False)
class SecretSource:
    """Exactly one of text and path is set, or neither: then there is no secret.

    `check` raises ValueError, with a message without the secret, for an invalid content.
    """

    text: str = field(default="")
    path: Path | None = None
    check: Callable[[str], object] | None = field(default=None, compare=False)

    @classmethod
    def of(cls, text: str) -> Self:
        return cls(text=text)

    @classmethod
    def from_file(cls, path: str | Path, check: Callable[[str], object] | None = None) -> Self:
        return cls(path=Path(path), check=check)

    @property
    def is_set(self) -> bool:
        return bool(self.text) or self.path is not None

    def __bool__(self) -> bool:
        return self.is_set

    def read(self) -> str:
        """The current secret without surrounding white space; empty if there is none."""
        if self.path is None:
            return self.text
        text = _read(self.path)
        try:
            if self.check:
                self.check(text)
        except ValueError as error:
            raise SecretUnreadable(str(error)) from None
        return text

    def stamp(self) -> object:
        """Changes when the secret may have changed; None while its file cannot be found."""
        if self.path is None:
            return "text"
        try:
            return file_stamp(self.path)
        except FileUnreadable:
            return None

    def read_token(self) -> str:
        """The secret for the metadata of a call: gRPC sends only printable ASCII."""
        token = self.read()
        if not (token.isascii() and token.isprintable()):
            raise SecretUnreadable("is not one line of printable ASCII")
        return token

    def __repr__(self) -> str:
        if self.path is not None:
            return f"SecretSource(path={str(self.path)!r})"
        return "SecretSource(***)" if self.text else "SecretSource()"


def _read(path: Path) -> str:
    try:
        content = read_file(path, _BYTES_MAX)
    except FileUnreadable as error:
        raise SecretUnreadable(str(error)) from None
    if len(content) > _BYTES_MAX:
        raise SecretUnreadable("is larger than 64 KiB")
    try:
        text = content.decode().strip()
    except UnicodeDecodeError:
        raise SecretUnreadable("is not UTF-8 text") from None
    if not text:
        raise SecretUnreadable("is empty")
    return text
