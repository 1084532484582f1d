"""Log lines are events with fields: one JSON object per line, or readable text on a terminal.

Guarantees:
- everything goes to stderr, one line per event: stdout is for the result of a command, and a
  container runtime collects both. A full or closed stderr loses the line and never ends the
  process; an unread stderr blocks no task. `log_lines_lost` reports how many lines were lost;
- no value, key or traceback contains a registered secret, whether raw, percent-encoded or quoted,
  or the password of a URL (G12);
- text from outside cannot forge a line or control a terminal: control characters are escaped;
- lines of libraries (stdlib logging, warnings, crashes) become `library_message` events;
- a call below the level costs one method call that does nothing.

Event names are snake_case and stable. `bind` adds fields to all later lines of a context.
"""

import json
import logging
import os
import re
import select
import sys
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from contextvars import ContextVar, Token
from datetime import date
from functools import lru_cache
from math import isfinite
from types import TracebackType
from typing import Final
from urllib.parse import parse_qs, quote, unquote, urlsplit

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

__all__ = [
    "add_secret",
    "bind",
    "bound",
    "configure",
    "forget_secrets",
    "redacted",
    "unbind",
    "visible",
]

HIDDEN: Final = "***"
TEXT_CHARACTERS_MAX: Final = 8_192
TRACEBACK_CHARACTERS_MAX: Final = 32_768
_DEPTH_MAX = 6
# What a pipe, a socket or a terminal that is ready accepts without blocking (PIPE_BUF).
_CHUNK_BYTES = 4_096
_WRITE_TIMEOUT_MILLISECONDS = 50  # for a busy reader; 0 once it blocked, until it reads again
# Shorter ones occur in any text by chance; in URLs and in secret fields they are hidden anyway.
_SECRET_CHARACTERS_MIN = 4
_SECRET_FIELD = re.compile(
    r"(^|[_.-])(password|passwd|token|secret|authorization|api_?key)$", re.IGNORECASE
)
_URL_PASSWORD = re.compile(r"(\b[a-z][a-z0-9+.-]*://[^\s/:@\"']*:)[^\s/\"']*(?=@)", re.IGNORECASE)
_KEY_VALUE_PASSWORD = re.compile(
    r"\b(password\s*=\s*)('(?:[^'\\]|\\.)*'|[^\s&'\"]+)", re.IGNORECASE
)
# C0, DEL, C1, line and paragraph separators, bidirectional controls, lone surrogates.
_INVISIBLE = r"\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
_CONTROL = re.compile(rf"[\x00-\x1f{_INVISIBLE}]")
_CONTROL_BUT_NEWLINE = re.compile(rf"[\x00-\x09\x0b-\x1f{_INVISIBLE}]")

# One variable for all fields: every Execute binds some, and each variable costs it time.
_scope: ContextVar[Mapping[str, object]] = ContextVar("baton_log_scope", default={})  # noqa: B039 - never changed in place
_secrets: set[str] = set()
_secret_pattern: re.Pattern[str] | None = None


_level = logging.DEBUG  # until `configure` is called


def configure(level: str = "info", format: str | None = None, secrets: Iterable[str] = ()) -> None:
    """Set up structlog and stdlib logging for the process; `secrets` are tokens or whole URLs.

    `format` is `json` or `console`; None: console lines on a terminal, JSON elsewhere.
    """
    for secret in secrets:
        add_secret(secret)
    global _level
    _level = number = logging.getLevelNamesMapping()[level.upper()]
    readable = format == "console" if format else sys.stderr.isatty()
    shared: list[Processor] = [
        _in_scope,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="timestamp"),
        structlog.processors.format_exc_info,
        _cleaned,
        _console if readable else _json,
    ]
    structlog.configure(
        processors=shared,
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=_LineLogger,
        cache_logger_on_first_use=True,
    )
    _route_libraries(number)


def debugging() -> bool:
    """Whether debug events are logged; ask before collecting fields for each run."""
    return _level <= logging.DEBUG


def add_secret(secret: str) -> None:
    """Hide `secret` from now on: a token, or the password of a URL or conninfo."""
    global _secret_pattern
    for part in _secret_parts(secret.strip()):
        if len(part) >= _SECRET_CHARACTERS_MIN:
            _secrets.update((part, quote(part, safe=""), repr(part)[1:-1], json.dumps(part)[1:-1]))
    _field.cache_clear()
    # Longest first: a secret that contains another one is hidden whole.
    forms = sorted(_secrets, key=len, reverse=True)
    _secret_pattern = re.compile("|".join(map(re.escape, forms))) if forms else None


def forget_secrets() -> None:
    """Forget all registered secrets; for tests and for a changed set of secrets."""
    global _secret_pattern
    _secrets.clear()
    _field.cache_clear()
    _secret_pattern = None


def bind(**fields: object) -> None:
    """Add fields to every later line of this context and of tasks started from it."""
    _scope.set({**_scope.get(), **fields})


def unbind() -> None:
    """Forget what was bound; for tests."""
    _scope.set({})


class bound:
    """`with bound(group=..., epoch=...)`: fields of all lines inside and of tasks started there."""

    __slots__ = ("_fields", "_token")
    _token: Token[Mapping[str, object]]

    def __init__(self, **fields: object) -> None:
        self._fields = fields

    def __enter__(self) -> None:
        self._token = _scope.set({**_scope.get(), **self._fields})

    def __exit__(self, *error: object) -> None:
        _scope.reset(self._token)


def _in_scope(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    return {**_scope.get(), **event}


def redacted(text: str) -> str:
    """`text` without any registered secret and without the password of any URL."""
    if _secret_pattern is not None:
        text = _secret_pattern.sub(HIDDEN, text)
    if "://" in text:
        text = _URL_PASSWORD.sub(rf"\g<1>{HIDDEN}", text)
    if "assword" in text or "ASSWORD" in text:
        text = _KEY_VALUE_PASSWORD.sub(rf"\g<1>{HIDDEN}", text)
    return text


def visible(text: str) -> str:
    """`text` with every control character escaped, so that it stays on its line."""
    return text if text.isprintable() else _CONTROL.sub(_escape, text)


def _secret_parts(secret: str) -> list[str]:
    if "://" not in secret:
        conninfo = re.search(r"\bpassword\s*=\s*(?:'((?:[^'\\]|\\.)*)'|(\S+))", secret)
        return [(conninfo[1] or conninfo[2] or "").replace("\\", "")] if conninfo else [secret]
    with suppress(ValueError):
        url = urlsplit(secret)
        passwords = [url.password or "", *parse_qs(url.query).get("password", [])]
        found = [form for each in passwords if each for form in (each, unquote(each))]
        # The path of an http URL may be a token (ping URLs are); elsewhere it is a name.
        return [secret, *found] if found or url.scheme in ("http", "https") else []
    return [secret]


def _escape(match: re.Match[str]) -> str:
    return repr(match[0])[1:-1] if match[0] != "\x7f" else "\\x7f"


def _cleaned(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Every value as plain JSON types, redacted, escaped and bounded."""
    clean: EventDict = {}
    for key, value in event.items():
        name, secret = _field(str(key))
        if name == "exception":
            text = redacted(str(value))[-TRACEBACK_CHARACTERS_MAX:]
            clean[name] = _CONTROL_BUT_NEWLINE.sub(_escape, text)
        else:
            clean[name] = HIDDEN if secret and value else _plain(value, _DEPTH_MAX)
    return clean


@lru_cache(maxsize=1024)
def _field(key: str) -> tuple[str, bool]:
    """The name of a field as it is shown, and whether its name marks its value as secret."""
    return visible(redacted(key[:255])), _SECRET_FIELD.search(key) is not None


def _plain(value: object, depth: int) -> object:
    if isinstance(value, str):
        return _shortened(value)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if isfinite(value) else str(value)  # JSON has no infinity
    if isinstance(value, Mapping) and depth:
        fields = ((*_field(str(key)), item) for key, item in value.items())
        return {name: HIDDEN if hide else _plain(item, depth - 1) for name, hide, item in fields}
    if isinstance(value, list | tuple | set | frozenset) and depth:
        return [_plain(item, depth - 1) for item in value]
    return _shortened(_text(value))


def _shortened(text: str) -> str:
    # Cut well above the limit first: redaction must see whole secrets, and not a huge text.
    text = redacted(text[: 4 * TEXT_CHARACTERS_MAX])
    if len(text) > TEXT_CHARACTERS_MAX:
        text = text[:TEXT_CHARACTERS_MAX] + "…"
    return visible(text)


def _text(value: object) -> str:
    if isinstance(value, date):
        return value.isoformat()
    try:
        return str(value)
    except Exception:
        return f"<{type(value).__name__}>"  # a broken __str__ must not lose the line


def _json(_: WrappedLogger, __: str, event: EventDict) -> str:
    head = {key: event.pop(key) for key in ("timestamp", "level", "event") if key in event}
    return json.dumps(head | dict(event), ensure_ascii=False, separators=(",", ":"), default=str)


def _console(_: WrappedLogger, __: str, event: EventDict) -> str:
    when, level, name = (str(event.pop(key, "")) for key in ("timestamp", "level", "event"))
    exception = event.pop("exception", "")
    fields = " ".join(f"{key}={_shown(value)}" for key, value in event.items())
    lines = [f"{when[11:23]} {level:<8} {name:<28} {fields}".rstrip()]
    # The bar keeps a line of an error's text from looking like an event.
    lines += [f"    | {line}" for line in str(exception).splitlines()]
    return "\n".join(lines)


def _shown(value: object) -> str:
    if isinstance(value, str) and re.fullmatch(r"[^\s=\"]+", value):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)


class _LineLogger:
    """Writes finished lines; the stream is looked up each time, because it may be replaced."""

    def __init__(self, *_: object) -> None: ...

    def msg(self, line: str) -> None:
        _write(line)

    log = debug = info = warn = warning = error = critical = fatal = exception = msg


def _write(line: str) -> None:
    with suppress(OSError, ValueError, AttributeError):  # closed, full, or none at all
        _stderr.write(line)


class _StderrWriter:
    """Writes to stderr without blocking: a blocked write would delay the pings."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a finalizer may log while this thread writes
        self._blocked = False
        self._line_incomplete = False
        self._lost = 0

    def write(self, line: str) -> None:
        stream = sys.stderr
        try:
            descriptor = stream.fileno()
        except (OSError, ValueError):  # no file: a test captures stderr
            stream.write(line + "\n")
            stream.flush()
            return
        with self._lock:
            if not self._ready(descriptor):
                self._lost += 1
                return
            if lost := self._lost:
                self._lost = 0
                structlog.get_logger().warning("log_lines_lost", lines=lost)
            self._put(descriptor, f"{line}\n".encode(stream.encoding, "backslashreplace"))

    def _put(self, descriptor: int, data: bytes) -> None:
        if self._line_incomplete:
            data = b"\n" + data
        self._line_incomplete = True
        while data:
            if not self._ready(descriptor):
                self._lost += 1
                return
            data = data[os.write(descriptor, data[:_CHUNK_BYTES]) :]
        self._line_incomplete = False

    def _ready(self, descriptor: int) -> bool:
        poll = select.poll()
        poll.register(descriptor, select.POLLOUT)
        self._blocked = not poll.poll(0 if self._blocked else _WRITE_TIMEOUT_MILLISECONDS)
        return not self._blocked


_stderr = _StderrWriter()


class _LibraryHandler(logging.Handler):
    """Turns a record of stdlib logging into an event of ours."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            logger = structlog.get_logger()
            if _caller_disconnected(record):
                logger.debug("caller_disconnected", logger=record.name)
                return
            logger.log(
                min(50, max(10, record.levelno // 10 * 10)),  # libraries invent levels in between
                "library_message",
                logger=record.name,
                message=record.getMessage(),
                exc_info=record.exc_info,
            )
        except Exception:
            _write('{"level":"error","event":"library_message_lost"}')


def _caller_disconnected(record: logging.LogRecord) -> bool:
    """gRPC logs an error when a caller disconnects in the middle of a message; that is normal."""
    kind = record.exc_info[0] if record.exc_info else None
    return kind is not None and kind.__name__ == "ExecuteBatchError"


def _route_libraries(number: int) -> None:
    """Libraries log from WARNING on; everything only at debug."""
    root = logging.getLogger()
    for handler in [each for each in root.handlers if isinstance(each, _LibraryHandler)]:
        root.removeHandler(handler)
    root.addHandler(_LibraryHandler())
    root.setLevel(number if number <= logging.DEBUG else max(number, logging.WARNING))
    logging.captureWarnings(capture=True)
    sys.excepthook = _crashed
    threading.excepthook = _thread_crashed


def _crashed(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    if issubclass(kind, KeyboardInterrupt):
        return
    structlog.get_logger().critical("crashed", exc_info=(kind, error, traceback))


def _thread_crashed(arguments: threading.ExceptHookArgs) -> None:
    if arguments.exc_value is not None:
        _crashed(arguments.exc_type, arguments.exc_value, arguments.exc_traceback)
