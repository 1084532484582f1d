"""Schedules and singletons that the app declares in its code, sent when a process attaches.

Guarantees:
- a declaration that is not valid is refused with the name of its field (G11), and its process does
  not attach: nothing of it is applied;
- the file wins over the code for the same name; a clash is logged with both places.
"""

import asyncio
from collections.abc import Callable, Collection, Sequence

import structlog

from sidecar.model.definitions import Schedule, Singleton
from sidecar.model.errors import InvalidArgument
from sidecar.model.process import DeclaredSingletons, ProcessHello
from sidecar.scheduling.config_sync import ConfigSync
from sidecar.scheduling.validation import checked

log = structlog.get_logger()


class CodeDeclarations:
    """`changed` is called with the names of singletons and schedules after each declaration."""

    def __init__(
        self,
        sync: ConfigSync,
        singletons: DeclaredSingletons,
        changed: Callable[[Sequence[str], Sequence[str]], None],
        *,
        cluster: str,
        groups: Collection[str],
    ) -> None:
        self._sync = sync
        self._singletons = singletons
        self._changed = changed
        self._cluster = cluster
        self._groups = groups
        self._revision = 0
        self._known: tuple[tuple[Schedule, ...], tuple[Singleton, ...]] | None = None

    async def declare(self, hello: ProcessHello) -> None:
        """Apply what the process declares, unless a process of a newer build attached before."""
        declared = hello.declared_schedules, hello.declared_singletons
        # Computing the ticks of many cron expressions takes long: beside the loop.
        await asyncio.to_thread(self._check, hello)
        if hello.revision < self._revision or declared == self._known:
            return
        self._revision, self._known = hello.revision, declared
        for name in self._singletons.declare(hello.declared_singletons):
            log.error(
                "singleton_name_clash",
                singleton=name,
                problem="the configuration file and the app's code both declare it: the one of the"
                " file is used; delete or rename one of them",
            )
        self._sync.declare(hello.declared_schedules, hello.revision)
        self._changed(
            [each.name for each in hello.declared_singletons],
            [each.name for each in hello.declared_schedules],
        )

    def _check(self, hello: ProcessHello) -> None:
        for number, schedule in enumerate(hello.declared_schedules):
            place = f"hello.declared_schedules[{number}]"
            checked(schedule, self._cluster, place)
            self._check_group(schedule.group, place)
        for number, singleton in enumerate(hello.declared_singletons):
            self._check_group(singleton.group, f"hello.declared_singletons[{number}]")

    def _check_group(self, group: str, place: str) -> None:
        if group not in self._groups:
            raise InvalidArgument(
                f"{place}.group", f"{group!r} is not one of the configured groups"
            )
