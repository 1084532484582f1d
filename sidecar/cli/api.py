"""Connects commands to the local sidecar's API; prints errors as one line."""

import argparse
import asyncio
import os
import sys
from collections.abc import Awaitable, Callable

import grpc

from sidecar.adapters.grpc_app import described
from sidecar.adapters.tokens import METADATA_KEY, Sent
from sidecar.config import Api, ConfigError, SecretSource, SecretUnreadable, load

CALL_SECONDS = 5.0


class Connection:
    """A channel to the sidecar and the metadata of every call."""

    def __init__(self, channel: grpc.aio.Channel, metadata: Sent) -> None:
        self.channel = channel
        self.metadata = metadata


def call(options: argparse.Namespace, work: Callable[[Connection], Awaitable[int]]) -> int:
    """Run `work` against the sidecar of the options; returns its exit code, or 1 with a line."""
    try:
        api = _api(options)
        metadata = ((METADATA_KEY, api.token.read_token()),) if api.token else ()
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 2
    except SecretUnreadable as error:
        print(f"baton: the file of the API's token {error}", file=sys.stderr)
        return 2
    if not api.address.isprintable():
        print("baton: the API's address is invalid", file=sys.stderr)
        return 2

    async def connected() -> int:
        options_ = (("grpc.enable_http_proxy", 0),)
        async with grpc.aio.insecure_channel(api.address, options=options_) as channel:
            return await work(Connection(channel, metadata))

    try:
        return asyncio.run(connected())
    except grpc.aio.AioRpcError as error:
        print(f"baton: {_explained(error, api.address)}", file=sys.stderr)
        return 1


def _api(options: argparse.Namespace) -> Api:
    """From the file if one is given, else from the environment; `--address` overrides both."""
    if file := options.config or os.environ.get("BATON_CONFIG"):
        api = load(file, os.environ, need_postgres=False).api
    else:
        path = os.environ.get("BATON_API_TOKEN_FILE")
        api = Api(
            address=os.environ.get("BATON_API_ADDRESS") or Api().address,
            token=SecretSource.from_file(path) if path else SecretSource(),
        )
    return Api(address=options.address, token=api.token) if options.address else api


def _explained(error: grpc.aio.AioRpcError, address: str) -> str:
    # An UNAVAILABLE of the sidecar itself, for example without Postgres, has details.
    if error.code() is grpc.StatusCode.UNAVAILABLE and not error.trailing_metadata():
        return f"no sidecar answers at {address}; is it running, and is --address correct?"
    if error.code() is grpc.StatusCode.UNAUTHENTICATED:
        return "the sidecar requires a token: set BATON_API_TOKEN_FILE or pass --config"
    return described(error)
