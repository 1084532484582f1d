"""The connection to the app: its gRPC channel, its health check, and the leadership callbacks.

Guarantees:
- every call has a deadline and carries the app's token;
- every failure is raised as one of our errors and contains the app's own message;
- a broken connection is detected at once, because the next connection may reach another process,
  which knows nothing about its leadership;
- an acknowledgement of OnLoseLeadership counts only if it came from the process that received
  OnBecomeLeader: another process cannot speak for it, since it may still run and trust its term.
"""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

import grpc
from grpc_health.v1 import health_pb2

from sidecar import metrics
from sidecar.adapters.app.messages import Messages
from sidecar.adapters.app_stub import AppStub
from sidecar.adapters.clock import boottime
from sidecar.adapters.cluster_context import context_metadata
from sidecar.adapters.tokens import Sent, Token
from sidecar.model.errors import AppNotServing, AppUnavailable, LeaderHandoffFailed
from sidecar.model.term import LossReason, Term

T = TypeVar("T")

MESSAGE_BYTES_MAX = 4 * 1024 * 1024
_RECONNECT_MILLISECONDS_MAX = 800  # gRPC adds up to a fifth at random
_OPTIONS = (
    ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    # Reconnect to a restarted app within a second.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", _RECONNECT_MILLISECONDS_MAX),
    # Ignore proxies from the environment: the app runs in the same pod.
    ("grpc.enable_http_proxy", 0),
    ("grpc.service_config_disable_resolution", 1),
    # A connection of its own, not shared with other channels of this process.
    ("grpc.use_local_subchannel_pool", 1),
)
_NO_ANSWER = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)


class AppLink:
    """Calls into the app next to this sidecar."""

    def __init__(self, address: str, token: Token, *, cluster: str, runner_id: str) -> None:
        self.channel = grpc.aio.insecure_channel(address, options=_OPTIONS)
        self.stub = AppStub(self.channel)
        self._token = token
        self._messages = Messages(cluster=cluster, runner_id=runner_id)
        self._disconnects = 0  # counted by `wait_disconnected`, which the app watch always awaits
        self._disconnects_at_become: dict[Term, int] = {}  # when OnBecomeLeader was sent

    def metadata(self) -> Sent:
        return self._token.metadata()

    async def close(self) -> None:
        await self.channel.close(None)

    # ── health ──────────────────────────────────────────────────────────────────────────────────

    async def wait_connected(self) -> None:
        """Return when the channel is connected."""
        ready = grpc.ChannelConnectivity.READY
        while (state := self.channel.get_state(try_to_connect=True)) is not ready:
            await self.channel.wait_for_state_change(state)

    async def wait_disconnected(self) -> None:
        """Return after the connection is lost; the channel may have reconnected by then."""
        ready = grpc.ChannelConnectivity.READY
        if self.channel.get_state(try_to_connect=True) is ready:
            await self.channel.wait_for_state_change(ready)
        self._disconnects += 1

    async def check(self, timeout: float) -> None:
        """Raise AppNotServing if the app responds, but not as healthy; AppUnavailable if it does
        not respond.

        An app without grpc.health.v1 counts as healthy if it responds.
        """
        try:
            answer = await self.stub.Check(
                health_pb2.HealthCheckRequest(), timeout=timeout, metadata=self.metadata()
            )
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.UNIMPLEMENTED:
                return
            silent = error.code() in _NO_ANSWER
            kind = AppUnavailable if silent else AppNotServing
            raise kind(f"health check: {described(error)}") from None
        if answer.status != health_pb2.HealthCheckResponse.SERVING:
            raise AppNotServing(f"health check: {_status_name(answer.status)}")

    # ── leadership ──────────────────────────────────────────────────────────────────────────────

    async def become_leader(self, term: Term, trusted_until: float, timeout: float) -> None:
        request = self._messages.become(term, trusted_until)
        metadata = (*self.metadata(), *context_metadata(request.context))
        self._disconnects_at_become[term] = self._disconnects
        call = self.stub.OnBecomeLeader(request, timeout=timeout, metadata=metadata)
        await _measured(call, "OnBecomeLeader")

    async def lose_leadership(self, term: Term, reason: LossReason, timeout: float) -> None:
        """Raise unless the process that received OnBecomeLeader for this term returns OK."""
        at_lose = self._disconnects
        at_become = self._disconnects_at_become.pop(term, None)
        request = self._messages.lose(term, reason, timeout)
        metadata = (*self.metadata(), *context_metadata(request.context))
        call = self.stub.OnLoseLeadership(request, timeout=timeout, metadata=metadata)
        await _measured(call, "OnLoseLeadership")
        if at_become is None:
            return
        if at_become != at_lose or self._reconnected_since(at_lose):
            raise LeaderHandoffFailed("the connection broke: another process may have answered")

    def _reconnected_since(self, disconnects: int) -> bool:
        """Whether a response may have come over a later connection than the one at that count.

        An app may exit right after it responded. Then the disconnect is counted at the same time as
        the response or before it; without a new connection no other process can have responded.
        """
        if self._disconnects == disconnects:
            return False
        ready = self.channel.get_state() is grpc.ChannelConnectivity.READY
        return ready or self._disconnects > disconnects + 1


async def _measured(call: Awaitable[T], method: str) -> T:
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
    """The status code and the app's message, on one line and at most 500 characters."""
    details = " ".join((error.details() or "").split())[:500]
    return f"{error.code().name}: {details}" if details else error.code().name


def _status_name(number: int) -> str:
    known = health_pb2.HealthCheckResponse.ServingStatus
    return known.Name(number) if number in known.values() else f"the unknown status {number}"
