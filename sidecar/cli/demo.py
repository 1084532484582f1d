"""`baton demo`: starts the demo from `devtools`, which only the repository has."""

import argparse
import sys


def main(options: argparse.Namespace) -> int:
    try:
        from devtools import demo
    except ImportError as error:
        # A package of another project may be called `devtools` too; it has no `demo`.
        if error.name not in ("devtools", "devtools.demo"):
            raise
        print(
            "baton demo: not part of this installation; clone the repository and run `make demo`",
            file=sys.stderr,
        )
        return 2
    return demo.main(options)
