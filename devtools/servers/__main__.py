"""`python -m devtools.servers FILE`: runs a Postgres server until SIGINT or SIGTERM.

It writes its URL to FILE, readable only by the owner, once it accepts connections; set
BATON_POSTGRES_URL_FILE to FILE for sidecars. Its data and FILE are removed when it ends.
"""

import argparse
import os
import signal
import sys
from pathlib import Path

from devtools.servers import PostgresServer, ServerFailed, ServerNotFound


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m devtools.servers",
        description="Run a Postgres server until Ctrl-C or SIGTERM.",
    )
    parser.add_argument("file", type=Path, help="file to write its URL to")
    file: Path = parser.parse_args().file
    stop_signals = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, stop_signals)  # one could arrive before sigwait
    try:
        with PostgresServer() as server:
            _write(file, server.url)
            signal.sigwait(stop_signals)
            file.unlink(missing_ok=True)
    except (ServerNotFound, ServerFailed, OSError) as error:
        print(f"baton: {error}", file=sys.stderr)
        return 1
    return 0


def _write(file: Path, url: str) -> None:
    """Write the file atomically: a reader may be waiting for it to appear."""
    temporary = file.with_name(file.name + ".temporary")
    temporary.touch(mode=0o600)
    temporary.write_text(url)
    os.replace(temporary, file)


if __name__ == "__main__":
    sys.exit(main())
