"""The Runs service: converts messages; the rules are in `sidecar/execution/runs.py`."""

from collections.abc import Sequence
from dataclasses import astuple
from typing import Any, Protocol, TypeVar

from sidecar._proto.baton.v1 import runs_pb2, runs_pb2_grpc
from sidecar.adapters.app.messages import KINDS
from sidecar.adapters.convert import chosen, instant_of, run_of, timestamp
from sidecar.adapters.grpc_server.paging import checked_size, fitting, position_of, token_of
from sidecar.adapters.grpc_server.reports import Reports, kept, stats, step_message
from sidecar.model.errors import InvalidArgument
from sidecar.model.run import Outcome, RunKind, RunRef, RunState
from sidecar.model.run_records import RunEvent, RunFilter, RunRecord
from sidecar.model.schedule import SkipReason

T = TypeVar("T")

STATES = {state: f"RUN_STATE_{state.name}" for state in RunState}
OUTCOMES = {outcome: f"OUTCOME_{outcome.name}" for outcome in Outcome}
REASONS = {reason: f"SKIP_REASON_{reason.name}" for reason in SkipReason}
STATE_FILTER = {runs_pb2.RunState.Value(name): state for state, name in STATES.items()}
OUTCOME_FILTER = {runs_pb2.Outcome.Value(name): outcome for outcome, name in OUTCOMES.items()}
KIND_FILTER: dict[int, RunKind] = {number: kind for kind, number in KINDS.items()}


class Runs(Protocol):
    async def get(self, run_id: int) -> RunRecord: ...
    async def page(
        self, wanted: RunFilter, *, before: int | None, limit: int
    ) -> Sequence[RunRecord]: ...
    async def cancel(self, run_id: int, note: str) -> RunRecord: ...
    async def retry(self, run_id: int) -> RunRecord: ...
    async def checkpoint(self, run: RunRef, step: str, value: bytes) -> None: ...
    async def heartbeat(self, run: RunRef, progress: float | None, message: str | None) -> None: ...


class RunsService(runs_pb2_grpc.RunsServicer):
    def __init__(self, runs: Runs, reports: Reports | None = None) -> None:
        self._runs = runs
        self._reports = reports

    async def Get(self, request: runs_pb2.RunsGetRequest, context: Any) -> runs_pb2.RunsGetResponse:
        message = _message(await self._runs.get(request.run_id))
        if self._reports:
            steps = await self._reports.steps(request.run_id)
            message.steps.extend(step_message(step) for step in steps)
        return runs_pb2.RunsGetResponse(run=message)

    async def Stats(
        self, request: runs_pb2.RunsStatsRequest, context: Any
    ) -> runs_pb2.RunsStatsResponse:
        return await stats(kept(self._reports), request)

    async def List(
        self, request: runs_pb2.RunsListRequest, context: Any
    ) -> runs_pb2.RunsListResponse:
        size = checked_size(request.page_size)
        wanted = RunFilter(
            request.name or None,
            chosen(OUTCOME_FILTER, request.outcome, "outcome"),
            chosen(STATE_FILTER, request.state, "state"),
            chosen(KIND_FILTER, request.kind, "kind"),
            instant_of(request, "since"),
            instant_of(request, "until"),
        )
        # A token is valid with the same filters only.
        listed = ("runs", *(str(each) for each in astuple(wanted)))
        before = position_before(position_of(request.page_token, *listed))
        found = await self._runs.page(wanted, before=before, limit=size + 1)
        shown = fitting(_message(run) for run in found[:size])
        last = str(shown[-1].run_id) if len(shown) < len(found) else ""
        token = token_of(last, *listed)
        return runs_pb2.RunsListResponse(runs=shown, next_page_token=token)

    async def Cancel(
        self, request: runs_pb2.RunsCancelRequest, context: Any
    ) -> runs_pb2.RunsCancelResponse:
        run = await self._runs.cancel(request.run_id, request.note)
        return runs_pb2.RunsCancelResponse(run=_message(run))

    async def Retry(
        self, request: runs_pb2.RunsRetryRequest, context: Any
    ) -> runs_pb2.RunsRetryResponse:
        return runs_pb2.RunsRetryResponse(run=_message(await self._runs.retry(request.run_id)))

    async def Checkpoint(
        self, request: runs_pb2.RunsCheckpointRequest, context: Any
    ) -> runs_pb2.RunsCheckpointResponse:
        await self._runs.checkpoint(_ref(request), request.step, request.value)
        return runs_pb2.RunsCheckpointResponse()

    async def Heartbeat(
        self, request: runs_pb2.RunsHeartbeatRequest, context: Any
    ) -> runs_pb2.RunsHeartbeatResponse:
        progress = request.progress if request.HasField("progress") else None
        message = request.message if request.HasField("message") else None
        await self._runs.heartbeat(_ref(request), progress, message)
        return runs_pb2.RunsHeartbeatResponse()


def _ref(request: runs_pb2.RunsCheckpointRequest | runs_pb2.RunsHeartbeatRequest) -> RunRef:
    run = run_of(request)
    if run is None:
        raise InvalidArgument("run", "is required: the run_id, attempt and epoch of the Execute")
    return run


def position_before(run_id: str) -> int | None:
    """The id in a page token; None: the first page."""
    if not run_id:
        return None
    if not (run_id.isascii() and run_id.isdecimal() and len(run_id) < 20):
        raise InvalidArgument("page_token", "was not issued for this list")
    return int(run_id)


def _message(run: RunRecord) -> runs_pb2.Run:
    return runs_pb2.Run(
        run_id=run.run_id,
        kind=KINDS[run.kind],
        name=run.name,
        group=run.group,
        scheduled_at=timestamp(run.scheduled_at),
        attempt=run.attempt,
        state=STATES[run.state],
        outcome=OUTCOMES[run.outcome] if run.outcome else None,
        reason=REASONS[run.reason] if run.reason else None,
        started_at=timestamp(run.started_at),
        finished_at=timestamp(run.finished_at),
        error=run.error,
        progress=run.progress,
        progress_message=run.progress_message,
        epoch=run.epoch,
        runner_id=run.runner_id,
        idempotency_key=run.idempotency_key,
        history=[event_message(event) for event in run.history],
        last_scheduled_at=timestamp(run.last_scheduled_at),
        tick_count=run.tick_count,
        next_attempt_at=timestamp(run.next_attempt_at),
        cancel_requested=run.cancel_requested,
        result=run.result,
        created_at=timestamp(run.created_at),
    )


def event_message(event: RunEvent) -> runs_pb2.RunEvent:
    return runs_pb2.RunEvent(
        at=timestamp(event.at),
        state=STATES[event.state],
        outcome=OUTCOMES[event.outcome] if event.outcome else None,
        attempt=event.attempt,
        epoch=event.epoch,
        runner_id=event.runner_id,
        cause=event.cause,
    )
