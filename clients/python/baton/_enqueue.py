"""Jobs submitted by SQL on the user's own connection: they exist if its transaction commits.

    SELECT baton.enqueue('orders', 'send-mail', '{"to": …}'::jsonb, priority => 'high')

No driver is needed here: a connection is recognized by what it offers. Each driver has its own way
to write a parameter, so that the statement differs, never its values.
"""

from __future__ import annotations

import importlib
import inspect
import json
from collections.abc import Callable, Mapping
from typing import Any, Unpack

from baton._durations import span
from baton._specs import JobOptions, JobSpec, SubmitOptions, retry_policy

_Argument = tuple[str, str, Any]  # name, cast, value


class Enqueue:
    """Submits jobs of one cluster on connections of the user's."""

    def __init__(
        self, cluster: str, options: Mapping[str, JobOptions], *, schema: str = "baton"
    ) -> None:
        if not schema.isidentifier():
            raise ValueError(f"schema {schema!r} is no plain name")
        self._cluster, self._options, self._schema = cluster, options, schema

    def submit(
        self, connection: Any, name: str, payload: Any = None, **options: Unpack[SubmitOptions]
    ) -> int:
        """For psycopg and SQLAlchemy: the id of the job."""
        return int(_scalar(self._executed(connection, JobSpec(name, payload, **options))))

    async def submit_async(
        self, connection: Any, name: str, payload: Any = None, **options: Unpack[SubmitOptions]
    ) -> int:
        """For psycopg's AsyncConnection, SQLAlchemy's AsyncSession and asyncpg: the id."""
        spec = JobSpec(name, payload, **options)
        if _is_asyncpg(connection):
            statement, values = self._statement(spec, lambda _, number: f"${number}")
            return int(await connection.fetchval(statement, *values.values()))
        result = await self._executed(connection, spec)
        row = result.fetchone()
        return int((await row if inspect.isawaitable(row) else row)[0])

    def _executed(self, connection: Any, spec: JobSpec) -> Any:
        if _is_sqlalchemy(connection):
            text = importlib.import_module("sqlalchemy").text  # of the user's own installation
            statement, values = self._statement(spec, lambda name, _: f":{name}")
            return connection.execute(text(statement), values)
        statement, values = self._statement(spec, lambda name, _: f"%({name})s")
        return connection.execute(statement, values)

    def _statement(
        self, spec: JobSpec, placeholder: Callable[[str, int], str]
    ) -> tuple[str, dict[str, Any]]:
        """The statement for a way to write parameters, and the values by name, in order."""
        arguments = _arguments(self._cluster, spec.completed(self._options.get(spec.name)))
        parts = [
            f"{name} => CAST({placeholder(name, number)} AS {kind})"
            for number, (name, kind, _) in enumerate(arguments, start=1)
        ]
        values = {name: value for name, _, value in arguments}
        return f"SELECT {self._schema}.enqueue({', '.join(parts)})", values


def _arguments(cluster: str, spec: JobSpec) -> list[_Argument]:
    """What is said about the job, by the names of the SQL function; the rest is its default."""
    retry, unique = retry_policy(spec.retry), spec.unique
    given: list[_Argument] = [
        ("cluster", "text", cluster),
        ("name", "text", spec.name),
        ("payload", "jsonb", _json(spec.payload)),
        ("queue", "text", spec.queue or None),
        ("priority", "text", spec.priority or None),
        ("due_at", "timestamptz", spec.due_at),
        ("delay", "interval", span(spec.delay)),
        ("expires_at", "timestamptz", spec.expires_at),
        ("key", "text", spec.key or None),
        ("unique_key", "text", unique.key if unique else None),
        ("unique_window", "interval", span(unique.window) if unique else None),
        ("on_conflict", "text", unique.on_conflict if unique else None),
        ("attempts", "int", retry.attempts if retry else None),
        ("timeout", "interval", span(spec.timeout)),
        ("labels", "jsonb", _json(dict(spec.labels)) if spec.labels else None),
        ("batch", "text", spec.batch or None),
        ("content_type", "text", spec.content_type or None),
    ]
    return [argument for argument in given if argument[2] is not None]


def _json(value: Any) -> str:
    if isinstance(value, (bytes, bytearray, memoryview)):
        raise TypeError("a job submitted by SQL has a JSON payload, not bytes")
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def _scalar(result: Any) -> Any:
    return result.fetchone()[0]


def _is_asyncpg(connection: Any) -> bool:
    return hasattr(connection, "fetchval")


def _is_sqlalchemy(connection: Any) -> bool:
    """A Connection, a Session, or their async forms; also a subclass of the user's."""
    return any(kind.__module__.startswith("sqlalchemy.") for kind in type(connection).__mro__)
