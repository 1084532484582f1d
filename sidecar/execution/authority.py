"""The right to execute runs and to record their results.

The election issues one Authority per term, the worker lease one for as long as it is held. It is
passed down as an argument to the code that executes runs. A write carries its fencing token, so
that storage refuses it once the term or the lease is over.

    issued ─▶ trusted … ─▶ draining (finish by `drain_deadline`) ─▶ over
                 └──────── revoked: the work is cancelled ─────────▶ over
"""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from sidecar.model.term import LossReason, Term
from sidecar.model.worker_lease import Lease


@dataclass(slots=True, eq=False)
class Authority:
    """A term or a worker lease in progress on this runner.

    `trusted_seconds` is how long it can still be trusted, never negative; call it right before
    acting. `revoke` ends the authority: at once for FENCED, by a hand-over for any other reason.
    `verify` makes the issuer confirm it now instead of at the next ping.
    """

    issuer: Term | Lease
    trusted_seconds: Callable[[], float]
    revoke: Callable[[LossReason], None]
    verify: Callable[[], None] = lambda: None
    draining: asyncio.Event = field(default_factory=asyncio.Event)
    drain_deadline: float = 0.0  # boottime; while draining, the work must have ended by then

    @property
    def term(self) -> Term:
        """For the work of a leader, which no worker lease allows."""
        if not isinstance(self.issuer, Term):
            raise TypeError("a worker lease is no term")
        return self.issuer

    @property
    def lease(self) -> Lease:
        """For the work of a worker."""
        if not isinstance(self.issuer, Lease):
            raise TypeError("a term is no worker lease")
        return self.issuer

    @property
    def token(self) -> int:
        """The fencing token."""
        return self.issuer.epoch

    @property
    def trusted(self) -> bool:
        return self.trusted_seconds() > 0


class Authorities:
    """The authorities in force on this runner."""

    def __init__(self) -> None:
        self._by_issuer: dict[Term | Lease, Authority] = {}

    def add(self, authority: Authority) -> None:
        self._by_issuer[authority.issuer] = authority

    def remove(self, issuer: Term | Lease) -> None:
        del self._by_issuer[issuer]

    @property
    def all(self) -> list[Authority]:
        return list(self._by_issuer.values())

    def get(self, issuer: Term | Lease) -> Authority | None:
        return self._by_issuer.get(issuer)

    def is_lease(self, token: int) -> bool:
        """Whether this is the token of the worker lease that this runner holds."""
        return any(isinstance(each, Lease) and each.epoch == token for each in self._by_issuer)

    def write_refused(self, token: int) -> None:
        """Storage refused a write of the app with this token: verify the authority."""
        for authority in self._by_issuer.values():
            if authority.token == token:
                authority.verify()


async def until_draining(authority: Authority, work: Coroutine[Any, Any, None]) -> None:
    """Run `work` until it ends or fails; cancel it when the authority begins to drain."""
    task = asyncio.ensure_future(work)
    draining = asyncio.ensure_future(authority.draining.wait())
    try:
        await asyncio.wait({task, draining}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        task.cancel()
        draining.cancel()
        await asyncio.gather(task, draining, return_exceptions=True)
    if not task.cancelled() and (error := task.exception()):
        raise error
