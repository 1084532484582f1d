"""Pages of lists: a page has at most `page_size` items, and fewer if more do not fit in a message.

A page token holds the last name of the previous page, and a checksum over that name and the list:
a token that was made up, cut, or issued for another list is refused. It is no secret.
"""

from base64 import b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from typing import TypeVar

from google.protobuf.message import Message

from sidecar.model.errors import InvalidArgument

T = TypeVar("T")
M = TypeVar("M", bound=Message)

PAGE_SIZE_DEFAULT = 100
PAGE_SIZE_MAX = 1000
PAGE_BYTES_MAX = 4 * 1024 * 1024 - 64 * 1024  # of the 4 MiB that a message may have
_CHECKSUM_BYTES = 6
_ITEM_BYTES = 16  # the overhead of an item in its list


def checked_size(page_size: int) -> int:
    """The page size to use for the requested one."""
    if page_size < 0 or page_size > PAGE_SIZE_MAX:
        raise InvalidArgument("page_size", f"must be between 0 and {PAGE_SIZE_MAX}")
    return page_size or PAGE_SIZE_DEFAULT


def token_of(last: str, *listed: str) -> str:
    """The token of the page after `last` in the list that `listed` identifies; empty at the end."""
    return urlsafe_b64encode(_checksum(last, listed) + last.encode()).decode() if last else ""


def position_of(token: str, *listed: str) -> str:
    """The last name of the previous page; empty for the first page."""
    if not token:
        return ""
    try:
        raw = b64decode(token, altchars=b"-_", validate=True)
        last = raw[_CHECKSUM_BYTES:].decode()
    except ValueError:
        raw, last = b"", ""
    if not last or raw[:_CHECKSUM_BYTES] != _checksum(last, listed):
        raise InvalidArgument("page_token", "was not issued for this list")
    return last


def _checksum(last: str, listed: Sequence[str]) -> bytes:
    return sha256("\0".join((*listed, last)).encode()).digest()[:_CHECKSUM_BYTES]


def fitting(messages: Iterable[M]) -> list[M]:
    """The first messages that fit in one answer, at least one."""
    found: list[M] = []
    left = PAGE_BYTES_MAX
    for message in messages:
        left -= message.ByteSize() + _ITEM_BYTES
        if left < 0 and found:
            break
        found.append(message)
    return found


def page(
    items: Sequence[T], name: Callable[[T], str], page_size: int, after: str
) -> tuple[Sequence[T], str]:
    """One page of `items`, which are sorted by name, and its last name if more follow."""
    size = checked_size(page_size)
    rest = [item for item in items if name(item) > after]
    found = rest[:size]
    return found, name(found[-1]) if len(rest) > size else ""
