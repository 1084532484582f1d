"""`baton check`: exits with 0 and warnings on stderr, or with 2 and one line per problem."""

import argparse
import asyncio
import os
import sys

from sidecar.config import ConfigError, Settings, load
from sidecar.logs import redacted, visible
from sidecar.model.errors import SidecarError


def run(path: str | None, *, reach: bool = False) -> int:
    """Check the file together with the environment; connect to Postgres only with `--connect`.

    A missing `postgres.url` is fine then: it mostly comes from a secret that is only in the pod.
    """
    try:
        settings = load(path, os.environ, need_postgres=reach)
    except ConfigError as error:
        problems = [str(problem) for problem in error.problems]
    else:
        for warning in settings.warnings:
            print(f"warning: {visible(warning)}", file=sys.stderr)
        problems = asyncio.run(_database_problems(settings)) if reach else []
    for problem in problems:
        print(visible(problem))  # its file may have any name
    return 2 if problems else 0


async def _database_problems(settings: Settings) -> list[str]:
    from sidecar.adapters.postgres.fitness import examine

    postgres, problems = settings.postgres, []
    keys = {"postgres.url": postgres.url, "postgres.direct_url": postgres.direct_url}
    for key, source in keys.items():
        if key == "postgres.direct_url" and source == postgres.url:
            continue
        try:
            await examine(source.read(), postgres.schema)
        except (SidecarError, OSError) as error:
            problems.append(f"{key}: {redacted(str(error))}")
    return problems


def main(options: argparse.Namespace) -> int:
    return run(options.config, reach=options.connect)
