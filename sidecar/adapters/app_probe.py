"""What listens at `app.address`, for an app whose gRPC connection does not come up.

gRPC only says that it is still connecting: an HTTP/1 server, a TLS port or a wrong port all look
like an app that has not started yet.
"""

import asyncio
from contextlib import suppress

PROBE_SECONDS = 2.0
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\x04\0\0\0\0\0"  # and empty SETTINGS
_FRAME_BYTES = 9
_SETTINGS = 4


async def diagnose(address: str) -> str:
    """Why no gRPC connection to `address` comes up; empty if what is there may speak gRPC."""
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            answer = await _first_bytes(address)
    except TimeoutError:
        return _no_grpc(address, "it accepts connections and does not answer")
    except OSError as error:
        return f"app.address {address}: {error.strerror or 'cannot be reached'}"
    if len(answer) >= _FRAME_BYTES and answer[3] == _SETTINGS:
        return ""
    if answer.startswith(b"HTTP/"):
        return _no_grpc(address, "it answers in HTTP/1, as a web server does")
    if answer[:2] == b"\x15\x03":
        return _no_grpc(address, "it expects TLS, the sidecar speaks plain text")
    if not answer:
        return _no_grpc(address, "it closes the connection")
    return _no_grpc(address, "it answers in another protocol")


async def _first_bytes(address: str) -> bytes:
    """What the server sends first; a gRPC server sends its SETTINGS."""
    if address.startswith("unix:"):
        path = "/" + address.removeprefix("unix:").lstrip("/")
        reader, writer = await asyncio.open_unix_connection(path)
    else:
        host, _, port = address.rpartition(":")
        reader, writer = await asyncio.open_connection(host.strip("[]"), int(port))
    try:
        writer.write(_PREFACE)
        with suppress(asyncio.IncompleteReadError):
            return await reader.readexactly(_FRAME_BYTES)
        return b""
    finally:
        writer.close()


def _no_grpc(address: str, seen: str) -> str:
    return (
        f"app.address {address} does not speak gRPC (HTTP/2): {seen};"
        " set app.address to where the app serves AppCallback"
    )
