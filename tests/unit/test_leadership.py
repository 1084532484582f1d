"""Who leads, from any pod, and how a hand-over is asked for."""

from __future__ import annotations

import asyncio

import pytest

from sidecar.election.leadership import Leadership
from sidecar.model.election_types import LeaderView
from sidecar.model.errors import FailedPrecondition, NotFound
from sidecar.model.term import LossReason

NOBODY = LeaderView("default", False, "", "", 0, 0.0, False, None)
OTHER = LeaderView("default", False, "b-1", "b", 5, 0.0, False, None)
MINE = LeaderView("default", True, "a-1", "", 6, 10.0, False, None)


class FakeElections:
    def __init__(self, view: LeaderView) -> None:
        self.current = view
        self.change = asyncio.Event()
        self.resigned: list[str] = []

    def view(self, group: str) -> LeaderView:
        return self.current

    async def changed(self) -> None:
        await self.change.wait()
        self.change.clear()

    def resign(self, group: str, reason: LossReason) -> None:
        self.resigned.append(group)


class FakeRequests:
    def __init__(self) -> None:
        self.asked: list[tuple[int, int]] = []

    async def request_resign(self, group_id: int, epoch: int) -> None:
        self.asked.append((group_id, epoch))


def _leadership(
    elections: FakeElections, requests: FakeRequests, hints: list[tuple[str, str]]
) -> Leadership:
    return Leadership(
        elections,
        requests,
        lambda: {"default": 3},
        lambda topic, detail: hints.append((topic, detail)),
        groups=["default"],
        host="a",
    )


def test_a_group_that_is_not_configured_is_not_found() -> None:
    """G11."""
    with pytest.raises(NotFound, match="'x' is not in the configuration"):
        _leadership(FakeElections(NOBODY), FakeRequests(), []).get("x")


def test_an_empty_group_is_the_default_and_the_host_is_ours_when_we_lead() -> None:
    assert _leadership(FakeElections(MINE), FakeRequests(), []).get("").host == "a"


async def test_resigning_here_begins_at_once() -> None:
    elections, requests = FakeElections(MINE), FakeRequests()
    await _leadership(elections, requests, []).resign("default")
    assert elections.resigned == ["default"]
    assert not requests.asked


async def test_resigning_elsewhere_is_stored_before_the_hint() -> None:
    hints: list[tuple[str, str]] = []
    elections, requests = FakeElections(OTHER), FakeRequests()
    await _leadership(elections, requests, hints).resign("default")
    assert requests.asked == [(3, 5)]
    assert hints == [("resign", "default")]


async def test_nobody_to_resign_is_an_error() -> None:
    """G11."""
    with pytest.raises(FailedPrecondition, match="has no leader"):
        await _leadership(FakeElections(NOBODY), FakeRequests(), []).resign("default")


async def test_a_watch_tells_changes_only() -> None:
    elections = FakeElections(OTHER)
    watch = _leadership(elections, FakeRequests(), []).watch("default")
    assert (await anext(watch)).epoch == 5
    following = asyncio.ensure_future(anext(watch))
    elections.change.set()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not following.done()
    elections.current = MINE
    elections.change.set()
    assert (await asyncio.wait_for(following, 5)).epoch == 6
