"""The last release and this one share a database, as in a rollout and in its way back.

Both are real sidecars under the load of the fault suite, and its judge reads the whole history: who
led, every tick, every write that was acknowledged, every read. The steps are those of "Upgrades" in
docs/operations.md.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from sidecar.adapters.postgres.migrate import migrate, newest_version
from tests.acceptance.faults.arena import Arena, Scene
from tests.acceptance.faults.catalogue import CLEAN, CRASH
from tests.acceptance.faults.run import Fault, Result, run, terms
from tests.lab.pages import ROOT
from tests.migration import last_release

pytestmark = pytest.mark.timeout(600)  # what the arena waits for has time limits of its own

# Two replicas: whoever leads next is of the other release.
_SCENE = Scene(replicas=2, loaded=2)
_LEAST = {"ticks": 20, "executions": 15, "commits": 20, "put": 15, "add": 5, "count": 10,
          "strong": 15, "cached": 15, "own": 15, "probes": 40}  # fmt: skip


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return last_release.build(tmp_path_factory.mktemp("last-release"))


def test_an_upgrade_and_its_way_back(packages: Path, tmp_path: Path) -> None:
    """G1 to G8: on tables of the last release, migrated while it leads, each pod is rolled to this
    release and then back; each hand-over takes a second.
    """

    def start_old(arena: Arena) -> None:
        for pod in arena.cluster.replicas:
            last_release.use(pod, packages)

    def roll(arena: Arena) -> None:
        if not arena.windows:
            _migrate(arena)
        arena.end(arena.victim.sidecar)
        forth = len(arena.windows) < len(arena.cluster.replicas)
        last_release.use(arena.victim, None if forth else packages)

    fault = Fault(
        "upgrade", "each pod in turn to this release, then each back", _noting(packages, roll),
        Arena.revive, terms(takeover_seconds=CLEAN, clean=True, mutes=True, least=_LEAST),
        rounds=4, rest=2.0, scene=replace(_SCENE, before_start=start_old),
        pick=lambda arena, number: arena.cluster[number % 2],
    )  # fmt: skip
    result = run(fault, tmp_path)
    assert not result.violations, "\n".join(result.violations)
    _assert_both_led(result)


@pytest.mark.deep
def test_each_release_takes_over_from_the_other_when_it_crashes(
    packages: Path, tmp_path: Path
) -> None:
    """G1 to G8: on tables that this release made; the last one leads, ticks and stores there."""

    def one_old(arena: Arena) -> None:
        _migrate(arena)
        last_release.use(arena.cluster[0], packages)

    fault = Fault(
        "crash", "kill -9 of the leader's sidecar",
        _noting(packages, lambda arena: arena.victim.sidecar.kill()), Arena.revive,
        terms(takeover_seconds=CRASH, mutes=True, least=_LEAST),
        rounds=2, rest=2.0, scene=replace(_SCENE, before_start=one_old),
    )  # fmt: skip
    result = run(fault, tmp_path)
    assert not result.violations, "\n".join(result.violations)
    _assert_both_led(result)


def _migrate(arena: Arena) -> None:
    asyncio.run(migrate(arena.url, "baton"))
    assert arena.sql("SELECT schema_version FROM baton.meta") == [(newest_version(),)]


def _noting(packages: Path, inject: Callable[[Arena], None]) -> Callable[[Arena], None]:
    """Which release led before the fault, and that what runs is what we think it is."""

    def noted(arena: Arena) -> None:
        leader = arena.cluster.wait_for_leader()
        old = leader.sidecar.env.get("PYTHONPATH") == str(packages)
        home = packages if old else ROOT
        assert last_release.imported_from(leader) == home / "sidecar"
        versions = [line["version"] for line in leader.log() if line["event"] == "sidecar_starting"]
        assert not old or versions[-1] == last_release.VERSION
        arena.notes.setdefault("led", []).append("last" if old else "this")
        inject(arena)

    return noted


def _assert_both_led(result: Result) -> None:
    """Led when the next one took over from them, after two seconds of work at least."""
    assert {"last", "this"} <= set(result.notes["led"]), result.notes
