"""Runs of the fake: delivered on demand, fenced as the real ones are."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import grpc

from baton.testing._common import Call, Refused, Terms, accepted, not_found, now, page, require
from baton.v1 import runs_pb2 as pb
from baton.v1.runs_pb2_grpc import RunsServicer


@dataclass
class RunRecord:
    """A run with what the fake must remember of it; `cancel` ends its open call."""

    run: pb.Run
    payload: bytes
    timeout: float | None = None
    state_key: str = ""  # of a job with a key
    checkpoints: dict[str, bytes] = field(default_factory=dict)
    cancel: Callable[[], Any] | None = None
    closed: asyncio.Event = field(default_factory=asyncio.Event)


class RunBook:
    """All runs, and the rules about who may write on behalf of one."""

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._ids = itertools.count(1)
        self.records: dict[int, RunRecord] = {}

    def add(self, name: str, group: str, kind: pb.RunKind, payload: bytes) -> RunRecord:
        """A new run, queued."""
        number = next(self._ids)
        run = pb.Run(
            run_id=number,
            kind=kind,
            name=name,
            group=group,
            scheduled_at=now(),
            state=pb.RUN_STATE_QUEUED,
            idempotency_key=f"{name}/{number}",
            tick_count=1,
            created_at=now(),
        )
        self.records[number] = RunRecord(run, payload)
        return self.records[number]

    def move(self, run: pb.Run, state: pb.RunState, cause: str = "") -> None:
        """The one place where a run changes its state."""
        run.state = state
        if state == pb.RUN_STATE_ENDED:
            run.finished_at.GetCurrentTime()
        event = pb.RunEvent(
            at=now(), state=state, outcome=run.outcome, attempt=run.attempt, cause=cause
        )
        run.history.append(event)

    def is_live(self, ref: pb.RunRef) -> bool:
        """Whether this is the attempt whose writes are accepted."""
        record = self.records.get(ref.run_id)
        return (
            record is not None
            and record.run.state == pb.RUN_STATE_RUNNING
            and (record.run.attempt, record.run.epoch) == (ref.attempt, ref.epoch)
            and (
                record.run.kind == pb.RUN_KIND_JOB  # fenced by the pod, not by a term
                or self._terms.is_current(record.run.group, ref.epoch)
            )
        )

    def live(self, ref: pb.RunRef) -> RunRecord:
        """The run of a live attempt; refuses any other."""
        if not self.is_live(ref):
            raise Refused(grpc.StatusCode.FAILED_PRECONDITION, "not the live attempt")
        return self.records[ref.run_id]

    def checkpoint(self, ref: pb.RunRef, step: str, value: bytes) -> None:
        """Stores a step; the same value again is fine."""
        stored = self.live(ref).checkpoints.setdefault(step, value)
        if stored != value:
            exists = grpc.StatusCode.ALREADY_EXISTS
            raise Refused(exists, f"step {step} is stored", existing=stored)

    def heartbeat(self, request: pb.RunsHeartbeatRequest) -> None:
        """Stores a sign of life."""
        run = self.live(request.run).run
        if request.HasField("progress"):
            run.progress = request.progress
        if request.HasField("message"):
            run.progress_message = request.message


class FakeRuns(RunsServicer):
    """Answers from the book."""

    def __init__(self, book: RunBook) -> None:
        self._book = book

    async def Get(self, request: pb.RunsGetRequest, call: Call) -> pb.RunsGetResponse:
        return pb.RunsGetResponse(run=(await self._known(request.run_id, call)).run)

    async def List(self, request: pb.RunsListRequest, call: Call) -> pb.RunsListResponse:
        found = [
            _shown(record.run)
            for record in reversed(self._book.records.values())
            if record.run.kind != pb.RUN_KIND_JOB
            and request.name in ("", record.run.name)
            and request.outcome in (pb.OUTCOME_UNSPECIFIED, record.run.outcome)
            and request.state in (pb.RUN_STATE_UNSPECIFIED, record.run.state)
        ]
        runs, token = page(found, request)
        return pb.RunsListResponse(runs=runs, next_page_token=token)

    async def Cancel(self, request: pb.RunsCancelRequest, call: Call) -> pb.RunsCancelResponse:
        record = await self._known(request.run_id, call)
        ended = record.run.state == pb.RUN_STATE_ENDED
        await require(call, not ended, grpc.StatusCode.FAILED_PRECONDITION, "it has ended")
        if record.cancel is not None:
            record.run.cancel_requested = True
            record.cancel()
        else:
            record.run.outcome = pb.OUTCOME_SKIPPED
            record.run.reason = pb.SKIP_REASON_OPERATOR
            self._book.move(record.run, pb.RUN_STATE_ENDED, "cancelled")
        return pb.RunsCancelResponse(run=record.run)

    async def Retry(self, request: pb.RunsRetryRequest, call: Call) -> pb.RunsRetryResponse:
        run = (await self._known(request.run_id, call)).run
        failed = run.outcome == pb.OUTCOME_FAILED
        await require(call, failed, grpc.StatusCode.FAILED_PRECONDITION, "it has not failed")
        run.outcome = pb.OUTCOME_UNSPECIFIED
        run.ClearField("finished_at")
        self._book.move(run, pb.RUN_STATE_QUEUED, "retried")
        return pb.RunsRetryResponse(run=run)

    async def Checkpoint(
        self, request: pb.RunsCheckpointRequest, call: Call
    ) -> pb.RunsCheckpointResponse:
        store = self._book.checkpoint
        await accepted(call, lambda: store(request.run, request.step, request.value))
        return pb.RunsCheckpointResponse()

    async def Heartbeat(
        self, request: pb.RunsHeartbeatRequest, call: Call
    ) -> pb.RunsHeartbeatResponse:
        await accepted(call, lambda: self._book.heartbeat(request))
        return pb.RunsHeartbeatResponse()

    async def _known(self, run_id: int, call: Call) -> RunRecord:
        return self._book.records.get(run_id) or await not_found(call, f"run {run_id}")


def _shown(run: pb.Run) -> pb.Run:
    """A run as List shows it."""
    shown = pb.Run()
    shown.CopyFrom(run)
    shown.ClearField("history")
    shown.ClearField("result")
    return shown
