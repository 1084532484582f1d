"""An APScheduler 3 with its jobs in Postgres, as a user would write it: one process, no others.

    scheduler3.py ticks PROFILE URL FILE    BENCH_PLAN as jobs; a line in FILE for each run

The defaults are ten threads and a tick dropped when it is more than a second late; the fast profile
runs coroutines on the event loop and drops none.
"""

import asyncio
import json
import os
import sys
import time

from apscheduler.executors.asyncio import AsyncIOExecutor
from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.schedulers.base import BaseScheduler

FILE = os.open(sys.argv[4], os.O_APPEND | os.O_CREAT | os.O_WRONLY)


def note(kind: str) -> None:
    os.write(FILE, f"{time.time():.6f} {kind} -\n".encode())


async def note_on_the_loop(kind: str) -> None:
    note(kind)


def scheduler_for(profile: str, url: str) -> BaseScheduler:
    store = {"default": SQLAlchemyJobStore(url=url.replace("postgresql:", "postgresql+psycopg:"))}
    if profile == "default":
        return BackgroundScheduler(jobstores=store)
    return AsyncIOScheduler(
        jobstores=store,
        executors={"default": AsyncIOExecutor()},
        job_defaults={"misfire_grace_time": None},
    )


async def main(profile: str, url: str) -> None:
    scheduler = scheduler_for(profile, url)
    job: object = note if profile == "default" else note_on_the_loop
    for kind, due in json.loads(os.environ["BENCH_PLAN"]).items():
        seconds = ",".join(map(str, due["seconds"]))
        for number in range(due["count"]):
            scheduler.add_job(job, "cron", second=seconds, args=[kind], id=f"{kind}-{number}")
    scheduler.start()
    note("ready")
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[2:4]))
