"""A durable promise: its states, its token, and what may be asked of it.

    pending ──► completed | failed | expired        the first end stands for ever

The token is the secret: whoever has it may end the deferred. It is an HMAC, under the
installation's key, of a salt drawn for each deferred; so every attempt of a run can be given the
same token again, though no table and no statement ever holds it. The id is the token's SHA-256: it
finds the row, goes into hints, and is of no use to who learns it.
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

NAME_BYTES_MAX = 255
VALUE_BYTES_MAX = 1024 * 1024
ERROR_BYTES_MAX = 4096
SALT_BYTES = 16
# Ten years: far above any use, far below where a timestamp overflows.
TTL_SECONDS_MAX = 10 * 366 * 86_400.0

# The prefix tells people and secret scanners what it is, and no token begins like an option.
_PREFIX = "bdt_"
_TOKEN = re.compile(rf"{_PREFIX}[A-Za-z0-9_-]{{43}}")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_NOT_STORABLE = re.compile("[\x00\ud800-\udfff]")
_RUN_LIMITS = {"run_id": 2**63 - 1, "attempt": 2**31 - 1, "epoch": 2**63 - 1}


class DeferredState(StrEnum):
    PENDING = "pending"
    COMPLETED = "completed"
    FAILED = "failed"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class Deferred:
    """One deferred as Postgres knows it; the token is only with whoever was given it."""

    id: bytes
    name: str
    run_id: int  # 0: of no run
    state: DeferredState
    value: bytes = field(repr=False)
    error: str
    created_at: datetime
    finished_at: datetime | None
    expires_at: datetime | None
    expires_in_seconds: float | None  # by the database's clock when it was read

    def ended_as(self, ending: "Ending") -> bool:
        return (self.state, self.value, self.error) == (ending.state, ending.value, ending.error)


@dataclass(frozen=True, slots=True)
class Ending:
    """How somebody wants a deferred to end."""

    state: DeferredState
    value: bytes = field(default=b"", repr=False)
    error: str = ""


def completed(value: bytes) -> Ending:
    if len(value) > VALUE_BYTES_MAX:
        raise InvalidArgument("value", f"has {len(value)} bytes; at most {VALUE_BYTES_MAX}")
    return Ending(DeferredState.COMPLETED, value=value)


def failed(error: str) -> Ending:
    if not error:
        raise InvalidArgument("error", "is empty: say what happened")
    _check_text("error", error, ERROR_BYTES_MAX, _NOT_STORABLE)
    return Ending(DeferredState.FAILED, error=error)


def token_of(key: bytes, salt: bytes) -> str:
    """The token of the deferred with this salt, in the installation with this key."""
    code = hmac.digest(key, salt, "sha256")
    return _PREFIX + urlsafe_b64encode(code).rstrip(b"=").decode()


def id_of(token: str) -> bytes:
    """Which deferred the token is for. An error never repeats it: it may be nearly right."""
    if not _TOKEN.fullmatch(token):
        raise InvalidArgument("token", "is not one that Create gave out")
    return sha256(token.encode()).digest()


def check_create(name: str, run: RunRef | None, ttl_seconds: float | None) -> None:
    """Raise InvalidArgument naming the field that cannot be right."""
    if not name:
        raise InvalidArgument("name", "is empty")
    _check_text("name", name, NAME_BYTES_MAX, _CONTROL)
    if ttl_seconds is not None and not 0 < ttl_seconds <= TTL_SECONDS_MAX:
        raise InvalidArgument("ttl", "must be above zero and at most ten years")
    if run is None:
        return
    for limited, most in _RUN_LIMITS.items():
        if not 0 <= getattr(run, limited) <= most:
            raise InvalidArgument(f"run.{limited}", "is out of range")


def _check_text(name: str, text: str, bytes_max: int, refused: re.Pattern[str]) -> None:
    if refused.search(text):
        raise InvalidArgument(name, "holds a control character")
    if (length := len(text.encode())) > bytes_max:
        raise InvalidArgument(name, f"has {length} bytes; at most {bytes_max}")
