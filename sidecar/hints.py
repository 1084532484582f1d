"""Hints between the steps and the sidecars of a cluster: "something about this topic changed".

A hint only saves time. One that is lost costs a slow poll, never a result.
"""

from typing import Any, Protocol


class Subscription(Protocol):
    async def wait(self, timeout: float | None = None) -> bool:
        """Whether a hint came within `timeout` seconds."""

    def details(self) -> list[str]:
        """What came with the hints since the last call; may be less than was sent."""


class Hints(Protocol):
    def notify(self, topic: str, detail: str = "") -> None:
        """Send a hint soon, to every sidecar of the cluster; never blocks, never fails."""

    def subscribe(self, topic: str) -> Subscription: ...
    def unsubscribe(self, topic: str, subscription: Any) -> None: ...
