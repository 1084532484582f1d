"""A secret that never shows itself, from a text or from a file that may change.

Guarantee: neither `repr`, `str` nor an error holds the secret. A file is read anew at each
`read()`, so a rotated secret is used at the next connect without a restart; and checked anew, so
that no library gets to see, and to quote in an error, what it cannot understand.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

_BYTES_MAX = 64 * 1024


class SecretUnreadable(OSError):
    """The file of a secret is missing, empty, too large, not text or holds something else than it
    should; try again later."""


@dataclass(frozen=True, slots=True, repr=False)
class SecretSource:
    """Exactly one of text and path is set, or neither: then there is no secret.

    `check` raises ValueError, with a sentence that hides it, for what the file may not hold.
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
        """The secret as it is now, without surrounding white space; empty if there is none."""
        if self.path is None:
            return self.text
        text = _read(self.path)
        try:
            if self.check:
                self.check(text)
        except ValueError as error:
            raise SecretUnreadable(str(error)) from None
        return text

    def read_token(self) -> str:
        """The secret as the metadata of a call carries it: gRPC sends nothing but such text."""
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
        if not (pipe := path.is_fifo()):
            with path.open("rb") as file:
                content = file.read(_BYTES_MAX + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a usable path"
        raise SecretUnreadable(f"cannot be read: {reason}") from None
    if pipe:
        raise SecretUnreadable("is a pipe, which waits for its writer at each reading")
    if len(content) > _BYTES_MAX:
        raise SecretUnreadable("is larger than 64 KiB")
    try:
        text = content.decode().strip()
    except UnicodeDecodeError:
        raise SecretUnreadable("is not UTF-8 text") from None
    if not text:
        raise SecretUnreadable("is empty")
    return text
