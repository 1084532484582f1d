"""Errors as JSON: `{"code", "message", "details"}`, with the names and HTTP codes of Connect.

The gRPC code, the message and the details of an error are those of `grpc_server/status.py`.
"""

import json
from base64 import b64encode
from typing import Any

import grpc
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from sidecar.adapters.grpc_server.status import INTERNAL_ERROR, code_of, details_of, message_of
from sidecar.model.errors import SidecarError

_HTTP_CODES = {
    "canceled": 499,
    "unknown": 500,
    "invalid_argument": 400,
    "deadline_exceeded": 504,
    "not_found": 404,
    "already_exists": 409,
    "permission_denied": 403,
    "resource_exhausted": 429,
    "failed_precondition": 400,
    "aborted": 409,
    "out_of_range": 400,
    "unimplemented": 501,
    "internal": 500,
    "unavailable": 503,
    "data_loss": 500,
    "unauthenticated": 401,
}


class Refusal(Exception):
    """An answer other than success: `http_code` is that of the code unless it is given."""

    def __init__(
        self, code: str, message: str, *, http_code: int = 0, details: tuple[Message, ...] = ()
    ) -> None:
        super().__init__(message)
        self.code = code
        self.http_code = http_code or _HTTP_CODES[code]
        self.details = details

    def content(self) -> dict[str, Any]:
        content: dict[str, Any] = {"code": self.code, "message": str(self)}
        if self.details:
            content["details"] = [_detail(each) for each in self.details]
        return content

    def body(self) -> bytes:
        return json.dumps(self.content(), ensure_ascii=False).encode() + b"\n"


def refusal_of(error: Exception) -> Refusal:
    """The answer for an error of a servicer; one that is not ours is a bug."""
    match error:
        case Refusal():
            return error
        case SidecarError():
            code = connect_code(code_of(error))
            return Refusal(code, message_of(error), details=tuple(details_of(error)))
        case _:
            return Refusal("internal", INTERNAL_ERROR)


def connect_code(code: grpc.StatusCode) -> str:
    """Connect's name of a gRPC code."""
    return "canceled" if code is grpc.StatusCode.CANCELLED else code.name.lower()


def _detail(detail: Message) -> dict[str, Any]:
    """As Connect sends it: the bytes for programs, `debug` for people."""
    return {
        "type": detail.DESCRIPTOR.full_name,
        "value": b64encode(detail.SerializeToString()).decode().rstrip("="),
        "debug": MessageToDict(detail),
    }
