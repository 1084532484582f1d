"""Log lines: readable by machines, safe to look at, without secrets."""

import fcntl
import io
import json
import logging
import os
import sys
import threading
import warnings

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from sidecar import logs


def _lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    out, err = capsys.readouterr()
    assert out == ""
    return [json.loads(line) for line in err.splitlines()]


def test_a_line_is_one_json_object_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("info", "json")
    logs.bind(cluster="orders", runner="pod-1")
    with logs.bound(group="default", epoch=7):
        structlog.get_logger().info("run_finished", run_id=3, parts={"a": [1, None, True]})
    (line,) = _lines(capsys)
    assert line.pop("timestamp")
    assert line == {
        "level": "info",
        "event": "run_finished",
        "run_id": 3,
        "parts": {"a": [1, None, True]},
        "cluster": "orders",
        "runner": "pod-1",
        "group": "default",
        "epoch": 7,
    }


@pytest.mark.parametrize(
    ("format", "terminal", "is_json"),
    [(None, True, False), (None, False, True), ("json", True, True), ("console", False, False)],
)
def test_a_terminal_gets_readable_lines_unless_told_otherwise(
    format: str | None,
    terminal: bool,
    is_json: bool,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    logs.configure("info", format)
    structlog.get_logger().info("run_finished")
    assert capsys.readouterr().err.startswith("{") == is_json


def test_nothing_is_done_below_the_level(capsys: pytest.CaptureFixture[str]) -> None:
    class Costly:
        def __str__(self) -> str:
            raise AssertionError("looked at")

    logs.configure("warning", "json")
    log = structlog.get_logger()
    log.info("unheard", value=Costly())
    log.debug("unheard", value=Costly())
    assert _lines(capsys) == []


@pytest.mark.parametrize("format", ["json", "console"])
def test_secrets_leave_in_no_value(capsys: pytest.CaptureFixture[str], format: str) -> None:
    """G12"""
    secrets = [
        "postgresql://baton:p%40ss%2Fw0rd@db/orders",
        "host=db password='it''s?' user=x",
        "tok-12345",
        "host=db password=plainword",
        "postgresql:///orders?password=inquery1&user=x",
        "https://ping.example/tok-in-path",
    ]
    logs.configure("info", format, secrets)
    log = structlog.get_logger()
    try:
        raise ValueError("cannot connect with p@ss/w0rd and tok-12345")
    except ValueError:
        log.exception("failed", url=secrets[0], nested={"list": ["tok-12345"], "tok-12345": 1})
    log.info("tried", detail=ValueError("p%40ss%2Fw0rd"), text=b"tok-12345", token="abc")
    log.info("other", url="redis://:unregistered@cache/0", text="x password=hidden1 y plainword")
    log.info("last", at=float("inf"), text="inquery1 " + secrets[-1])
    err = capsys.readouterr().err
    for secret in (
        "p@ss/w0rd",
        "p%40ss",
        "tok-12345",
        "abc",
        "unregistered",
        "hidden1",
        "plainword",
    ):
        assert secret not in err
    assert "***" in err


@pytest.mark.parametrize("format", ["json", "console"])
def test_foreign_text_cannot_forge_a_line(capsys: pytest.CaptureFixture[str], format: str) -> None:
    """G11"""
    logs.configure("info", format)
    evil = "x\n2026-01-01 info forged\r\x1b[2J\x9b\u202e\u2028\x00\udc80"
    structlog.get_logger().info("heard", message=evil, **{"k\ney": [evil]})
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert all(character.isprintable() for character in err[:-1])
    assert "forged" in err


def test_a_traceback_on_the_console_stays_behind_a_bar(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("info", "console")
    try:
        raise ValueError("one\n12:00:00.000 info forged\x1b[31m")
    except ValueError:
        structlog.get_logger().exception("failed")
    first, *rest = capsys.readouterr().err.splitlines()
    assert "failed" in first
    assert all(line.startswith("    | ") for line in rest)
    assert "\x1b" not in "".join(rest)


def test_libraries_warnings_and_crashes_go_the_same_way(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("info", "json", ["tok-12345"])
    logging.getLogger("uvicorn.error").info("chatter")
    logging.getLogger("redis").log(43, "lost %s", "tok-12345")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("old\nthing", stacklevel=1)
    thread = threading.Thread(target=lambda: 1 / 0)
    thread.start()
    thread.join()
    library, warned, crash = _lines(capsys)
    assert (library["event"], library["logger"]) == ("library_message", "redis")
    assert (library["message"], library["level"]) == ("lost ***", "error")
    assert warned["logger"] == "py.warnings"
    assert crash["event"] == "crashed"
    assert "ZeroDivisionError" in str(crash["exception"])


class _Full(io.StringIO):
    def write(self, text: str) -> int:
        raise OSError(28, "No space left on device")


def test_a_closed_stderr_costs_only_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """G11: nothing ends the process."""
    logs.configure("info", "json")
    log = structlog.get_logger()
    for broken in (_Full(), None):
        monkeypatch.setattr(sys, "stderr", broken)
        log.info("lost")


def test_a_stderr_that_nobody_reads_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """A collector of logs that stands still must not cost the lease; what it missed is told."""
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 65_536)
    with open(writing, "w") as stderr, open(reading, "rb", buffering=0) as reader:
        monkeypatch.setattr(sys, "stderr", stderr)
        logs.configure("info", "json")
        writer = threading.Thread(target=_write_much, daemon=True)
        writer.start()
        writer.join(10)
        assert not writer.is_alive()
        text = reader.read(65_536)
        structlog.get_logger().info("heard")
        text += reader.read(65_536)
    *whole, torn, lost, heard = text.decode().splitlines()
    assert {json.loads(line)["event"] for line in whole} == {"spoken"}
    assert torn.startswith('{"timestamp"')
    assert not torn.endswith("}")
    assert json.loads(lost)["event"] == "log_lines_lost"
    assert json.loads(lost)["lines"] + len(whole) == 100
    assert json.loads(heard)["event"] == "heard"


def _write_much() -> None:
    for _ in range(100):
        structlog.get_logger().info("spoken", text="x" * 8_000, more="y" * 2_000)


def test_a_value_that_cannot_be_shown_costs_only_itself(capsys: pytest.CaptureFixture[str]) -> None:
    class Broken:
        def __str__(self) -> str:
            raise RuntimeError

    loop: list[object] = []
    loop.append(loop)
    logs.configure("info", "json")
    structlog.get_logger().info("shown", broken=Broken(), long="x" * 100_000, loop=loop)
    (line,) = _lines(capsys)
    assert line["broken"] == "<Broken>"
    assert len(str(line["long"])) < 10_000


@given(st.text(min_size=4, max_size=20), st.text(max_size=20), st.text(max_size=20))
def test_a_secret_is_hidden_wherever_it_stands(secret: str, before: str, after: str) -> None:
    """G12"""
    logs.forget_secrets()
    logs.add_secret(secret)
    shown = logs.redacted(f"{before}{secret}{after} {secret!r}")
    if len(secret.strip()) >= 4 and "://" not in secret and "password" not in secret:
        rest = shown.replace("***", "")
        assert secret.strip() not in rest or secret.strip() in before + after
    logs.forget_secrets()


@pytest.mark.parametrize("shown", ['p@ss/w"rd', "p%40ss%2Fw%22rd", 'p@ss/w\\"rd'])
def test_a_secret_is_hidden_however_it_is_written(shown: str) -> None:
    """G12: as it is, in a URL, in JSON."""
    logs.add_secret('p@ss/w"rd')
    assert logs.redacted(f"GET /ping?key={shown} refused") == "GET /ping?key=*** refused"


@given(st.text())
def test_visible_text_is_printable_and_keeps_what_was(text: str) -> None:
    shown = logs.visible(text)
    assert "\n" not in shown
    assert "\x1b" not in shown
    if text.isprintable():
        assert shown == text
