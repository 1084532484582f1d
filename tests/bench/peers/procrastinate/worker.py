"""A procrastinate worker with periodic tasks, as a user would write it.

    worker.py setup PROFILE URL FILE    brings the schema up to date
    worker.py ticks PROFILE URL FILE    BENCH_PLAN as periodic tasks; a line in FILE for each run

The default is one job at a time; the fast profile runs 64 at once, as Baton does, on a pool of 16
connections instead of 4, as its documentation asks for where jobs are short. Every worker defers
every tick and a unique constraint keeps one of them, half a second late on purpose.
"""

import asyncio
import json
import os
import sys
import time

import procrastinate


def app_for(profile: str, url: str) -> procrastinate.App:
    settings = {} if profile == "default" else {"max_size": 16}
    return procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=url, **settings))


def add_ticks(app: procrastinate.App, file: int) -> None:
    for kind, due in json.loads(os.environ["BENCH_PLAN"]).items():
        seconds = ",".join(map(str, due["seconds"]))

        async def tick(timestamp: int, kind: str = kind) -> None:
            os.write(file, f"{time.time():.6f} {kind} {timestamp}\n".encode())

        for number in range(due["count"]):
            task = app.task(name=f"{kind}-{number}")(tick)
            app.periodic(cron=f"* * * * * {seconds}")(task)


async def main(mode: str, profile: str, url: str, path: str) -> None:
    app = app_for(profile, url)
    async with app.open_async():
        if mode == "setup":
            await app.schema_manager.apply_schema_async()
            return
        file = os.open(path, os.O_APPEND | os.O_CREAT | os.O_WRONLY)
        add_ticks(app, file)
        os.write(file, f"{time.time():.6f} ready -\n".encode())
        concurrency = 1 if profile == "default" else 64
        await app.run_worker_async(concurrency=concurrency)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
