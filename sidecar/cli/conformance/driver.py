"""Drives one app as its sidecar would: through the same adapters, in the order of the contract.

The driver decides nothing about right or wrong; `checks.py` does.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from sidecar.adapters.clock import utc_now
from sidecar.adapters.grpc_app import AppLink
from sidecar.adapters.grpc_execute import GrpcExecute
from sidecar.adapters.tokens import Token
from sidecar.callback import Invocation
from sidecar.cli.conformance.pocket import RUNNER_ID, PocketSidecar
from sidecar.config import SecretSource
from sidecar.leadership import DEFAULT_GROUP
from sidecar.model.election_words import Timers
from sidecar.model.run import Answer, Delivery, Limits, RunKind, RunRef
from sidecar.model.term import LossReason, Term

CLUSTER = "conformance"
# What a real sidecar waits for, by default: no app can be held to more than that.
CALLBACK_SECONDS = Timers().callback_timeout
_CONNECT_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Subject:
    """What the user lets the suite run: the names of handlers, and what they are given."""

    handler: str = ""
    singleton: str = ""
    payload: bytes = field(default=b"", repr=False)


class Driver:
    """The app, the sidecar it may call, and the term it is in."""

    def __init__(
        self, address: str, token: SecretSource, subject: Subject, sidecar: PocketSidecar
    ) -> None:
        self.subject, self.sidecar = subject, sidecar
        self.token = token
        self.term: Term | None = None
        self.lost: Term | None = None
        self._address = address
        self.link = self._link(token)
        self._execute = GrpcExecute(
            self.link, cluster=CLUSTER, runner_id=RUNNER_ID, connect_seconds=_CONNECT_SECONDS
        )
        self._epoch = int(utc_now().timestamp() * 1000)
        self._run_id = 0

    async def connect(self) -> None:
        async with asyncio.timeout(_CONNECT_SECONDS):
            await self.link.wait_connected()

    @asynccontextmanager
    async def link_with(self, token: SecretSource) -> AsyncIterator[AppLink]:
        """Another connection to the app, with another token or none."""
        link = self._link(token)
        try:
            yield link
        finally:
            await link.close()

    # ── leadership ──────────────────────────────────────────────────────────────────────────────

    def new_term(self) -> Term:
        self._epoch += 1
        return Term(DEFAULT_GROUP, 1, self._epoch)

    async def become(self, term: Term) -> None:
        """Open the term: OnBecomeLeader, and trust that is renewed from now on."""
        trusted_until = self.sidecar.decrees.appoint(term)
        try:
            await self.link.become_leader(term, trusted_until, CALLBACK_SECONDS)
        except BaseException:
            self.sidecar.decrees.depose()
            raise
        self.term = term

    async def lose(self, term: Term, reason: LossReason = LossReason.RESIGNED) -> None:
        """OnLoseLeadership for that term; trust in it is not renewed any more."""
        if self.term is not None and (term == self.term or term.epoch == 0):
            self.lost, self.term = self.term, None
            self.sidecar.decrees.depose()
        await self.link.lose_leadership(term, reason, CALLBACK_SECONDS)

    # ── runs ────────────────────────────────────────────────────────────────────────────────────

    def new_delivery(self, term: Term, name: str, *, seconds: float = 0.0) -> Delivery:
        """The first attempt of a new run; `seconds` is its timeout, 0 for none."""
        self._run_id += 1
        singleton = bool(name) and name == self.subject.singleton
        return Delivery(
            RunRef(self._run_id, 1, term.epoch),
            RunKind.SINGLETON if singleton else RunKind.SCHEDULE,
            name,
            term.group,
            utc_now(),
            f"{CLUSTER}/{name}/run-{self._run_id}",
            payload=b"" if singleton else self.subject.payload,
            limits=Limits(timeout_seconds=seconds),
        )

    async def execute(self, delivery: Delivery, *, state: bytes = b"") -> Answer:
        """One Execute; the run is live, for calls to the sidecar, for as long as it is open."""
        runs, run = self.sidecar.runs, delivery.ref
        runs.begin(run)
        try:
            stored = runs.stored(run.run_id)
            return await self._execute.execute(Invocation(delivery, state, stored))
        finally:
            runs.end(run)

    def _link(self, token: SecretSource) -> AppLink:
        return AppLink(self._address, Token(token), cluster=CLUSTER, runner_id=RUNNER_ID)


def again(delivery: Delivery) -> Delivery:
    """The same run, delivered once more."""
    ref = replace(delivery.ref, attempt=delivery.ref.attempt + 1)
    return replace(delivery, ref=ref, deliveries=delivery.deliveries + 1)
