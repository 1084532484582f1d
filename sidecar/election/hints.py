"""NOTIFY hints that concern the election, turned into its events.

A hint only saves time: without it the next poll finds the released group, and the next ping finds
the request to resign.
"""

from contextlib import suppress
from functools import partial

from sidecar.election.elector import Elector
from sidecar.hints import Hints


async def follow_releases(hints: Hints, elector: Elector) -> None:
    """Compete for a group as soon as another runner has released it."""
    releases = hints.subscribe("release")
    while True:
        await releases.wait()
        for group_id in releases.details():
            with suppress(ValueError):
                elector.handle(partial(elector.election.released_elsewhere, int(group_id)))


async def follow_resign_requests(hints: Hints, elector: Elector) -> None:
    """Ping as soon as a resign request was stored: the answer names the group."""
    requests = hints.subscribe("resign")
    while True:
        await requests.wait()
        elector.handle(lambda _: elector.election.resign_requested())
