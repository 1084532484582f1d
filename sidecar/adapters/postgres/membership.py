"""Joining the cluster: its row, its groups, and the registry of living runners.

Guarantees: a different app under the same cluster name is refused (`ClusterTaken`); tables that do
not fit this binary are refused (`IncompatibleSchema`), and so is a role that may not use them; a
runner that shuts down deletes its row.
"""

from collections.abc import Sequence

import psycopg

from sidecar.adapters.postgres.database import Database, Row
from sidecar.adapters.postgres.migrate import check_compatible
from sidecar.model.election_types import RunnerSeen
from sidecar.model.errors import ClusterTaken, IncompatibleSchema, StoreRefused, StoreUnavailable
from sidecar.model.identity import Identity

# Three heartbeats: a runner not seen for longer does not count as alive.
ALIVE_SECONDS = 15.0


class Membership:
    """This runner's place in the cluster."""

    def __init__(self, database: Database, *, runner_id: str, host: str, version: str) -> None:
        self._database = database
        self._runner_id = runner_id
        self._host = host
        self._version = version

    async def join(self, cluster: str, app_name: str, groups: Sequence[str]) -> Identity:
        """Look up or create the cluster and its groups."""
        try:
            meta = await self._database.fetch_one("cluster/schema_version")
        except StoreRefused as error:
            if not isinstance(error.__cause__, psycopg.errors.UndefinedTable):
                raise
            meta = None
        if meta is None:
            raise IncompatibleSchema("there are no tables yet: run 'baton migrate'")
        check_compatible(schema_version=meta["schema_version"], oldest_reader=meta["oldest_reader"])
        refuse_missing_rights(await self._database.fetch("cluster/missing_rights"))
        row = await self._database.fetch_one(
            "cluster/join", {"cluster": cluster, "app_name": app_name}
        )
        if row is None or (app_name and row["app_name"] != app_name):
            raise ClusterTaken(
                f"cluster {cluster!r} belongs to the app {row and row['app_name']!r}, this sidecar"
                f" serves {app_name!r}: two apps would take each other's work; give one of them"
                " another cluster name"
            )
        rows = await self._groups(row["id"], groups)
        return Identity(
            cluster=cluster,
            cluster_id=row["id"],
            runner_id=self._runner_id,
            host=self._host,
            groups={r["name"]: r["id"] for r in rows},
            installation_id=meta["installation_id"],
        )

    async def _groups(self, cluster_id: int, names: Sequence[str]) -> list[Row]:
        """The rows of the groups. Tried again: a statement does not see rows that another runner
        created after it began."""
        for _ in range(3):
            rows = await self._database.fetch(
                "cluster/groups", {"cluster_id": cluster_id, "names": list(names)}
            )
            if {row["name"] for row in rows} == set(names):
                return rows
        raise StoreUnavailable("the groups are being created by another runner")

    async def beat(
        self,
        identity: Identity,
        *,
        campaigning: bool,
        config_revision: int,
        healthy: bool | None = None,
    ) -> list[RunnerSeen]:
        """Write this runner's heartbeat and groups; returns the other runners that are alive."""
        rows = await self._database.fetch(
            "cluster/beat",
            {
                "cluster_id": identity.cluster_id,
                "runner_id": self._runner_id,
                "host": self._host,
                "version": self._version,
                "campaigning": campaigning,
                "config_revision": config_revision,
                "group_ids": list(identity.groups.values()),
                "alive_seconds": ALIVE_SECONDS,
                "healthy": healthy,
            },
        )
        return [
            RunnerSeen(row["runner_id"], row["campaigning"], row["campaigning_seconds"])
            for row in rows
        ]

    async def leave(self) -> None:
        await self._database.fetch("cluster/leave", {"runner_id": self._runner_id}, seconds=1.0)

    async def request_resign(self, group_id: int, epoch: int) -> None:
        """Ask the leader of this epoch to hand over; its next ping sees it."""
        await self._database.fetch(
            "election/request_resign", {"group_id": group_id, "epoch": epoch}
        )


def refuse_missing_rights(rows: Sequence[Row]) -> None:
    """Raise at the start instead of at the first statement that needs the missing right."""
    if rows:
        tables = ", ".join(row["table_name"] for row in rows)
        raise StoreRefused(
            f"the role {rows[0]['role']} may not read and write the tables {tables}:"
            " grant it what docs/security.md lists"
        )
