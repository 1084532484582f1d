"""Warnings beside an answer: trailing metadata `baton-warning`, one for each."""

from collections.abc import Iterable
from typing import Any

from sidecar.logs import redacted, visible

KEY = "baton-warning"
WARNINGS_MAX = 5  # trailers have 8 KiB
_BYTES_MAX = 1000


def warn(context: Any, warnings: Iterable[str]) -> None:
    """Send these with the answer. Metadata is plain ASCII: other characters become `?`."""
    if found := list(warnings)[:WARNINGS_MAX]:
        context.set_trailing_metadata(tuple((KEY, _ascii(each)) for each in found))


def warnings_of(trailers: Iterable[tuple[str, str | bytes]]) -> list[str]:
    """What the server sent with `warn`."""
    return [str(value) for key, value in trailers if key == KEY]


def _ascii(text: str) -> str:
    return visible(redacted(text)).encode("ascii", "replace")[:_BYTES_MAX].decode()
