"""Ids of runs: they rise with time, and none is given out twice."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import psycopg

from devtools.servers import PostgresServer
from sidecar.adapters.postgres.migrate import migrate
from sidecar.model.snowflake import decomposed
from tests.integration.runs_lab import EVERY_HOUR, Lab, laboratory
from tests.lab.processes import wait_until
from tests.lab.standby import HotStandby

# More than the 32 numbers that Postgres takes from a sequence in advance.
TRIGGERS = 40


async def test_ids_do_not_come_back_after_a_failover_that_lost_them() -> None:
    """G5: a key made from an id names one run for ever, also where the run itself was lost."""
    with PostgresServer(settings={"fsync": "off"}) as primary:
        await migrate(primary.url, "baton")
        with HotStandby(primary) as standby:
            async with laboratory(primary.url) as lab:
                await lab.add()
                kept = await _triggered(lab)
                await asyncio.to_thread(
                    wait_until, lambda: _stored(standby) == kept, 10, "the runs on the standby"
                )
                standby.wire.silence()
                lost = await _triggered(lab)
            primary.kill()
            standby.promote()
            assert _stored(standby) == kept
            async with laboratory(standby.url) as lab:
                again = await _triggered(lab)
    assert max(kept) < min(lost)
    assert max(lost) < min(again)


async def _triggered(lab: Lab) -> list[int]:
    trigger = lab.schedules.trigger
    return [await trigger(EVERY_HOUR.name, payload=None, request_id=None) for _ in range(TRIGGERS)]


def _stored(server: PostgresServer) -> list[int]:
    with psycopg.connect(server.url) as connection:
        rows = connection.execute("SELECT id FROM baton.run ORDER BY id").fetchall()
        return [id_ for (id_,) in rows]


async def test_a_restored_copy_whose_counter_is_behind_gives_out_no_id_again(
    database_url: str,
) -> None:
    """G5: as after a restore from a backup; here the rows are gone and the counter is set back."""
    async with laboratory(database_url) as lab:
        await lab.add()
        lost = await _triggered(lab)
        await lab.sql("DELETE FROM baton.run")
        await lab.sql("SELECT setval('baton.run_number', 1, false)")
        assert max(lost) < min(await _triggered(lab))


async def test_ids_are_unique_and_rise_whoever_inserts_at_once(database_url: str) -> None:
    """Ticks of several leaders, a thousand in a statement each; lists page by id."""
    async with laboratory(database_url) as lab:
        batches = await asyncio.gather(*(_inserted(lab, place) for place in range(4)))
        drawn = [id_ for batch in batches for id_ in batch]
        assert all(batch == sorted(batch) for batch in batches)
        assert len(set(drawn)) == len(drawn) == 4000
        later = await _inserted(lab, 5)
        assert max(drawn) < min(later)
        assert max(later) < 2**63


async def _inserted(lab: Lab, place: int) -> list[int]:
    rows = await lab.sql(
        """INSERT INTO baton.run (cluster_id, group_id, kind, name, tick, state, due_at)
           SELECT 1, 1, 'schedule', 'job-' || %(place)s, now() + n * interval '1 s', 'queued', now()
           FROM generate_series(1, 1000) AS n ORDER BY n RETURNING id""",
        place=place,
    )
    return [row["id"] for row in rows]


async def test_an_id_tells_when_its_run_was_made(database_url: str) -> None:
    """As Ids.Decompose takes it apart."""
    async with laboratory(database_url) as lab:
        before = datetime.now(UTC) - timedelta(milliseconds=1)
        made = await _inserted(lab, 0)
        assert all(before <= decomposed(id_).at <= datetime.now(UTC) for id_ in made)
