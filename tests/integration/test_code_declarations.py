"""Schedules declared in the app's code: the rules of the file, and the file before the code."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from sidecar.model.definitions import Schedule, Singleton
from sidecar.model.errors import FailedPrecondition, InvalidArgument
from sidecar.model.process import DeclaredSingletons, ProcessHello
from sidecar.scheduling.catalogue import Schedules
from sidecar.scheduling.config_sync import ConfigSync
from sidecar.scheduling.declarations import CodeDeclarations
from tests.integration.runs_lab import Lab, laboratory


@pytest.fixture
async def lab(database_url: str) -> AsyncIterator[Lab]:
    async with laboratory(database_url) as lab:
        yield lab


def a_sync(lab: Lab, source: str, **more: float) -> ConfigSync:
    cluster = lab.identity.cluster
    return ConfigSync(lab.schedules, lab.hints, cluster=cluster, source=source, **more)  # type: ignore[arg-type]


def named(*names: str, every: float = 3600.0) -> list[Schedule]:
    return [Schedule(name=name, every_seconds=every) for name in names]


async def sources(lab: Lab) -> dict[str, str]:
    catalogue = Schedules(lab.schedules, lab.hints, cluster=lab.identity.cluster)
    found = await catalogue.page(after="", limit=100, include_retired=False)
    return {each.name: each.source for each in found}


async def test_file_and_code_are_apart(lab: Lab) -> None:
    """What one no longer names is retired; what the other names stays."""
    file, code = a_sync(lab, "config"), a_sync(lab, "code")
    assert await file.sync(named("a", "b"), 3)
    assert await code.sync(named("c", "d"), 0)
    assert await sources(lab) == {"a": "config", "b": "config", "c": "code", "d": "code"}
    assert await code.sync(named("d"), 0)
    assert await file.sync(named("b"), 4)
    assert await sources(lab) == {"b": "config", "d": "code"}


async def test_the_file_wins_over_the_code_and_gives_the_name_back(lab: Lab) -> None:
    file, code = a_sync(lab, "config"), a_sync(lab, "code")
    await code.sync(named("both", every=60.0), 0)
    before = await lab.schedules.get("both")
    await file.sync(named("both", every=120.0), 0)
    taken = await lab.schedules.get("both")
    assert (taken.source, taken.definition.every_seconds) == ("config", 120.0)
    assert taken.id == before.id
    await code.sync(named("both", every=60.0), 0)
    assert (await lab.schedules.get("both")).source == "config"
    await file.sync([], 0)
    await code.sync(named("both", every=60.0), 0)
    again = await lab.schedules.get("both")
    assert (again.source, again.definition.every_seconds) == ("code", 60.0)


async def test_a_schedule_of_the_api_is_left_alone(lab: Lab) -> None:
    catalogue = Schedules(lab.schedules, lab.hints, cluster=lab.identity.cluster)
    await catalogue.create(named("mine", every=60.0)[0])
    await a_sync(lab, "code").sync(named("mine", "other"), 0)
    assert await sources(lab) == {"mine": "api", "other": "code"}
    with pytest.raises(FailedPrecondition, match="belongs to the app's code"):
        await catalogue.delete("other")


async def test_an_older_build_never_overrides_a_newer_one(lab: Lab) -> None:
    new, old = a_sync(lab, "code"), a_sync(lab, "code", gone_seconds=60.0)
    assert await new.sync(named("a", "new"), 8)
    assert not await old.sync(named("a", "old"), 7)
    assert set(await sources(lab)) == {"a", "new"}


class Declared:
    def __init__(self, lab: Lab) -> None:
        self.singletons = DeclaredSingletons([Singleton("filed")])
        self.told: list[tuple[list[str], list[str]]] = []
        self.declarations = CodeDeclarations(
            a_sync(lab, "code"),
            self.singletons,
            lambda singletons, schedules: self.told.append((list(singletons), list(schedules))),
            cluster=lab.identity.cluster,
            groups=("default",),
        )


async def test_a_declaration_that_is_not_valid_names_its_field(lab: Lab) -> None:
    """G11: and nothing of it is applied."""
    declared = Declared(lab)
    for schedule, field in (
        (Schedule("a", cron="61 * * * *"), "cron"),
        (Schedule("a", every_seconds=60.0, group="other"), "group"),
        (Schedule("a"), "hello.declared_schedules[1]"),
    ):
        good = named("good")[0]
        with pytest.raises(InvalidArgument) as refused:
            await declared.declarations.declare(
                ProcessHello("c", "1", 1, declared_schedules=(good, schedule))
            )
        assert refused.value.field.startswith("hello.declared_schedules[1]")
        assert field in refused.value.field
    assert declared.told == []


async def test_singletons_of_file_and_code_are_joined(lab: Lab) -> None:
    declared = Declared(lab)
    singletons = (Singleton("filed", restart_after_seconds=9.0), Singleton("coded"))
    await declared.declarations.declare(
        ProcessHello("c", "1", 1, declared_singletons=singletons, revision=2)
    )
    assert sorted(each.name for each in declared.singletons) == ["coded", "filed"]
    filed = declared.singletons.get("filed")
    assert filed is not None
    assert filed.restart_after_seconds == 5.0  # the file wins
    await declared.declarations.declare(ProcessHello("c", "2", 1, revision=1))  # an older build
    assert declared.singletons.get("coded") is not None
    assert declared.told == [(["filed", "coded"], [])]
