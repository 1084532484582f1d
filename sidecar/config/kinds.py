"""The kinds of values: how each is parsed from text, and what it allows.

Guarantee: `parse` returns a value of the kind or raises InvalidValue and nothing else; kinds that
may be secret never repeat the value.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, Protocol

from sidecar.config import addresses
from sidecar.config.problems import InvalidValue, shown
from sidecar.config.secret import SecretSource, SecretUnreadable
from sidecar.model import duration
from sidecar.model.validation import NAME

TEXT_LENGTH_MAX = 4096
PAYLOAD_BYTES_MAX = 256 * 1024
NAME_ALLOWED = "1 to 255 of the characters A-Z a-z 0-9 . _ -, the first a letter or a digit"
_WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,17})")
_PERCENT = re.compile(r"(0|[1-9][0-9]{0,2})%")
_RATE = re.compile(r"([1-9][0-9]{0,8})/([smh])")
_RATE_MAX = 100_000
_INSTANT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?"
    r"([Zz]|[+-][0-9]{2}:[0-9]{2})"
)

Style = Literal["text", "bare", "any"]


class Kind(Protocol):
    """One kind of scalar.

    Its style in YAML: `text` may not be a bare number or a bare `no`, `bare` may not be in quotes.
    """

    @property
    def allowed(self) -> str: ...
    @property
    def style(self) -> Style: ...
    def parse(self, text: str) -> Any: ...


@dataclass(frozen=True, slots=True)
class Text:
    """Free text, such as a path or a media type."""

    allowed: str
    check: Callable[[str], str] | None = None
    style: Style = field(default="text", init=False)

    def parse(self, text: str) -> str:
        if not text.isprintable() or len(text) > TEXT_LENGTH_MAX:
            raise InvalidValue("is too long or holds control characters", self.allowed)
        if self.check is None:
            return text
        try:
            return self.check(text)
        except ValueError as error:
            raise InvalidValue(str(error), self.allowed) from None


@dataclass(frozen=True, slots=True)
class Name:
    """A name that becomes part of keys, metric labels and span names."""

    optional: bool = False
    style: Style = field(default="text", init=False)

    @property
    def allowed(self) -> str:
        return NAME_ALLOWED + (", or empty" if self.optional else "")

    def parse(self, text: str) -> str:
        if (self.optional and not text) or NAME.fullmatch(text):
            return text
        raise InvalidValue(f"{shown(text)} is not a name" if text else "is empty", self.allowed)


@dataclass(frozen=True, slots=True)
class Choice:
    """One word of a closed list."""

    words: tuple[str, ...]
    style: Style = "text"  # "any": a word that YAML takes for a boolean is among them

    @property
    def allowed(self) -> str:
        return "one of " + ", ".join(self.words)

    def parse(self, text: str) -> str:
        if text in self.words:
            return text
        raise InvalidValue(f"{shown(text)} is not known", self.allowed)


@dataclass(frozen=True, slots=True)
class Boolean:
    """Only `true` or `false`: YAML tools disagree about `yes` and `on`."""

    allowed: str = field(default="true or false", init=False)
    style: Style = field(default="bare", init=False)

    def parse(self, text: str) -> bool:
        if text in ("true", "false"):
            return text == "true"
        raise InvalidValue(f"{shown(text)} is not a boolean", self.allowed)


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number between two limits."""

    at_least: int
    at_most: int
    style: Style = field(default="bare", init=False)

    @property
    def allowed(self) -> str:
        return f"a whole number from {self.at_least} to {self.at_most}"

    def parse(self, text: str) -> int:
        if not _WHOLE.fullmatch(text):
            raise InvalidValue(f"{shown(text)} is not a whole number", self.allowed)
        if not self.at_least <= int(text) <= self.at_most:
            raise InvalidValue(f"{text} is out of range", self.allowed)
        return int(text)


@dataclass(frozen=True, slots=True)
class Duration:
    """A duration with its unit, between two limits; `or_zero` describes the meaning of 0s."""

    at_least: str
    at_most: str
    or_zero: str = ""
    style: Style = field(default="any", init=False)

    @property
    def allowed(self) -> str:
        zero = f", or 0s: {self.or_zero}" if self.or_zero else ""
        example = "a duration such as 500ms, 3s, 5m, 1h or 7d"
        return f"{example}, from {self.at_least} to {self.at_most}{zero}"

    def parse(self, text: str) -> float:
        try:
            seconds = duration.parse(text)
        except ValueError as error:
            raise InvalidValue(f"{shown(text)} {error}", self.allowed) from None
        if seconds == 0 and self.or_zero:
            return 0.0
        if not duration.parse(self.at_least) <= seconds <= duration.parse(self.at_most):
            raise InvalidValue(f"{shown(text)} is out of range", self.allowed)
        return seconds


@dataclass(frozen=True, slots=True)
class Percent:
    """A share, from 0% to a limit; kept as a fraction."""

    at_most: int
    style: Style = field(default="any", init=False)

    @property
    def allowed(self) -> str:
        return f"a whole percentage such as 10%, from 0% to {self.at_most}%"

    def parse(self, text: str) -> float:
        if not _PERCENT.fullmatch(text):
            raise InvalidValue(f"{shown(text)} is not a percentage", self.allowed)
        if int(text[:-1]) > self.at_most:
            raise InvalidValue(f"{text} is out of range", self.allowed)
        return int(text[:-1]) / 100

    @staticmethod
    def written(value: float) -> str:
        return f"{value:.0%}"


@dataclass(frozen=True, slots=True)
class Rate:
    """How often something may happen; kept as times per second, 0: without limit."""

    allowed: str = field(
        default="a rate such as 100/s, 30/m or 5/h, or 0: no limit; at most 100000/s", init=False
    )
    style: Style = field(default="any", init=False)

    def parse(self, text: str) -> float:
        if text == "0":
            return 0.0
        if not (match := _RATE.fullmatch(text)):
            raise InvalidValue(f"{shown(text)} is not a rate", self.allowed)
        rate = int(match[1]) / {"s": 1, "m": 60, "h": 3600}[match[2]]
        if rate > _RATE_MAX:
            raise InvalidValue(f"{text} is out of range", self.allowed)
        return rate

    @staticmethod
    def written(value: float) -> str:
        return f"{value:g}/s" if value else "0"


@dataclass(frozen=True, slots=True)
class Instant:
    """A point in time, with its offset; kept in UTC."""

    allowed: str = field(default="an RFC 3339 time such as 2027-01-01T00:00:00Z", init=False)
    style: Style = field(default="any", init=False)

    def parse(self, text: str) -> datetime:
        if not _INSTANT.fullmatch(text):
            without = _INSTANT.fullmatch(text + "Z")
            problem = "has no offset" if without else "is not a time"
            raise InvalidValue(f"{shown(text)} {problem}", self.allowed)
        try:
            return datetime.fromisoformat(text.upper()).astimezone(UTC)
        except (ValueError, OverflowError):
            raise InvalidValue(f"{shown(text)} does not exist", self.allowed) from None


@dataclass(frozen=True, slots=True)
class Address:
    """An address to listen on or to call, in gRPC's syntax."""

    socket_file: bool = True
    host_name: bool = False
    optional: bool = False
    style: Style = field(default="text", init=False)

    @property
    def allowed(self) -> str:
        host = "HOST:PORT, " if self.host_name else ""
        end = " or unix:///PATH" if self.socket_file else ""
        return f"{host}IPV4:PORT, [IPV6]:PORT{end}" + (", or empty" if self.optional else "")

    def parse(self, text: str) -> str:
        if self.optional and not text:
            return text
        try:
            address = addresses.parse(text)
        except ValueError as error:
            raise InvalidValue(f"{shown(text)} {error}", self.allowed) from None
        if address.socket_path and not self.socket_file:
            raise InvalidValue(f"{shown(text)} is a socket file", self.allowed)
        if address.is_host_name and not (self.host_name or address.host == "localhost"):
            raise InvalidValue(f"{shown(text)} is not an IP address and port", self.allowed)
        return text


@dataclass(frozen=True, slots=True)
class Payload:
    """Text that the app gets as bytes."""

    allowed: str = field(default="text of at most 256 KiB, quoted if it is JSON", init=False)
    style: Style = field(default="text", init=False)

    def parse(self, text: str) -> bytes:
        try:
            content = text.encode()
        except UnicodeEncodeError:
            raise InvalidValue("holds a lone surrogate", self.allowed) from None
        if len(content) > PAYLOAD_BYTES_MAX:
            raise InvalidValue(f"has {len(content)} bytes", self.allowed)
        return content


@dataclass(frozen=True, slots=True)
class Secret:
    """A value that is never shown. `check` raises ValueError with a message without it."""

    allowed: str
    check: Callable[[str], str]
    style: Style = field(default="text", init=False)

    def parse(self, text: str) -> SecretSource:
        self._checked(text)
        return SecretSource.of(text)

    def parse_file(self, path: str) -> SecretSource:
        self._checked(_readable(path, "a file that holds " + self.allowed).read())
        return SecretSource.from_file(path, self._checked)

    def _checked(self, text: str) -> None:
        if not text.isprintable() or len(text) > TEXT_LENGTH_MAX:
            raise InvalidValue("is too long or holds control characters", self.allowed)
        try:
            self.check(text)
        except ValueError as error:
            raise InvalidValue(str(error), self.allowed) from None


@dataclass(frozen=True, slots=True)
class SecretFile:
    """The path of a file that holds a secret."""

    allowed: str = field(default="the path of a readable file that holds the token", init=False)
    style: Style = field(default="text", init=False)

    def parse(self, text: str) -> SecretSource:
        if not text:
            return SecretSource()
        return _readable(text, self.allowed, SecretSource.read_token)


def _readable(
    path: str, allowed: str, read: Callable[[SecretSource], str] = SecretSource.read
) -> SecretSource:
    source = SecretSource.from_file(path)
    try:
        read(source)
    except SecretUnreadable as error:
        # A secret given in place of a path is not repeated: secrets rarely start like a path.
        name = shown(path) if path.startswith(("/", "./", "../")) else "the file that it names"
        raise InvalidValue(f"{name} {error}", allowed) from None
    return source
