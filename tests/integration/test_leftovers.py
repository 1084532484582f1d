"""What groups leave behind when no file names them any more, on a real Postgres."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from sidecar.adapters.postgres.membership import Membership
from sidecar.adapters.postgres.runs import PostgresRuns
from sidecar.model.errors import Fenced
from sidecar.model.run import Outcome, Run
from sidecar.model.run_records import Completion
from sidecar.model.term import Term
from sidecar.model.verdict import Verdict
from sidecar.scheduling import retention
from sidecar.scheduling.retention import AbandonedGroups
from tests.integration.runs_lab import Lab, laboratory

KEEP_SECONDS = timedelta(days=7).total_seconds()


@dataclass
class Removal:
    """The pod of the lab has only `default`; `other` was led once, by a pod that is gone."""

    lab: Lab
    term: Term
    life: Run

    @property
    def runs(self) -> PostgresRuns:
        identity = replace(
            self.lab.identity, groups={"default": self.lab.identity.groups["default"]}
        )

        async def who() -> Any:
            return identity

        return PostgresRuns(self.lab.database, who)

    async def clean_up(self) -> None:
        await AbandonedGroups(self.runs, keep_seconds=KEEP_SECONDS).clean_up()

    async def beat(self, name: str, *groups: str) -> None:
        runner = Membership(self.lab.database, runner_id=name, host=name, version="0")
        identity = await runner.join("test", "", groups)
        await runner.beat(identity, campaigning=False, config_revision=0)

    async def ended(self, *, days: int) -> None:
        """A life that ended so long ago."""
        life = await self.lab.runs.start_singleton(self.term, "ended")
        verdict = Verdict(Outcome.SUCCEEDED, cause="returned")
        assert await self.lab.runs.complete(self.term, [Completion(life, verdict)])
        await self.lab.sql(
            "UPDATE baton.run SET finished_at = finished_at - make_interval(days => %(days)s)"
            " WHERE id = %(id)s",
            days=days,
            id=life.ref.run_id,
        )

    async def untouched(self) -> bool:
        rows = await self.lab.rows()
        return [row["state"] for row in rows if row["name"] == "keeper"] == ["running"] and any(
            row["name"] == "ended" for row in rows
        )


@pytest.fixture
async def removal(database_url: str) -> AsyncIterator[Removal]:
    async with laboratory(database_url) as lab:
        term = await lab.term("other")
        removal = Removal(lab, term, await lab.runs.start_singleton(term, "keeper"))
        await removal.ended(days=8)
        await removal.beat("new", "default")
        yield removal


async def test_a_life_in_a_group_that_nobody_names_ends(removal: Removal) -> None:
    await removal.clean_up()
    (row,) = await removal.lab.rows("keeper")
    assert (row["state"], row["outcome"], row["error_code"]) == ("ended", "failed", "ABANDONED")
    assert row["history"][-1]["cause"] == "group removed"
    (remembered,) = await removal.lab.sql(
        "SELECT run_count, last_error FROM baton.execution WHERE name = 'keeper'"
    )
    assert remembered == {"run_count": 1, "last_error": "its term ended before it did"}


async def test_a_singleton_that_moved_keeps_its_last_error(removal: Removal) -> None:
    await removal.lab.runs.start_singleton(await removal.lab.term("default"), "keeper")
    await removal.clean_up()
    (remembered,) = await removal.lab.sql(
        "SELECT run_count, last_error FROM baton.execution WHERE name = 'keeper'"
    )
    assert remembered == {"run_count": 1, "last_error": ""}
    assert [row["state"] for row in await removal.lab.rows("keeper")] == ["ended", "running"]


async def test_its_history_is_forgotten_when_it_is_old_enough(
    removal: Removal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "BATCH_MAX", 2)
    for days in (6, 8, 9, 10, 11):
        await removal.ended(days=days)
    await removal.clean_up()
    assert len(await removal.lab.rows("ended")) == 1


async def test_a_group_that_a_pod_of_an_older_file_has_is_left_alone(removal: Removal) -> None:
    """Even while that pod's app is down, so that nobody leads the group; until it leaves."""
    await removal.beat("old", "default", "other")
    await removal.clean_up()
    assert await removal.untouched()
    await removal.lab.sql("DELETE FROM baton.runner WHERE runner_id = 'old'")
    await removal.clean_up()
    assert not await removal.untouched()


async def test_a_pod_of_an_older_release_may_have_any_group(removal: Removal) -> None:
    await removal.beat("old", "default")
    await removal.lab.sql("UPDATE baton.runner SET group_ids = NULL WHERE runner_id = 'old'")
    await removal.clean_up()
    assert await removal.untouched()


async def test_a_group_that_somebody_holds_is_left_alone(removal: Removal) -> None:
    """G3: whatever the registry says."""
    row = await removal.lab.database.fetch_one("election/session", {})
    assert row
    async with await psycopg.AsyncConnection.connect(removal.lab.url) as connection:
        lock = (row["lock_class"], removal.term.group_id)
        await connection.execute("SELECT pg_advisory_xact_lock(%s, %s)", lock)
        await removal.clean_up()
        assert await removal.untouched()
    await removal.clean_up()
    assert not await removal.untouched()


async def test_nothing_ends_once_somebody_took_the_group_over(removal: Removal) -> None:
    """G3: seen as vanished, but led again by the time that it is touched."""
    (vanished,) = await removal.runs.abandoned_groups()
    assert vanished == removal.term
    await removal.lab.term("other")
    with pytest.raises(Fenced):
        await removal.runs.end_abandoned_singletons(vanished, limit=10)
    assert await removal.untouched()


async def test_it_waits_for_nobody(removal: Removal) -> None:
    async with removal.lab.database.transaction() as transaction:
        text = removal.lab.database.queries.qualified("SELECT id FROM baton.run FOR UPDATE")
        await transaction.run(text, {})
        await removal.clean_up()
    assert await removal.untouched()
