"""`baton conformance`: checks that an app, in any language, satisfies the contract: over its
callback, or with `--attach` over the work stream.

It needs no Postgres and no cluster: it calls the app through the sidecar's own adapters, and serves
an in-memory sidecar where the app expects its own. Prints one line per check and a summary.
"""

import argparse
import asyncio
import sys
from collections import Counter
from pathlib import Path

from sidecar import logs
from sidecar.adapters.grpc_server.server import AddressInUse
from sidecar.cli.conformance.asking import NotApplicable, Problem
from sidecar.cli.conformance.checks import CHECKS, Check
from sidecar.cli.conformance.driver import Driver, Subject
from sidecar.cli.conformance.fake_sidecar import FakeSidecar
from sidecar.cli.conformance.stream import StreamDriver, processes
from sidecar.config import SecretSource, SecretUnreadable, addresses

# No check takes longer than this: a handler's 60 s twice, and a margin.
_CHECK_SECONDS = 150.0
_NAME_WIDTH = max(len(check.name) for check in CHECKS)


def main(options: argparse.Namespace) -> int:
    logs.configure("critical", "console")
    token = SecretSource.from_file(Path(options.token_file)) if options.token_file else None
    if token is not None:
        try:
            token.read_token()
        except SecretUnreadable as error:
            print(f"baton: --token-file {options.token_file} {error}", file=sys.stderr)
            return 2
    try:
        addresses.parse(options.sidecar)
    except ValueError as error:
        allowed = "HOST:PORT or unix:///PATH"
        print(f"baton: --sidecar {options.sidecar} {error}; {allowed}", file=sys.stderr)
        return 2
    try:
        return asyncio.run(_conformance(options, token or SecretSource()))
    except AddressInUse:
        print(
            f"baton: --sidecar {options.sidecar}: the address is in use;"
            " stop the sidecar, or choose another address here and in the app",
            file=sys.stderr,
        )
        return 2


async def _conformance(options: argparse.Namespace, token: SecretSource) -> int:
    attached = processes() if options.attach else None
    sidecar = FakeSidecar(options.sidecar, attached)
    subject = Subject(options.handler, options.singleton, options.payload.encode())
    async with sidecar.serving():
        app = (
            StreamDriver(subject, sidecar, attached)
            if attached
            else Driver(options.app, token, subject, sidecar)
        )
        try:
            async with app.renewing():
                counts = await _all_checks(app)
        finally:
            await app.link.close()
    print(f"{counts['ok']} ok, {counts['FAIL']} failed, {counts['skip']} skipped")
    return 1 if counts["FAIL"] else 0


async def _all_checks(app: Driver) -> Counter[str]:
    counts: Counter[str] = Counter()
    for check in CHECKS:
        verdict, text = await _made(check, app)
        print(f"{verdict:<4}  {check.name:<{_NAME_WIDTH}}  {text}", flush=True)
        counts[verdict] += 1
        if check.name == "connection" and verdict == "FAIL":
            break
    return counts


async def _made(check: Check, app: Driver) -> tuple[str, str]:
    try:
        async with asyncio.timeout(_CHECK_SECONDS):
            return "ok", await check.make(app)
    except NotApplicable as reason:
        return "skip", str(reason)
    except Problem as problem:
        return "FAIL", logs.visible(logs.redacted(str(problem)))
    except TimeoutError:
        return "FAIL", f"not finished within {_CHECK_SECONDS:g} s"
