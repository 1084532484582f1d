"""Messages of what people look at: terms, runners, steps, statistics, lists of deferreds."""

from collections.abc import Sequence
from typing import Any, Protocol

from sidecar._proto.baton.v1 import leadership_pb2, runners_pb2, runners_pb2_grpc, runs_pb2
from sidecar.adapters.convert import duration, seconds_of, timestamp
from sidecar.adapters.grpc_server.paging import checked_size, position_of, token_of
from sidecar.model.deferred import Deferred, DeferredState
from sidecar.model.errors import InvalidArgument, NotFound
from sidecar.model.reports import (
    Counts,
    NameStats,
    RunnerRecord,
    RunStats,
    RunStep,
    TermRecord,
)
from sidecar.model.validation import check_text

WINDOW_SECONDS = 86_400.0
_WINDOW_SECONDS = (60.0, 31 * 86_400.0)


class Reports(Protocol):
    async def terms(
        self, group: str | None, *, before: tuple[int, int] | None, limit: int
    ) -> Sequence[TermRecord]: ...
    async def runners(self, *, after: str, limit: int) -> Sequence[RunnerRecord]: ...
    async def steps(self, run_id: int) -> Sequence[RunStep]: ...
    async def stats(self, name: str | None, *, seconds: float) -> RunStats: ...
    async def deferreds(
        self,
        run_id: int | None,
        state: DeferredState | None,
        *,
        before: tuple[int, str] | None,
        limit: int,
    ) -> Sequence[Deferred]: ...


def kept(reports: Reports | None) -> Reports:
    """The reports of this sidecar; the one of the conformance suite has none."""
    if reports is None:
        raise NotFound("this sidecar keeps no reports")
    return reports


class RunnersService(runners_pb2_grpc.RunnersServicer):
    def __init__(self, reports: Reports, runner_id: str) -> None:
        self._reports = reports
        self._runner_id = runner_id

    async def List(
        self, request: runners_pb2.RunnersListRequest, context: Any
    ) -> runners_pb2.RunnersListResponse:
        size = checked_size(request.page_size)
        after = position_of(request.page_token, "runners")
        found = await self._reports.runners(after=after, limit=size + 1)
        last = found[size - 1].runner_id if len(found) > size else ""
        return runners_pb2.RunnersListResponse(
            runners=[self._message(one) for one in found[:size]],
            next_page_token=token_of(last, "runners"),
        )

    def _message(self, runner: RunnerRecord) -> runners_pb2.Runner:
        message = runners_pb2.Runner(
            runner_id=runner.runner_id,
            host=runner.host,
            version=runner.version,
            alive=runner.alive,
            campaigning=runner.campaigning,
            config_revision=runner.config_revision,
            leads=runner.leads,
            started_at=timestamp(runner.started_at),
            seen_at=timestamp(runner.seen_at),
            self=runner.runner_id == self._runner_id,
        )
        if runner.healthy is not None:
            message.healthy = runner.healthy
        return message


async def history(
    reports: Reports, request: leadership_pb2.LeadershipHistoryRequest
) -> leadership_pb2.LeadershipHistoryResponse:
    size = checked_size(request.page_size)
    check_text("group", request.group)
    listed = ("terms", request.group)
    before = pair_of(position_of(request.page_token, *listed))
    found = await reports.terms(
        request.group or None, before=before and (before[0], int(before[1])), limit=size + 1
    )
    last = f"{found[size - 1].epoch} {found[size - 1].group_id}" if len(found) > size else ""
    return leadership_pb2.LeadershipHistoryResponse(
        terms=[_term(term) for term in found[:size]], next_page_token=token_of(last, *listed)
    )


def pair_of(position: str) -> tuple[int, str] | None:
    """The number and the text of a position with both; tokens have a checksum, so it is ours."""
    number, _, text = position.partition(" ")
    return (int(number), text) if position else None


def _term(term: TermRecord) -> leadership_pb2.TermRecord:
    return leadership_pb2.TermRecord(
        group=term.group,
        epoch=term.epoch,
        runner_id=term.runner_id,
        host=term.host,
        taken_at=timestamp(term.taken_at),
        ended_at=timestamp(term.ended_at),
        end_reason=term.why,
    )


def step_message(step: RunStep) -> runs_pb2.RunStep:
    return runs_pb2.RunStep(
        step=step.step, stored_at=timestamp(step.stored_at), attempt=step.attempt, size=step.size
    )


async def stats(reports: Reports, request: runs_pb2.RunsStatsRequest) -> runs_pb2.RunsStatsResponse:
    check_text("name", request.name)
    seconds = seconds_of(request, "window")
    shortest, longest = _WINDOW_SECONDS
    if seconds is not None and not shortest <= seconds <= longest:
        raise InvalidArgument("window", "must be between 1 minute and 31 days")
    found = await reports.stats(request.name or None, seconds=seconds or WINDOW_SECONDS)
    part = (found.until - found.since) / len(found.parts)
    return runs_pb2.RunsStatsResponse(
        since=timestamp(found.since),
        until=timestamp(found.until),
        truncated=found.truncated,
        names=[_name_stats(one) for one in found.names],
        buckets=[
            runs_pb2.RunsStatsBucket(start=timestamp(found.since + n * part), **_counts(counts))
            for n, counts in enumerate(found.parts)
        ],
    )


def _name_stats(one: NameStats) -> runs_pb2.RunsStatsByName:
    return runs_pb2.RunsStatsByName(
        name=one.name,
        lateness=_percentiles(one.lateness),
        durations=_percentiles(one.durations),
        **_counts(one.counts),
    )


def _counts(counts: Counts) -> dict[str, int]:
    return {
        "succeeded": counts.succeeded,
        "failed": counts.failed,
        "skipped": counts.skipped,
        "live": counts.live,
    }


def _percentiles(values: tuple[float, ...] | None) -> runs_pb2.Percentiles | None:
    if values is None:
        return None
    p50, p95, p99, longest = (duration(value) for value in values)
    return runs_pb2.Percentiles(p50=p50, p95=p95, p99=p99, max=longest)
