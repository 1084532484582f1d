"""Pages of lists that are at hand as a whole: the token is the last name of the page before."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from sidecar.model.errors import InvalidArgument

T = TypeVar("T")

PAGE_SIZE_DEFAULT = 100
PAGE_SIZE_MAX = 1000


def checked_size(page_size: int) -> int:
    """The size to use for what a caller asked for."""
    if page_size < 0 or page_size > PAGE_SIZE_MAX:
        raise InvalidArgument("page_size", f"must be between 0 and {PAGE_SIZE_MAX}")
    return page_size or PAGE_SIZE_DEFAULT


def page(
    items: Sequence[T], name: Callable[[T], str], page_size: int, page_token: str
) -> tuple[Sequence[T], str]:
    """One page of `items`, which are sorted by name, and the token of the next."""
    size = checked_size(page_size)
    rest = [item for item in items if name(item) > page_token]
    found = rest[:size]
    return found, name(found[-1]) if len(rest) > size else ""
