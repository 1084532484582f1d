"""Connects to the hosts of a Postgres URL concurrently.

psycopg and libpq try the hosts of a list, and the addresses of a name, one after the other: a host
that accepts a connection and does not answer uses up the time of all that follow.

Guarantees:
- hosts are tried in the order of the URL. The next attempt starts as soon as one failed, or after
  STAGGER_SECONDS of silence; the first connection wins and the others are closed;
- of a list, only a server that accepts writes is used, unless the URL says otherwise;
- one host with one address is one attempt, as without this module;
- the host keeps its name from the URL: TLS and password files compare it.

A list inside a service file (`service=` in the URL) is left to libpq.
"""

import asyncio
import random
import socket
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from ipaddress import ip_address
from typing import Any, TypeVar

from psycopg import pq
from psycopg.conninfo import conninfo_to_dict

from sidecar.model.errors import StoreUnavailable

T = TypeVar("T")
Host = Mapping[str, str]  # connection parameters that replace those of the URL

STAGGER_SECONDS = 0.25  # as RFC 8305 recommends
_LISTS = ("host", "hostaddr", "port")
_SESSION = "target_session_attrs"
_ANY = asyncio.FIRST_COMPLETED


def hosts_of(url: str) -> list[Host]:
    """The hosts to connect to, in order. Raises psycopg.ProgrammingError for an invalid URL."""
    given = {name: str(value) for name, value in conninfo_to_dict(url).items() if value is not None}
    if "service" in given:
        return [{}]
    parameters = {**_defaults(), **given}
    lists = {name: parameters[name].split(",") for name in _LISTS if parameters.get(name)}
    count = max(len(lists.get("host", ())), len(lists.get("hostaddr", ())))
    if len(lists.get("port", ())) == 1:
        lists["port"] *= count
    if count == 0 or any(len(values) != count for values in lists.values()):
        return [{}]  # the default socket; or lists that do not match, which psycopg explains
    hosts = [{name: values[at] for name, values in lists.items()} for at in range(count)]
    if count > 1 and _SESSION not in given and parameters.get(_SESSION) == "any":
        hosts = [{**host, _SESSION: "read-write"} for host in hosts]
    if parameters.get("load_balance_hosts") == "random":
        random.shuffle(hosts)
    return list(hosts)


async def addresses_of(host: Host) -> list[Host]:
    """The host once per address of its name. Raises OSError for a name without addresses."""
    name = host.get("host", "")
    if not name or host.get("hostaddr") or name.startswith(("/", "@")) or _is_address(name):
        return [host]
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(
            name, host.get("port"), type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP
        )
    except (OSError, UnicodeError) as error:
        raise OSError(f"failed to resolve host {name!r}: {error}") from None
    return [{**host, "hostaddr": str(address[0])} for *_, address in found]


def label(host: Host) -> str:
    """The host in an error message."""
    name, address = host.get("host", ""), host.get("hostaddr", "")
    place = f"{name} ({address})" if name and address else name or address or "default socket"
    return f"{place} port {host.get('port', '')}".removesuffix(" port ")


async def first_success(
    attempts: Sequence[Callable[[], Coroutine[Any, Any, T]]], *, discard: Callable[[T], None]
) -> T:
    """The result of the first attempt that succeeds; `discard` gets what comes after it.

    If all fail, a StoreUnavailable tells the problem of each.
    """
    if len(attempts) == 1:
        return await attempts[0]()
    waiting, running = deque(attempts), set[asyncio.Task[T]]()
    problems: list[str] = []
    try:
        while waiting or running:
            if waiting:
                running.add(asyncio.create_task(waiting.popleft()(), name="postgres.connect"))
            pause = STAGGER_SECONDS if waiting else None
            done, _ = await asyncio.wait(running, timeout=pause, return_when=_ANY)
            for task in done:
                running.discard(task)
                try:
                    return task.result()
                except StoreUnavailable as error:
                    problems.append(str(error))
    finally:
        for task in running:
            task.add_done_callback(partial(_discard_result, discard))
            task.cancel()
    raise StoreUnavailable("; ".join(problems))


def _discard_result(discard: Callable[[T], None], task: asyncio.Task[T]) -> None:
    """Another attempt was faster, or the caller gave up."""
    if not task.cancelled() and task.exception() is None:
        discard(task.result())


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _defaults() -> dict[str, str]:
    """The value from the environment, or libpq's default."""
    return {
        option.keyword.decode(): option.val.decode()
        for option in pq.Conninfo.get_defaults()
        if option.val is not None
    }
