"""Limits on HTTP/2 frames, counted from their headers, however the bytes are cut."""

from __future__ import annotations

from itertools import islice

import pytest

from sidecar.model.framing import PREFACE, Budget, FrameLimits, FrameMeter
from tests.security import http2

LIMITS = FrameLimits(control_burst=100, control_per_second=10, small_burst=200, small_per_second=10)


def _problem(data: bytes, *, cut: int = 0, limits: FrameLimits = LIMITS) -> str:
    meter = FrameMeter(limits, now=0.0)
    size = cut or len(data)
    for at in range(0, len(data), size):
        if problem := meter.feed(data[at : at + size], now=0.0):
            return problem
    return ""


@pytest.mark.parametrize("cut", [0, 1, 7, 64])
def test_ordinary_calls_pass(cut: int) -> None:
    block = http2.request("/baton.v1.State/Put", "a-token")
    sent = PREFACE + http2.frame(http2.SETTINGS, 0, 0)
    sent += b"".join(islice(http2.calls(block, b"\0" * 100_000), 5))
    assert _problem(sent, cut=cut) == ""


@pytest.mark.parametrize("cut", [0, 1, 7, 64])
@pytest.mark.parametrize(
    ("frames", "problem"),
    [
        (http2.frame(http2.PING, 0, 0, b"12345678") * 101, "control frames"),
        (http2.frame(http2.SETTINGS, 0, 0) * 101, "control frames"),
        (http2.frame(0x77, 0, 0, b"?") * 101, "control frames"),
        (http2.frame(http2.WINDOW_UPDATE, 0, 0, b"\0\0\0\1") * 201, "empty frames"),
        (http2.frame(http2.DATA, 0, 1) * 201, "empty frames"),
        (http2.frame(http2.HEADERS, 0, 1, b"\0" * 8193), "header block"),
        (
            http2.frame(http2.HEADERS, 0, 1, b"\0" * 5000)
            + http2.frame(http2.CONTINUATION, 0, 1, b"\0" * 5000),
            "header block",
        ),
        (
            http2.frame(http2.HEADERS, 0, 1) + http2.frame(http2.CONTINUATION, 0, 1) * 5,
            "CONTINUATION",
        ),
    ],
)
def test_what_breaks_a_limit_is_named(frames: bytes, problem: str, cut: int) -> None:
    assert problem in _problem(PREFACE + frames, cut=cut)


@pytest.mark.parametrize("data", [b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01", b"PRI * HTTP/1"])
def test_what_is_not_http2_is_refused_at_once(data: bytes) -> None:
    assert "HTTP/2" in _problem(data)


def test_a_frame_header_inside_a_message_is_no_frame() -> None:
    message = http2.frame(http2.PING, 0, 0, b"12345678") * 1000
    assert _problem(PREFACE + http2.frame(http2.DATA, 0, 1, message)) == ""


def test_calls_and_cancellations_are_counted() -> None:
    meter = FrameMeter(LIMITS, now=0.0)
    assert meter.feed(PREFACE + b"".join(islice(http2.resets(), 3)), now=0.0) == ""
    assert (meter.calls, meter.resets) == (3, 3)


def test_a_budget_is_refilled_with_time() -> None:
    budget = Budget(10, 5, now=0.0)
    assert budget.spend(10, now=0.0)
    assert not budget.spend(1, now=0.1)
    assert budget.spend(5, now=1.0)
    budget.fine(100)
    assert not budget.spend(6, now=2.0)
    assert budget.spend(5, now=2.0)


def test_what_is_borrowed_is_waited_for() -> None:
    budget = Budget(10, 5, now=0.0)
    assert budget.borrow(10, now=0.0) == 0
    assert budget.borrow(10, now=0.0) == 2
    assert budget.borrow(0, now=2.0) == 0
