"""Drives one app as its sidecar does: through the same adapters, in the order of the contract.

The driver makes no judgement; `checks.py` does.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from sidecar.adapters.clock import utc_now
from sidecar.adapters.grpc_app import AppLink
from sidecar.adapters.grpc_execute import GrpcExecute
from sidecar.adapters.tokens import Token
from sidecar.cli.conformance.fake_sidecar import RUNNER_ID, FakeSidecar
from sidecar.config import SecretSource
from sidecar.election.leadership import DEFAULT_GROUP
from sidecar.model.election_types import Timers
from sidecar.model.run import Answer, CallFailed, Limits, Run, RunKind, RunRef
from sidecar.model.term import LossReason, Term
from sidecar.tracing import NoTracer

CLUSTER = "conformance"
# The defaults of a real sidecar: an app needs not be faster.
CALLBACK_SECONDS = Timers().callback_timeout
_CONNECT_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Subject:
    """What the suite may run: the names of handlers, and their payload."""

    handler: str = ""
    singleton: str = ""
    payload: bytes = field(default=b"", repr=False)


class Driver:
    """The app, the sidecar it may call, and its current term."""

    attached = False  # whether the app receives its work over the stream
    connect_seconds = _CONNECT_SECONDS

    def __init__(
        self,
        address: str,
        token: SecretSource,
        subject: Subject,
        sidecar: FakeSidecar,
        *,
        link: Any = None,
    ) -> None:
        self.subject, self.sidecar = subject, sidecar
        self.token = token
        self.term: Term | None = None
        self.lost: Term | None = None
        self._address = address
        self.link = link or self._link(token)
        self._execute = GrpcExecute(self.link, NoTracer(), cluster=CLUSTER, runner_id=RUNNER_ID)
        self._epoch = int(utc_now().timestamp() * 1000)
        self._run_id = 0

    async def connect(self) -> None:
        async with asyncio.timeout(self.connect_seconds):
            await self.link.wait_connected()

    @asynccontextmanager
    async def renewing(self) -> AsyncIterator[None]:
        """An app with a callback asks for the renewals of its trust itself."""
        yield

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
        """Open the term: call OnBecomeLeader, and renew the trust from now on."""
        trusted_until = self.sidecar.election.grant(term)
        try:
            await self.link.become_leader(term, trusted_until, CALLBACK_SECONDS)
        except BaseException:
            self.sidecar.election.end()
            raise
        self.term = term

    async def lose(self, term: Term, reason: LossReason = LossReason.RESIGNED) -> None:
        """Call OnLoseLeadership for that term, and stop renewing its trust."""
        if self.term is not None and (term == self.term or term.epoch == 0):
            self.lost, self.term = self.term, None
            self.sidecar.election.end()
        await self.link.lose_leadership(term, reason, CALLBACK_SECONDS)

    # ── runs ────────────────────────────────────────────────────────────────────────────────────

    def new_run(self, term: Term, name: str, *, seconds: float = 0.0) -> Run:
        """The first attempt of a new run; `seconds` is its timeout, 0 for none."""
        self._run_id += 1
        singleton = bool(name) and name == self.subject.singleton
        return Run(
            RunRef(self._run_id, 1, term.epoch),
            RunKind.SINGLETON if singleton else RunKind.SCHEDULE,
            name,
            term.group,
            utc_now(),
            f"{CLUSTER}/{name}/run-{self._run_id}",
            payload=b"" if singleton else self.subject.payload,
            limits=Limits(timeout_seconds=seconds),
        )

    async def execute(self, run: Run, *, state: bytes = b"") -> Answer:
        """One Execute; the run is live, for calls to the sidecar, while it is open."""
        runs = self.sidecar.runs
        runs.begin(run.ref)
        try:
            checkpoints = runs.stored(run.ref.run_id)
            return await self._executed(replace(run, state=state, checkpoints=checkpoints))
        finally:
            runs.end(run.ref)

    async def _executed(self, run: Run) -> Answer:
        if not await self._execute.wait_connected(_CONNECT_SECONDS):
            return CallFailed("UNAVAILABLE", "no connection to the app", delivered=False)
        return await self._execute.execute(run)

    def _link(self, token: SecretSource) -> AppLink:
        return AppLink(self._address, Token(token), cluster=CLUSTER, runner_id=RUNNER_ID)


def again(run: Run) -> Run:
    """The same run, delivered again."""
    ref = replace(run.ref, attempt=run.ref.attempt + 1)
    return replace(run, ref=ref, deliveries=run.deliveries + 1)
