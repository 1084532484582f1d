"""A durable promise: its states, its token, and the rules for its requests.

    pending ──► completed | failed | expired        the first end is final

The token is the secret: a caller that has it may end the deferred. It is an HMAC, with the
installation's key, of a random salt per deferred. So every attempt of a run gets the same token,
although no table and no statement contains it. The id is the SHA-256 of the token: queries and
hints use it, and it does not reveal the token.
"""

import hmac
import re
from base64 import urlsafe_b64encode
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from hashlib import sha256

from sidecar.model.errors import InvalidArgument
from sidecar.model.run import RunRef
from sidecar.model.validation import (
    NOT_STORABLE,
    check_characters,
    check_not_empty,
    check_run_range,
    check_size,
    check_ttl,
)

ERROR_BYTES_MAX = 4096
SALT_BYTES = 16

# People and secret scanners recognize the prefix, and no token begins with `-` like an option.
_PREFIX = "bdt_"
_TOKEN = re.compile(rf"{_PREFIX}[A-Za-z0-9_-]{{43}}")


class DeferredState(StrEnum):
    PENDING = "pending"
    COMPLETED = "completed"
    FAILED = "failed"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class Deferred:
    """One row of a deferred. It does not contain the token."""

    id: bytes
    name: str
    run_id: int  # 0: belongs to no run
    state: DeferredState
    value: bytes = field(repr=False)
    error: str
    created_at: datetime
    finished_at: datetime | None
    expires_at: datetime | None
    expires_in_seconds: float | None  # by the database's clock at the time of the read

    def ended_as(self, ending: "Ending") -> bool:
        return (self.state, self.value, self.error) == (ending.state, ending.value, ending.error)


@dataclass(frozen=True, slots=True)
class Ending:
    """A requested end of a deferred."""

    state: DeferredState
    value: bytes = field(default=b"", repr=False)
    error: str = ""


def completed(value: bytes) -> Ending:
    check_size("value", value)
    return Ending(DeferredState.COMPLETED, value=value)


def failed(error: str) -> Ending:
    if not error:
        raise InvalidArgument("error", "is empty: describe the failure")
    check_characters("error", error, bytes_max=ERROR_BYTES_MAX, refused=NOT_STORABLE)
    return Ending(DeferredState.FAILED, error=error)


def token_of(key: bytes, salt: bytes) -> str:
    """The token of the deferred with this salt, in the installation with this key."""
    code = hmac.digest(key, salt, "sha256")
    return _PREFIX + urlsafe_b64encode(code).rstrip(b"=").decode()


def id_of(token: str) -> bytes:
    """The id of the deferred with this token.

    An error never contains the token: a mistyped token may be close to a valid one.
    """
    if not _TOKEN.fullmatch(token):
        raise InvalidArgument("token", "is not a token that Create returned")
    return sha256(token.encode()).digest()


def check_create(name: str, run: RunRef | None, ttl_seconds: float | None) -> None:
    """Raise InvalidArgument, with the name of the field, for an invalid request."""
    check_not_empty("name", name)
    check_characters("name", name)
    check_ttl(ttl_seconds)
    if run is not None:
        check_run_range(run)
