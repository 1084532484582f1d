"""`baton migrate`: migrates the schema and prints the applied migrations."""

import argparse
import asyncio
import os
import sys
from pathlib import Path

from sidecar import logs
from sidecar.adapters.postgres.migrate import migrate
from sidecar.config import ConfigError, load
from sidecar.model.errors import SidecarError


def main(options: argparse.Namespace) -> int:
    try:
        settings = load(Path(options.config) if options.config else None, os.environ)
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 2
    url = settings.postgres.direct_url.read()
    logs.configure(settings.log.level, "console", [url])
    try:
        applied = asyncio.run(migrate(url, settings.postgres.schema))
    except SidecarError as error:
        print(f"baton migrate: {logs.redacted(str(error))}", file=sys.stderr)
        return 1
    print("\n".join(f"applied {name}" for name in applied) or "up to date")
    return 0
