"""The lock session: one direct connection whose advisory locks are the leadership of all groups.

Guarantees:
- the server ends this session after `server_lease` of silence, so a frozen or disconnected holder
  loses its locks; the client never waits longer than the election's deadline;
- it refuses a read-only server, and a pooler, which would share the session with other clients; the
  error says what to do;
- each statement is one autocommit transaction: the session is never idle in a transaction.

`model/election.py` decides which statements to send; this module only executes them.
"""

from collections.abc import Callable, Sequence
from functools import singledispatchmethod
from typing import Any

import psycopg

from sidecar.adapters.postgres.queries import Queries
from sidecar.adapters.postgres.session import (
    Connection,
    connect,
    discard,
    fetch,
    hang_up,
    sync_wait_cancelled,
)
from sidecar.model.election_types import (
    Backend,
    Beat,
    Blocked,
    Done,
    Holder,
    Inspect,
    Inspected,
    Ping,
    Pinged,
    Poll,
    Polled,
    Reap,
    Release,
    Result,
    Statement,
    Taken,
    Takeover,
    Timers,
)
from sidecar.model.errors import StoreUnavailable, WrongServer


class LeaderLock:
    """Executes the election's statements on the lock session."""

    def __init__(
        self,
        url: Callable[[], str],
        *,
        schema: str,
        channel: str,
        runner_id: str,
        host: str,
        timers: Timers,
    ) -> None:
        self._url = url
        self._queries = Queries(schema)
        self._channel = channel
        self._runner_id = runner_id
        self._host = host
        self._timers = timers
        self._connection: Connection | None = None
        self._lock_class = 0
        self._sync_wait_cancelled = False

    async def open(self) -> None:
        """Open a new session. Raises StoreUnavailable or WrongServer."""
        await self.close()
        milliseconds = f"{round(self._timers.server_lease * 1000)}ms"
        connection = await connect(
            self._url,
            purpose="lock",
            seconds=self._timers.lease,
            tcp_user_timeout_seconds=self._timers.server_lease,
            settings={
                "idle_session_timeout": milliseconds,
                "idle_in_transaction_session_timeout": milliseconds,
                "statement_timeout": f"{round(self._timers.lease * 1000)}ms",
                "lock_timeout": "500ms",
                "tcp_keepalives_idle": "1",
                "tcp_keepalives_interval": "1",
                "tcp_keepalives_count": "3",
                "tcp_user_timeout": milliseconds,
                "synchronous_commit": "on",
            },
        )
        try:
            self._lock_class = await self._inspect_server(connection)
        except BaseException:
            await discard(connection)
            raise
        connection.add_notice_handler(self._on_notice)
        self._connection = connection

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection:
            await discard(connection)

    def hang_up(self) -> None:
        """Drop the connection now; a statement in flight fails at once."""
        if self._connection:
            hang_up(self._connection)

    async def execute(self, statement: Statement) -> Result:
        """Run one statement. After any failure the session must be closed."""
        return await self._execute(statement)

    @singledispatchmethod
    async def _execute(self, statement: Statement) -> Result:
        raise TypeError(statement)

    @_execute.register
    async def _poll(self, poll: Poll) -> Sequence[Polled]:
        rows = await self._fetch(
            "election/poll", read_ids=list(poll.read_ids), try_ids=list(poll.try_ids)
        )
        return [
            Polled(
                group_id=row["group_id"],
                locked=row["locked"],
                holder=Holder(row["epoch"], row["runner_id"], row["host"], row["clean"]),
                beat=_beat(row),
            )
            for row in rows
        ]

    @_execute.register
    async def _takeover(self, takeover: Takeover) -> Taken | Blocked:
        self._sync_wait_cancelled = False
        try:
            rows = await self._fetch(
                "election/takeover",
                group_id=takeover.group_id,
                highest_epoch_seen=takeover.highest_epoch_seen,
                runner_id=self._runner_id,
                host=self._host,
            )
        except StoreUnavailable as error:
            if not isinstance(error.__cause__, psycopg.errors.LockNotAvailable):
                raise
            await self._fetch("election/clear_blockers")
            return Blocked()
        if self._sync_wait_cancelled:
            raise StoreUnavailable("the takeover was not replicated to the standby")
        return _taken(rows)

    @_execute.register
    async def _ping(self, ping: Ping) -> Pinged:
        self._sync_wait_cancelled = False
        rows = await self._fetch(
            "election/ping", group_ids=list(ping.group_ids), epochs=list(ping.epochs)
        )
        return Pinged(
            group_ids=frozenset(row["group_id"] for row in rows),
            resign_ids=frozenset(row["group_id"] for row in rows if row["resign"]),
            acknowledged=not self._sync_wait_cancelled,
        )

    @_execute.register
    async def _release(self, release: Release) -> Done:
        if release.clean:
            await self._mark_clean(release)
        await self._fetch("election/unlock", group_id=release.group_id)
        await self._fetch(
            "election/notify", channel=self._channel, payload=f"release {release.group_id}"
        )
        return Done()

    async def _mark_clean(self, release: Release) -> None:
        try:
            await self._fetch(
                "election/release",
                group_id=release.group_id,
                epoch=release.epoch,
                why=release.why,
            )
        except StoreUnavailable as error:
            # A write holds the row. The successor then waits its grace period, which is better
            # than to lose the session with all terms.
            if not isinstance(error.__cause__, psycopg.errors.LockNotAvailable):
                raise

    @_execute.register
    async def _inspect(self, inspect: Inspect) -> Inspected:
        rows = await self._fetch("election/inspect", group_ids=list(inspect.group_ids))
        return Inspected(
            {
                row["group_id"]: Backend(row["pid"], row["backend_start"], row["state_change"])
                for row in rows
            }
        )

    @_execute.register
    async def _reap(self, reap: Reap) -> Done:
        backend = reap.backend
        await self._fetch(
            "election/reap",
            pid=backend.pid,
            started_at=backend.started_at,
            changed_at=backend.changed_at,
        )
        return Done()

    async def _fetch(self, query: str, **parameters: Any) -> list[dict[str, Any]]:
        if self._connection is None:
            raise StoreUnavailable("the lock session is closed")
        parameters["lock_class"] = self._lock_class
        # A backstop: the election's own deadline for the statement expires first.
        seconds = self._timers.lease + 1
        return await fetch(self._connection, self._queries[query], parameters, seconds)

    async def _inspect_server(self, connection: Connection) -> int:
        rows = await fetch(connection, self._queries["election/session"], {}, self._timers.lease)
        if not rows:
            raise StoreUnavailable(f"the table {self._queries.schema}.meta is empty")
        facts = rows[0]
        if facts["in_recovery"] or facts["read_only"]:
            raise WrongServer(
                "postgres.direct_url leads to a read-only server; point it at the primary"
            )
        return int(facts["lock_class"])

    def _on_notice(self, notice: psycopg.errors.Diagnostic) -> None:
        self._sync_wait_cancelled = self._sync_wait_cancelled or sync_wait_cancelled(notice)


def _beat(row: dict[str, Any]) -> Beat:
    return Beat(row["beat_epoch"], row["beat_sequence"], row["beat_timeline"])


def _taken(rows: list[dict[str, Any]]) -> Taken:
    if not rows:
        raise StoreUnavailable("the group's row is missing")
    row = rows[0]
    return Taken(
        epoch=row["epoch"],
        found=_beat(row),
        found_clean=row["found_clean"],
        clean_timeline=row["clean_timeline"],
        timeline=row["timeline"],
    )
