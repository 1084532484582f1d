"""Reads the user's files: the configuration, secrets, tokens.

Guarantees: only regular files are read, never a pipe or a device, which may block or never end; a
read returns a limited number of bytes and takes at most READ_SECONDS. A read that hangs stays in a
daemon thread, at most one for each path, which does not keep the process from ending.
"""

import os
import stat
import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import TypeVar

T = TypeVar("T")

READ_SECONDS = 5.0
# A file that changed this recently may change again without a change of its timestamps.
_UNSETTLED_SECONDS = 3.0
_KINDS = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
_hanging: dict[str, Thread] = {}


class FileUnreadable(OSError):
    """The file is missing, not a regular file, or the read timed out; `str` says which."""


def read_file(path: Path | str, bytes_max: int) -> bytes:
    """The content of a regular file, cut one byte after `bytes_max`."""
    return _in_time(path, lambda: _read(path, bytes_max + 1))


def file_stamp(path: Path | str) -> tuple[int, ...]:
    """Changes with the file, unless it is written twice within one tick of its clock."""
    status = _in_time(path, lambda: os.stat(path))
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def settled(stamp: object) -> bool:
    """Whether the same stamp later means the same content."""
    return isinstance(stamp, tuple) and max(stamp[-2:]) / 1e9 < time.time() - _UNSETTLED_SECONDS


def _read(path: Path | str, bytes_max: int) -> bytes:
    _refuse_special(os.stat(path))  # first: opening a device may have side effects
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    with open(descriptor, "rb", buffering=0) as file:
        _refuse_special(os.fstat(descriptor))  # it may have been replaced meanwhile
        parts, left = [], bytes_max
        while left > 0 and (part := file.read(left)):
            parts.append(part)
            left -= len(part)
    return b"".join(parts)


def _refuse_special(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = next((name for test, name in _KINDS if test(status.st_mode)), "something else")
        raise FileUnreadable(f"is {kind}, not a regular file")


def _in_time(path: Path | str, work: Callable[[], T]) -> T:
    """The result of `work`, run in a thread that can be abandoned."""
    name, answers, errors = os.fspath(path), list[T](), list[Exception]()

    def run() -> None:
        try:
            answers.append(work())
        except Exception as error:
            errors.append(error)

    thread = _hanging.get(name)
    if thread is None or not thread.is_alive():
        thread = Thread(target=run, name="baton.read-file", daemon=True)
        thread.start()
        thread.join(READ_SECONDS)
    if thread.is_alive():
        _hanging[name] = thread
        raise FileUnreadable(f"cannot be read: no answer within {READ_SECONDS:g} s")
    _hanging.pop(name, None)
    if errors:
        raise _unreadable(errors[0]) from None
    return answers[0]


def _unreadable(error: Exception) -> Exception:
    match error:
        case FileUnreadable():
            return error
        case OSError() | ValueError():
            reason = getattr(error, "strerror", None) or "not a usable path"
            return FileUnreadable(f"cannot be read: {reason}")
        case _:
            return error
