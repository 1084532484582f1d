"""The link to the app: its channel, its health, and the two callbacks of leadership.

Guarantees: every call has a deadline and carries the app's token; every failure leaves as one of
our errors with the app's own words in it; a connection that breaks is noticed at once, because what
answers afterwards may be another process that knows nothing of its leadership; nor does its word
count for the one that was told of a term, which may live on and trust it.
"""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

import grpc
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from grpc_health.v1 import health_pb2

from sidecar import metrics
from sidecar._proto.baton.v1 import callback_pb2
from sidecar.adapters.app_stub import AppStub
from sidecar.adapters.clock import boottime, utc_now
from sidecar.adapters.cluster_context import context_metadata
from sidecar.adapters.tokens import Sent, Token
from sidecar.model.errors import AppUnavailable, LeaderHandoffFailed
from sidecar.model.term import LossReason, Term

T = TypeVar("T")

MESSAGE_BYTES_MAX = 4 * 1024 * 1024
_RECONNECT_MILLISECONDS_MAX = 800  # gRPC adds up to a fifth at random
_OPTIONS = (
    ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    # An app that comes back is found within a second.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", _RECONNECT_MILLISECONDS_MAX),
    # Proxies of the environment are for the outside, not for the app in the same pod.
    ("grpc.enable_http_proxy", 0),
    ("grpc.service_config_disable_resolution", 1),
    # One connection per sidecar, not shared with other channels of this process.
    ("grpc.use_local_subchannel_pool", 1),
)
_REASONS = {
    LossReason.RESIGNED: callback_pb2.LOSS_REASON_RESIGNED,
    LossReason.SHUTDOWN: callback_pb2.LOSS_REASON_SHUTDOWN,
    LossReason.LEASE_LOST: callback_pb2.LOSS_REASON_LEASE_LOST,
    LossReason.APP_UNHEALTHY: callback_pb2.LOSS_REASON_APP_UNHEALTHY,
    LossReason.STALE: callback_pb2.LOSS_REASON_STALE,
    LossReason.FENCED: callback_pb2.LOSS_REASON_FENCED,
}


class AppLink:
    """Calls into the app next to this sidecar."""

    def __init__(self, address: str, token: Token, *, cluster: str, runner_id: str) -> None:
        self.channel = grpc.aio.insecure_channel(address, options=_OPTIONS)
        self.stub = AppStub(self.channel)
        self._token = token
        self._cluster = cluster
        self._runner_id = runner_id
        self._connections_lost = 0  # as noticed by whoever waits for it; the watch always does
        self._told_after: dict[Term, int] = {}  # so many were lost before OnBecomeLeader was sent

    def metadata(self) -> Sent:
        return self._token.metadata()

    async def close(self) -> None:
        await self.channel.close(None)

    # ── health ──────────────────────────────────────────────────────────────────────────────────

    async def wait_connected(self) -> None:
        """Return when the connection stands."""
        ready = grpc.ChannelConnectivity.READY
        while (state := self.channel.get_state(try_to_connect=True)) is not ready:
            await self.channel.wait_for_state_change(state)

    async def wait_disconnected(self) -> None:
        """Return when the connection no longer stands, though the next one may stand by then."""
        ready = grpc.ChannelConnectivity.READY
        if self.channel.get_state(try_to_connect=True) is ready:
            await self.channel.wait_for_state_change(ready)
        self._connections_lost += 1

    async def check(self, timeout: float) -> None:
        """Raise AppUnavailable unless the app says it is healthy.

        For an app without grpc.health.v1 it is enough that it answers.
        """
        try:
            answer = await self.stub.Check(
                health_pb2.HealthCheckRequest(), timeout=timeout, metadata=self.metadata()
            )
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.UNIMPLEMENTED:
                return
            raise AppUnavailable(f"health check: {described(error)}") from None
        if answer.status != health_pb2.HealthCheckResponse.SERVING:
            raise AppUnavailable(f"health check: {_status_name(answer.status)}")

    # ── leadership ──────────────────────────────────────────────────────────────────────────────

    async def become_leader(self, term: Term, trusted_until: float, timeout: float) -> None:
        request = callback_pb2.OnBecomeLeaderRequest(
            context=self._context(term, is_leader=True),
            trusted_for=_duration(max(0.0, trusted_until - boottime())),
            trusted_until_boottime=_duration(trusted_until),
        )
        metadata = (*self.metadata(), *context_metadata(request.context))
        self._told_after[term] = self._connections_lost
        call = self.stub.OnBecomeLeader(request, timeout=timeout, metadata=metadata)
        await _answered(call, "OnBecomeLeader")

    async def lose_leadership(self, term: Term, reason: LossReason, timeout: float) -> None:
        """Raise unless the very process that was told of the term says that it gave it up."""
        sent_after = self._connections_lost
        told_after = self._told_after.pop(term, None)
        deadline = Timestamp()
        deadline.FromNanoseconds(int((utc_now().timestamp() + timeout) * 1e9))
        request = callback_pb2.OnLoseLeadershipRequest(
            context=self._context(term, is_leader=False),
            reason=_REASONS[reason],
            deadline=deadline,
        )
        metadata = (*self.metadata(), *context_metadata(request.context))
        call = self.stub.OnLoseLeadership(request, timeout=timeout, metadata=metadata)
        await _answered(call, "OnLoseLeadership")
        if told_after is None:
            return
        if told_after != sent_after or self._reconnected_since(sent_after):
            raise LeaderHandoffFailed("the connection broke: another process may have answered")

    def _reconnected_since(self, lost: int) -> bool:
        """Whether an answer may have come over another connection than the one that stood then.

        An app may end with its answer: that its connection broke is noticed at the same time, or
        before, and as long as there is no other one nobody else can have answered.
        """
        if self._connections_lost == lost:
            return False
        ready = self.channel.get_state() is grpc.ChannelConnectivity.READY
        return ready or self._connections_lost > lost + 1

    def _context(self, term: Term, *, is_leader: bool) -> callback_pb2.ClusterContext:
        return callback_pb2.ClusterContext(
            cluster=self._cluster,
            runner_id=self._runner_id,
            group=term.group,
            is_leader=is_leader,
            epoch=term.epoch,
        )


async def _answered(call: Awaitable[T], method: str) -> T:
    started_at = boottime()
    code = grpc.StatusCode.OK
    try:
        return await call
    except grpc.aio.AioRpcError as error:
        code = error.code()
        if code is grpc.StatusCode.UNAVAILABLE:
            raise AppUnavailable(described(error)) from None
        raise LeaderHandoffFailed(described(error)) from None
    except asyncio.CancelledError:
        code = grpc.StatusCode.CANCELLED
        raise
    finally:
        metrics.CALLBACK_SECONDS.labels(method, code.name).observe(boottime() - started_at)


def described(error: grpc.aio.AioRpcError) -> str:
    """The code and the app's own words, cut to a line."""
    details = " ".join((error.details() or "").split())[:500]
    return f"{error.code().name}: {details}" if details else error.code().name


def _status_name(number: int) -> str:
    known = health_pb2.HealthCheckResponse.ServingStatus
    return known.Name(number) if number in known.values() else f"the unknown status {number}"


def _duration(seconds: float) -> Duration:
    duration = Duration()
    duration.FromNanoseconds(int(seconds * 1e9))
    return duration
