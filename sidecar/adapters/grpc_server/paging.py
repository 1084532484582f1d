"""Pages of lists: a page ends with as many items as were asked for, or with as many as fit.

The token of the next page is the last name of the page before.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from google.protobuf.message import Message

from sidecar.model.errors import InvalidArgument

T = TypeVar("T")
M = TypeVar("M", bound=Message)

PAGE_SIZE_DEFAULT = 100
PAGE_SIZE_MAX = 1000
PAGE_BYTES_MAX = 4 * 1024 * 1024 - 64 * 1024  # of the 4 MiB that a message may have
_ITEM_BYTES = 16  # what an item costs in its list beside its own bytes


def checked_size(page_size: int) -> int:
    """The size to use for what a caller asked for."""
    if page_size < 0 or page_size > PAGE_SIZE_MAX:
        raise InvalidArgument("page_size", f"must be between 0 and {PAGE_SIZE_MAX}")
    return page_size or PAGE_SIZE_DEFAULT


def fitting(messages: Iterable[M]) -> list[M]:
    """As many of the first as one answer can hold, and one at least."""
    found: list[M] = []
    left = PAGE_BYTES_MAX
    for message in messages:
        left -= message.ByteSize() + _ITEM_BYTES
        if left < 0 and found:
            break
        found.append(message)
    return found


def page(
    items: Sequence[T], name: Callable[[T], str], page_size: int, page_token: str
) -> tuple[Sequence[T], str]:
    """One page of `items`, which are sorted by name, and the token of the next."""
    size = checked_size(page_size)
    rest = [item for item in items if name(item) > page_token]
    found = rest[:size]
    return found, name(found[-1]) if len(rest) > size else ""
