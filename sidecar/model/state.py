"""The rules for state keys, values, versions and owners.

Keys are UTF-8 text of 1 to 255 bytes without control characters; values are at most 1 MiB. Keys
that begin with `singleton-state:` or `schedule-state:` are owned: the rest is the name of the
owner, which may have up to 255 bytes itself. A version is positive, increases with every change of
its key and is never reused.
"""

import re

from sidecar.model.errors import FailedPrecondition, InvalidArgument
from sidecar.model.run import RunRef
from sidecar.model.state_types import Delete, Owner, Put
from sidecar.model.validation import (
    ID_MAX,
    NAME,
    TEXT_BYTES_MAX,
    check_characters,
    check_not_empty,
    check_run_range,
    check_size,
    check_ttl,
)

# The minimum TTL of owned state: time for two sweeps, which extend it while its owner has a leader.
OWNED_TTL_SECONDS_MIN = 90.0

TOMBSTONE_SECONDS = 7 * 86_400.0  # how long Watch can report a deletion
REQUEST_SECONDS = 3600.0  # how long the response to a request_id is kept

# Control characters, and the last code point, which marks the end of a prefix.
_NOT_IN_KEYS = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\U0010ffff]")
_OWNED = re.compile(r"(singleton|schedule)-state:(.*)", re.DOTALL)
_LAST = "\U0010ffff"


def owner_of(key: str) -> Owner | None:
    """The owner of the key; None if every caller may write it."""
    match = _OWNED.fullmatch(key)
    return Owner(match[1], match[2]) if match else None


def led_seconds(heartbeat_seconds: float) -> float:
    """The maximum age of the heartbeat of an owner with a leader.

    It allows for a late heartbeat, or the first one of a new leader.
    """
    return max(60.0, 2 * heartbeat_seconds)


def check_key(key: str) -> None:
    """Raise InvalidArgument unless `key` is a valid key."""
    owner = owner_of(key)
    if owner is not None:
        if not NAME.fullmatch(owner.name):
            raise InvalidArgument("key", f"'{owner.kind}-state:' must be followed by a name")
    else:
        check_not_empty("key", key)
        check_characters("key", key, refused=_NOT_IN_KEYS)


def check_prefix(prefix: str) -> None:
    longest_owned_key = TEXT_BYTES_MAX + len("singleton-state:")
    check_characters("prefix", prefix, bytes_max=longest_owned_key, refused=_NOT_IN_KEYS)


def check_put(put: Put) -> None:
    """Raise InvalidArgument, with the name of the field, for an invalid request."""
    check_key(put.key)
    check_size("value", put.value)
    _check_version("expected_version", put.expected_version)
    check_ttl(put.ttl_seconds)
    check_characters("request_id", put.request_id, refused=_NOT_IN_KEYS)
    _check_run(put.key, put.run)


def check_delete(delete: Delete) -> None:
    check_key(delete.key)
    _check_version("expected_version", delete.expected_version)
    if delete.expected_version == 0:
        raise InvalidArgument("expected_version", "0 means that there is no entry to delete")
    _check_run(delete.key, delete.run)


def check_after_version(version: int | None) -> None:
    _check_version("after_version", version)


def prefix_end(prefix: str) -> str:
    """The first text after all texts that begin with `prefix`, in byte order."""
    if not prefix:
        return _LAST
    successor = ord(prefix[-1]) + 1
    return prefix[:-1] + chr(0xE000 if successor == 0xD800 else successor)


def _check_version(field: str, version: int | None) -> None:
    if version is not None and not 0 <= version <= ID_MAX:
        raise InvalidArgument(field, "is not a valid version")


def _check_run(key: str, run: RunRef | None) -> None:
    if run is not None:
        check_run_range(run)
    elif owner_of(key) is not None:
        raise FailedPrecondition(f"{key} can be written only by the live run of its owner: set run")
