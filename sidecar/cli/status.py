"""`baton status`: leaders, schedules, singletons and recent runs, as tables or as JSON."""

import argparse
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from google.protobuf.json_format import MessageToDict

from sidecar._proto.baton.v1 import (
    leadership_pb2,
    leadership_pb2_grpc,
    runs_pb2,
    runs_pb2_grpc,
    schedules_pb2,
    schedules_pb2_grpc,
    singletons_pb2,
    singletons_pb2_grpc,
)
from sidecar.adapters.convert import to_datetime
from sidecar.adapters.grpc_server.warnings import warnings_of
from sidecar.cli.api import CALL_SECONDS, Connection, call
from sidecar.cli.tables import RUN_HEADER, ago, run_row, table
from sidecar.logs import visible
from sidecar.model.duration import format_duration

RECENT_RUNS = 10
_LISTED_MAX = 1000


def main(options: argparse.Namespace) -> int:
    async def status(sidecar: Connection) -> int:
        found = await _fetch_all(sidecar)
        print(json.dumps(_as_json(found), indent=2) if options.json else _as_tables(found))
        return 0

    return call(options, status)


async def _fetch_all(sidecar: Connection) -> dict[str, Sequence[Any]]:
    limits: dict[str, Any] = {"timeout": CALL_SECONDS, "metadata": sidecar.metadata}
    leadership = leadership_pb2_grpc.LeadershipStub(sidecar.channel)
    singletons = singletons_pb2_grpc.SingletonsStub(sidecar.channel)
    schedules = schedules_pb2_grpc.SchedulesStub(sidecar.channel)
    runs = runs_pb2_grpc.RunsStub(sidecar.channel)
    size = _LISTED_MAX
    leaders = leadership.List(leadership_pb2.LeadershipListRequest(page_size=size), **limits)
    return {
        "groups": (await leaders).leaders,
        "warnings": warnings_of(await leaders.trailing_metadata()),
        "singletons": (
            await singletons.List(singletons_pb2.SingletonsListRequest(page_size=size), **limits)
        ).singletons,
        "schedules": (
            await schedules.List(schedules_pb2.SchedulesListRequest(page_size=size), **limits)
        ).schedules,
        "runs": (await runs.List(runs_pb2.RunsListRequest(page_size=RECENT_RUNS), **limits)).runs,
    }


def _as_json(found: dict[str, Sequence[Any]]) -> dict[str, list[Any]]:
    return {
        part: [
            m
            if isinstance(m, str)
            else MessageToDict(
                m, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
            )
            for m in messages
        ]
        for part, messages in found.items()
    }


def _as_tables(found: dict[str, Sequence[Any]]) -> str:
    now = datetime.now(UTC)
    parts = [
        "\n".join(f"warning: {visible(each)}" for each in found["warnings"]),
        table(
            ("GROUP", "LEADER", "HOST", "EPOCH", ""),
            (
                (
                    leader.group,
                    leader.leader_runner_id or "none",
                    leader.leader_host,
                    leader.epoch or "",
                    "draining" if leader.draining else "this pod" if leader.is_leader else "",
                )
                for leader in found["groups"]
            ),
        ),
        table(
            ("SINGLETON", "GROUP", "LEADER", "LAST RUN", "LAST SUCCESS", "RUNS", "PROBLEM"),
            (
                (
                    s.name,
                    s.group,
                    s.leader or "none",
                    ago(s.metadata, "last_run_at", now),
                    ago(s.metadata, "last_success_at", now),
                    s.metadata.run_count,
                    s.stale_reason or s.metadata.last_error,
                )
                for s in found["singletons"]
            ),
        ),
        table(
            (
                "SCHEDULE",
                "GROUP",
                "WHEN",
                "NEXT RUN",
                "LAST RUN",
                "LAST SUCCESS",
                "RUNS",
                "PROBLEM",
            ),
            (
                (
                    s.name,
                    s.group,
                    _when(s),
                    "paused" if s.paused else ago(s, "next_run_at", now),
                    ago(s, "last_run_at", now),
                    ago(s.metadata, "last_success_at", now),
                    s.metadata.run_count,
                    s.stale_reason or s.metadata.last_error,
                )
                for s in found["schedules"]
            ),
        ),
        table(
            RUN_HEADER,
            (run_row(run, now) for run in found["runs"]),
        ),
    ]
    return "\n\n".join(part for part in parts if part)


def _when(schedule: schedules_pb2.Schedule) -> str:
    match schedule.WhichOneof("timing"):
        case "cron":
            zone = "" if schedule.timezone in ("", "UTC") else f" {schedule.timezone}"
            return schedule.cron + zone
        case "every":
            return f"every {format_duration(schedule.every.ToNanoseconds() / 1e9)}"
        case _:
            return to_datetime(schedule.at).isoformat()
