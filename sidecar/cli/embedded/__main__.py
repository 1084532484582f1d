"""`python -m sidecar.cli.embedded FILE`: a Postgres for trying things, until it is told to end.

Its URL is in FILE, for the owner's eyes only, once it answers; give it to sidecars by
BATON_POSTGRES_URL_FILE. Data and FILE go with it.
"""

import argparse
import os
import signal
import sys
from pathlib import Path

from sidecar.cli.embedded import PostgresServer, ServerFailed, ServerNotFound


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m sidecar.cli.embedded", description="A Postgres until Ctrl-C or SIGTERM."
    )
    parser.add_argument("file", type=Path, help="where to write its URL")
    file: Path = parser.parse_args().file
    endings = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, endings)  # or one could come before we wait for it
    try:
        with PostgresServer() as server:
            _write(file, server.url)
            signal.sigwait(endings)
            file.unlink(missing_ok=True)
    except (ServerNotFound, ServerFailed, OSError) as error:
        print(f"baton: {error}", file=sys.stderr)
        return 1
    return 0


def _write(file: Path, url: str) -> None:
    """Whole or not at all: somebody waits for it to appear."""
    unfinished = file.with_name(file.name + ".unfinished")
    unfinished.touch(mode=0o600)
    unfinished.write_text(url)
    os.replace(unfinished, file)


if __name__ == "__main__":
    sys.exit(main())
