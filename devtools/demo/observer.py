"""Reads the state of the cluster from the API of the sidecars.

The leader of each group is watched on every pod, so that the time of a change is known to the
millisecond. Everything else is read from any pod that answers. A watch on a pod that is down is
opened again until the demo ends.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import grpc
from google.protobuf.timestamp_pb2 import Timestamp

from devtools.demo.model import (
    COORDINATOR,
    DEFAULT,
    GROUPS,
    RECEIPT,
    DemoFailed,
    GroupLeader,
    Jobs,
    Run,
    Schedule,
    Snapshot,
)
from devtools.demo.pods import Pod
from sidecar._proto.baton.v1 import job_types_pb2 as job_types
from sidecar._proto.baton.v1 import jobs_pb2 as jobs
from sidecar._proto.baton.v1 import leadership_pb2 as leadership
from sidecar._proto.baton.v1 import runs_pb2 as runs
from sidecar._proto.baton.v1 import schedules_pb2 as schedules
from sidecar._proto.baton.v1 import state_pb2 as state
from sidecar._proto.baton.v1.jobs_pb2_grpc import JobsStub
from sidecar._proto.baton.v1.leadership_pb2_grpc import LeadershipStub
from sidecar._proto.baton.v1.runs_pb2_grpc import RunsStub
from sidecar._proto.baton.v1.schedules_pb2_grpc import SchedulesStub
from sidecar._proto.baton.v1.state_pb2_grpc import StateStub
from sidecar.model.duration import format_duration

_CALL_SECONDS = 1.0
_REOPEN_SECONDS = 0.1
_RECENT_RUNS = 60
_OPTIONS = (
    ("grpc.enable_http_proxy", 0),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 300),
)


class NoPodAnswers(DemoFailed):
    """No pod of the cluster answers at present."""


class Observer:
    """Watches all pods; `leaders` is current only while `run` is running."""

    def __init__(self, pods: Sequence[Pod]) -> None:
        self._pods = pods
        self._channels = {
            pod.name: grpc.aio.insecure_channel(pod.api_address, options=_OPTIONS) for pod in pods
        }
        self._answering: set[str] = set()
        self._joined: set[str] = set()  # answering, and they know a leader
        self.leaders = {group: GroupLeader(group) for group in GROUPS}

    async def run(self) -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                for pod in self._pods:
                    for group in GROUPS:
                        tasks.create_task(self._watch(pod.name, group), name=f"watch.{pod.name}")
        finally:
            for channel in self._channels.values():
                await channel.close(grace=None)

    def pod_states(self) -> dict[str, str]:
        """Pod name -> leader, standby, starting, stopping, stopped or dead."""
        return {pod.name: self._pod_state(pod) for pod in self._pods}

    async def snapshot(self, before: Snapshot) -> Snapshot:
        """The current state; what no pod can answer at present is copied from `before`."""
        now = replace(
            before, at=datetime.now(UTC), pods=self.pod_states(), leaders=dict(self.leaders)
        )
        try:
            return await self._fetch(now)
        except NoPodAnswers:
            return now

    async def all_runs(self, name: str) -> list[Run]:
        """Every stored run of one schedule, newest first."""
        return [_run(run) async for run in self._pages(name)]

    async def trigger(self, name: str, payload: Mapping[str, Any]) -> int:
        """Trigger a schedule, only once for each payload; returns the id of the run."""
        text = json.dumps(payload)
        request = schedules.SchedulesTriggerRequest(
            name=name, payload=text.encode(), request_id=text
        )
        return int((await self._call(SchedulesStub, "Trigger", request)).run_id)

    async def submit(self, name: str, payload: Mapping[str, Any]) -> None:
        """Submit a job, only once for each payload."""
        text = json.dumps(payload)
        spec = job_types.JobSpec(name=name, payload=text.encode())
        request = jobs.JobsSubmitRequest(jobs=[spec], request_id=text)
        await self._call(JobsStub, "Submit", request)

    async def jobs(self) -> Jobs:
        request = jobs.JobsListRequest(filter=jobs.JobFilter(name=RECEIPT), page_size=1000)
        found = (await self._call(JobsStub, "List", request)).jobs
        return Jobs(
            submitted=len(found),
            running=sum(job.state == runs.RUN_STATE_RUNNING for job in found),
            succeeded=sum(job.outcome == runs.OUTCOME_SUCCEEDED for job in found),
            rescued=sum(job.rescues > 0 for job in found),
            pods=tuple(sorted({_pod(job.runner_id) for job in found if job.runner_id})),
        )

    async def _watch(self, pod: str, group: str) -> None:
        request = leadership.LeadershipWatchRequest(group=group)
        while True:
            try:
                stub: Any = LeadershipStub(self._channels[pod])
                async for message in stub.Watch(request):
                    self._answering.add(pod)
                    self._leader_reported(pod, message.leader)
            except grpc.aio.AioRpcError:
                self._answering.discard(pod)
                self._joined.discard(pod)
                self._clear_leader(pod, group)
            await asyncio.sleep(_REOPEN_SECONDS)

    def _leader_reported(self, pod: str, reported: leadership.Leader) -> None:
        if reported.leader_runner_id:
            self._joined.add(pod)
        if not reported.is_leader:
            self._clear_leader(pod, reported.group)
        elif reported.epoch > self.leaders[reported.group].epoch:
            self.leaders[reported.group] = GroupLeader(
                reported.group, pod, reported.epoch, datetime.now(UTC)
            )

    def _clear_leader(self, pod: str, group: str) -> None:
        leader = self.leaders[group]
        if leader.pod == pod:
            self.leaders[group] = GroupLeader(group, "", leader.epoch, datetime.now(UTC))

    def _pod_state(self, pod: Pod) -> str:
        if pod.stopping:
            return "stopping" if pod.sidecar.running or pod.app.running else "stopped"
        if not pod.running:
            return "dead"
        if pod.name not in self._joined:
            return "starting"
        leads = any(leader.pod == pod.name for leader in self.leaders.values())
        return "leader" if leads else "standby"

    async def _fetch(self, now: Snapshot) -> Snapshot:
        listed, latest, count, found = await asyncio.gather(
            self._call(SchedulesStub, "List", schedules.SchedulesListRequest()),
            self._call(RunsStub, "List", runs.RunsListRequest(page_size=_RECENT_RUNS)),
            self._count(now.count),
            self.jobs(),
        )
        leader = now.leaders[DEFAULT].pod
        return replace(
            now,
            schedules=tuple(_schedule(schedule) for schedule in listed.schedules),
            runs=tuple(_run(run) for run in latest.runs),
            count=count,
            counted_on=leader if count > now.count and leader else now.counted_on,
            jobs=found,
        )

    async def _count(self, before: int) -> int:
        request = state.StateGetRequest(
            key=f"singleton-state:{COORDINATOR}", consistency=state.CONSISTENCY_STRONG
        )
        try:
            answer = await self._call(StateStub, "Get", request)
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.NOT_FOUND:
                return before
            raise
        return int(json.loads(answer.entry.value or b"{}").get("count", before))

    async def _pages(self, name: str) -> AsyncIterator[runs.Run]:
        request = runs.RunsListRequest(name=name, page_size=1000)
        while True:
            page = await self._call(RunsStub, "List", request)
            for run in page.runs:
                yield run
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    async def _call(self, stub: Any, method: str, request: Any) -> Any:
        """Call one pod after the other until one answers."""
        for pod in sorted(self._answering):
            try:
                call = getattr(stub(self._channels[pod]), method)
                return await call(request, timeout=_CALL_SECONDS)
            except grpc.aio.AioRpcError as error:
                if error.code() not in (
                    grpc.StatusCode.UNAVAILABLE,
                    grpc.StatusCode.DEADLINE_EXCEEDED,
                    grpc.StatusCode.CANCELLED,
                ):
                    raise
        raise NoPodAnswers("no pod answers")


def _pod(runner_id: str) -> str:
    """The pod of a runner, whose id is the pod's name and a suffix."""
    return runner_id.rpartition("-")[0]


def _schedule(schedule: schedules.Schedule) -> Schedule:
    return Schedule(
        name=schedule.name,
        group=schedule.group,
        every=f"every {format_duration(schedule.every.ToNanoseconds() / 1e9)}",
        next_at=_optional_time(schedule, "next_run_at"),
        created_at=_time(schedule.created_at),
    )


def _run(run: runs.Run) -> Run:
    return Run(
        run_id=run.run_id,
        kind=_enum_value(runs.RunKind.Name(run.kind), "RUN_KIND_"),
        name=run.name,
        scheduled_at=_time(run.scheduled_at),
        state=_enum_value(runs.RunState.Name(run.state), "RUN_STATE_"),
        attempt=run.attempt,
        outcome=_enum_value(runs.Outcome.Name(run.outcome), "OUTCOME_"),
        reason=_enum_value(runs.SkipReason.Name(run.reason), "SKIP_REASON_"),
        error=run.error,
        pod=_pod(run.runner_id),
        epoch=run.epoch,
        step=run.progress_message,
        progress=run.progress,
        ticks=run.tick_count,
        last_scheduled_at=_optional_time(run, "last_scheduled_at"),
        started_at=_optional_time(run, "started_at"),
        finished_at=_optional_time(run, "finished_at"),
        next_attempt_at=_optional_time(run, "next_attempt_at"),
    )


def _enum_value(name: str, prefix: str) -> str:
    value = name.removeprefix(prefix).lower()
    return "" if value == "unspecified" else value


def _optional_time(message: Any, field: str) -> datetime | None:
    return _time(getattr(message, field)) if message.HasField(field) else None


def _time(timestamp: Timestamp) -> datetime:
    return timestamp.ToDatetime(tzinfo=UTC)
