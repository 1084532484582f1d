"""The rules for names, texts, sizes and references in requests, shared by all services.

Each check raises InvalidArgument with the name of the field (G11), or returns None.
"""

import re

from sidecar.model.errors import InvalidArgument
from sidecar.model.run import RunRef

TEXT_BYTES_MAX = 255
VALUE_BYTES_MAX = 1024 * 1024
# Ten years: more than any use needs, and no timestamp overflows.
TTL_SECONDS_MAX = 10 * 366 * 86_400.0
ID_MAX = 2**63 - 1
_RUN_LIMITS = {"run_id": ID_MAX, "attempt": 2**31 - 1, "epoch": ID_MAX}

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}")  # cluster, group, singleton, schedule
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
NOT_STORABLE = re.compile("[\x00\ud800-\udfff]")


def check_text(field: str, text: str) -> None:
    """Check free text, such as a note: it may be empty and may contain line breaks."""
    if len(text.encode()) > TEXT_BYTES_MAX:
        raise InvalidArgument(field, f"is longer than {TEXT_BYTES_MAX} bytes")
    if "\0" in text:
        raise InvalidArgument(field, "holds a NUL character")


def check_name(field: str, text: str) -> None:
    """Check a name: as `check_text`, and not empty."""
    check_not_empty(field, text)
    check_text(field, text)


def check_not_empty(field: str, text: str) -> None:
    if not text:
        raise InvalidArgument(field, "is empty")


def check_characters(
    field: str, text: str, *, bytes_max: int = TEXT_BYTES_MAX, refused: re.Pattern[str] = CONTROL
) -> None:
    """Check that a text, such as a key, has no character that `refused` matches."""
    if refused.search(text):
        raise InvalidArgument(field, "holds a control character")
    check_size(field, text.encode(), bytes_max)


def check_size(field: str, value: bytes, bytes_max: int = VALUE_BYTES_MAX) -> None:
    if len(value) > bytes_max:
        raise InvalidArgument(field, f"has {len(value)} bytes; at most {bytes_max}")


def check_ttl(seconds: float | None) -> None:
    if seconds is not None and not 0 < seconds <= TTL_SECONDS_MAX:
        raise InvalidArgument("ttl", "must be above zero and at most ten years")


def check_run_id(run_id: int) -> None:
    if not 0 < run_id <= ID_MAX:
        raise InvalidArgument("run_id", "is not the id of a run")


def check_run_range(run: RunRef) -> None:
    """Check that every part fits its column. 0 is in range, but no live run has it."""
    for part, most in _RUN_LIMITS.items():
        if not 0 <= getattr(run, part) <= most:
            raise InvalidArgument(f"run.{part}", "is out of range")


def check_run(run: RunRef) -> None:
    """Check as `check_run_range` does, and that no part is 0."""
    if not all(0 < getattr(run, part) <= most for part, most in _RUN_LIMITS.items()):
        raise InvalidArgument("run", "needs the run_id, attempt and epoch that Execute was given")
