"""A secret that never shows itself, from a text or from a file that may change.

Guarantee: neither `repr`, `str` nor an error holds the secret. A file is read anew at each
`read()`, so a rotated secret is used at the next connect without a restart.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

_BYTES_MAX = 64 * 1024


class SecretUnreadable(OSError):
    """The file of a secret is missing, empty, too large or not text; try again later."""


@dataclass(frozen=True, slots=True, repr=False)
class SecretSource:
    """Exactly one of the two is set, or neither: then there is no secret."""

    text: str = field(default="")
    path: Path | None = None

    @classmethod
    def of(cls, text: str) -> Self:
        return cls(text=text)

    @classmethod
    def from_file(cls, path: str | Path) -> Self:
        return cls(path=Path(path))

    @property
    def is_set(self) -> bool:
        return bool(self.text) or self.path is not None

    def __bool__(self) -> bool:
        return self.is_set

    def read(self) -> str:
        """The secret as it is now, without surrounding white space; empty if there is none."""
        return self.text if self.path is None else _read(self.path)

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
        with path.open("rb") as file:
            content = file.read(_BYTES_MAX + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a usable path"
        raise SecretUnreadable(f"cannot be read: {reason}") from None
    if len(content) > _BYTES_MAX:
        raise SecretUnreadable("is larger than 64 KiB")
    try:
        text = content.decode().strip()
    except UnicodeDecodeError:
        raise SecretUnreadable("is not UTF-8 text") from None
    if not text:
        raise SecretUnreadable("is empty")
    return text
