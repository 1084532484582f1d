"""The words and rules of state: what a key is, who may write it, what an entry is.

Keys are UTF-8 text of 1 to 255 bytes without control characters; values are at most 1 MiB. Keys
that begin with `singleton-state:` or `schedule-state:` are owned: the rest is the name of the
owner, which may have up to 255 bytes of its own. A version is above 0, rises with every change of
its key and never comes back.
"""

import re

from sidecar.model.errors import FailedPrecondition, InvalidArgument
from sidecar.model.run import RunRef
from sidecar.model.state_words import Delete, Owner, Put

KEY_BYTES_MAX = 255
VALUE_BYTES_MAX = 1024 * 1024
REQUEST_ID_BYTES_MAX = 255
# Ten years: far above any use, far below where a timestamp overflows.
TTL_SECONDS_MAX = 10 * 366 * 86_400.0
VERSION_MAX = 2**63 - 1
# Owned state lives at least this long: while it is led, two sweeps that extend it fit into it.
OWNED_TTL_SECONDS_MIN = 90.0

TOMBSTONE_SECONDS = 7 * 86_400.0  # how long Watch can tell a deletion
REQUEST_SECONDS = 3600.0  # how long the answer to a request_id is remembered

# Control characters, and the last code point, which marks the end of a prefix.
_NOT_IN_KEYS = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\U0010ffff]")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}")  # of whatever can own a key
_OWNED = re.compile(r"(singleton|schedule)-state:(.*)", re.DOTALL)
_LAST = "\U0010ffff"


def owner_of(key: str) -> Owner | None:
    """Whose key it is; None for one that anybody may write."""
    match = _OWNED.fullmatch(key)
    return Owner(match[1], match[2]) if match else None


def led_seconds(heartbeat_seconds: float) -> float:
    """What had a heartbeat within this time is led: one may come late, or from a new leader."""
    return max(60.0, 2 * heartbeat_seconds)


def check_key(key: str) -> None:
    """Raise InvalidArgument unless `key` is one."""
    owner = owner_of(key)
    if owner is not None:
        if not NAME.fullmatch(owner.name):
            raise InvalidArgument("key", f"'{owner.kind}-state:' must be followed by a name")
    elif not key:
        raise InvalidArgument("key", "is empty")
    else:
        _check_text("key", key, KEY_BYTES_MAX)


def check_prefix(prefix: str) -> None:
    # As long as the longest owned key.
    _check_text("prefix", prefix, KEY_BYTES_MAX + len("singleton-state:"))


def check_put(put: Put) -> None:
    """Raise InvalidArgument naming the field that cannot be right."""
    check_key(put.key)
    if len(put.value) > VALUE_BYTES_MAX:
        raise InvalidArgument("value", f"has {len(put.value)} bytes; at most {VALUE_BYTES_MAX}")
    _check_version("expected_version", put.expected_version)
    if put.ttl_seconds is not None and not 0 < put.ttl_seconds <= TTL_SECONDS_MAX:
        raise InvalidArgument("ttl", "must be above zero and at most ten years")
    _check_text("request_id", put.request_id, REQUEST_ID_BYTES_MAX)
    _check_run(put.key, put.run)


def check_delete(delete: Delete) -> None:
    check_key(delete.key)
    _check_version("expected_version", delete.expected_version)
    if delete.expected_version == 0:
        raise InvalidArgument("expected_version", "0 means no entry, which cannot be deleted")
    _check_run(delete.key, delete.run)


def check_after_version(version: int | None) -> None:
    _check_version("after_version", version)


def prefix_end(prefix: str) -> str:
    """The least text above everything that begins with `prefix`, in byte order."""
    if not prefix:
        return _LAST
    successor = ord(prefix[-1]) + 1
    return prefix[:-1] + chr(0xE000 if successor == 0xD800 else successor)


def _check_text(field: str, text: str, bytes_max: int) -> None:
    if _NOT_IN_KEYS.search(text):
        raise InvalidArgument(field, "holds a control character")
    if len(text.encode()) > bytes_max:
        raise InvalidArgument(field, f"has {len(text.encode())} bytes; at most {bytes_max}")


def _check_version(field: str, version: int | None) -> None:
    if version is not None and not 0 <= version <= VERSION_MAX:
        raise InvalidArgument(field, "is not a version that was ever given out")


def _check_run(key: str, run: RunRef | None) -> None:
    if run is None:
        if owner_of(key) is not None:
            raise FailedPrecondition(
                f"{key} is written only by the live run of its owner: give run"
            )
        return
    limits = {"run_id": VERSION_MAX, "attempt": 2**31 - 1, "epoch": VERSION_MAX}
    for field, most in limits.items():
        if not 0 <= getattr(run, field) <= most:
            raise InvalidArgument(f"run.{field}", "is out of range")
