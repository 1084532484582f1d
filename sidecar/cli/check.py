"""`baton check`: silence and 0, or one line per problem and 2."""

import argparse
import os

from sidecar.config import ConfigError, load
from sidecar.logs import visible


def run(path: str | None) -> int:
    """Check the file together with the environment, without connecting to anything.

    A missing `postgres.url` is fine here: it mostly comes from a secret that is only in the pod.
    """
    try:
        load(path, os.environ, need_postgres=False)
    except ConfigError as error:
        for problem in error.problems:
            print(visible(str(problem)))  # its file may have any name
        return 2
    return 0


def main(options: argparse.Namespace) -> int:
    return run(options.config)
