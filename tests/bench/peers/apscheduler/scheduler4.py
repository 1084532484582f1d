"""An APScheduler 4 (alpha) with its data store in Postgres: several processes may share it.

    scheduler4.py ticks PROFILE URL FILE    BENCH_PLAN as schedules; a line in FILE for each run

It has no leader: whoever finds a due schedule leases it, for 30 s unless told otherwise. A task
runs once at a time, and what a dead process ran counts until the next clean-up after its lease,
each 15 minutes unless told otherwise. The fast profile leases for 4 s, as long as Baton's server
lease, and cleans up each second.
"""

import asyncio
import json
import os
import signal
import sys
import time
from datetime import timedelta

from apscheduler import AsyncScheduler, ConflictPolicy, current_job
from apscheduler.datastores.sqlalchemy import SQLAlchemyDataStore
from apscheduler.eventbrokers.psycopg import PsycopgEventBroker
from apscheduler.triggers.cron import CronTrigger
from sqlalchemy.ext.asyncio import create_async_engine

FILE = os.open(sys.argv[4], os.O_APPEND | os.O_CREAT | os.O_WRONLY)


async def note(kind: str) -> None:
    due = current_job.get().scheduled_fire_time
    text = "-" if due is None else f"{due.timestamp():.6f}"
    os.write(FILE, f"{time.time():.6f} {kind} {text}\n".encode())


async def main(profile: str, url: str) -> None:
    engine = create_async_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    broker = PsycopgEventBroker(url)
    store = SQLAlchemyDataStore(engine)
    fast = {"lease_duration": timedelta(seconds=4), "cleanup_interval": timedelta(seconds=1)}
    settings = {} if profile == "default" else fast
    async with AsyncScheduler(store, broker, **settings) as scheduler:
        for kind, due in json.loads(os.environ["BENCH_PLAN"]).items():
            seconds = ",".join(map(str, due["seconds"]))
            for number in range(due["count"]):
                name = f"{kind}-{number}"  # a task of its own: only one run of a task at once
                await scheduler.configure_task(name, func=note)
                trigger = CronTrigger(second=seconds)  # each has a state of its own
                await scheduler.add_schedule(
                    name, trigger, args=[kind], id=name, conflict_policy=ConflictPolicy.do_nothing
                )
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, lambda: loop.create_task(scheduler.stop()))
        os.write(FILE, f"{time.time():.6f} ready -\n".encode())
        await scheduler.run_until_stopped()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[2:4]))
