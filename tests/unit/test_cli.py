"""The command line: help that a newcomer understands, errors in one line, exit codes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest

from sidecar.cli import main

COMMANDS = [
    "run", "check", "migrate", "preview", "status", "drain", "resign", "pause", "resume", "trigger",
    "runs", "deferred", "demo", "job", "queue", "dead",
]  # fmt: skip


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert all(f"    {command} " in text for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_explains_itself(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    assert len(capsys.readouterr().out.splitlines()) > 3


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out.startswith("baton 0.")


def test_without_assertions_it_says_that_it_cannot_run() -> None:
    """gRPC's asyncio waits inside an assert: with -O the sidecar would spin and never lead."""
    command = [sys.executable, "-O", "-m", "sidecar", "run"]
    ended = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == "baton: cannot run with python -O or PYTHONOPTIMIZE: unset it\n"


NOT_UTF_8 = "\udcff"  # how Python hands over the byte 0xff


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["nonsense"],
        ["resign"],
        ["runs", "--outcome", "x"],
        ["runs", "-n", "99999999999"],
        ["runs", "-n", "0"],
        ["job"],
        ["job", "get", "x"],
        ["job", "get", "0"],
        ["job", "get", "9" * 30],
        ["job", "submit", NOT_UTF_8],
        ["job", "submit", "x", "--delay", "soon"],
        ["job", "submit", "x", "--label", "novalue"],
        ["job", "submit", "x", "--priority", "urgent"],
        ["job", "list", "--state", "x"],
        ["queue", "pause"],
        ["dead", "replay", "1", "-o", "xml"],
        ["runs", "-n", "9" * 5000],
        ["runs", NOT_UTF_8],
        ["resign", NOT_UTF_8],
        ["trigger", NOT_UTF_8],
        ["trigger", "x", "--request-id", NOT_UTF_8],
        ["pause", "x", "--note", NOT_UTF_8],
        ["conformance", "--app", NOT_UTF_8],
        ["conformance", "--app", "127.0.0.1:1", "--handler", NOT_UTF_8],
    ],
)
def test_wrong_arguments_end_with_two(arguments: list[str]) -> None:
    """G11."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            ["preview", "* * * * *", "-n", "9" * 5000],
            f"baton preview: -n: '{'9' * 40}' is not a number; allowed is 1 to 1000",
        ),
        (
            ["status", "--address", NOT_UTF_8],
            "baton: the API's address is invalid",
        ),
        (
            ["conformance", "--app", "127.0.0.1:1", "--sidecar", "rubbish"],
            "baton: --sidecar rubbish has no host or no port; HOST:PORT or unix:///PATH",
        ),
    ],
    ids=["count", "address", "rubbish"],
)
def test_what_only_the_command_can_refuse_is_one_line(
    arguments: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """G11."""
    assert main(arguments) == 2
    assert capsys.readouterr() == ("", line + "\n")


def test_a_path_that_is_not_utf_8_is_shown_all_the_same() -> None:
    """G11."""
    command: list[str | bytes] = [sys.executable, "-m", "sidecar", "check", "--config", b"/\xff"]
    strict = {**os.environ, "PYTHONIOENCODING": "utf-8:strict"}
    ended = subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=60, env=strict
    )
    assert (ended.returncode, ended.stderr) == (2, "")
    problem = "(file): cannot be read: No such file or directory; a readable file"
    assert ended.stdout == f"/\\udcff:0: {problem}\n"


def test_what_the_terminal_has_no_characters_for_is_shown_all_the_same(tmp_path: Path) -> None:
    """G11: a locale of Latin-1 or ASCII is no reason for a traceback."""
    (tmp_path / "f").write_text("cluster: 订单\n")
    command = [sys.executable, "-m", "sidecar", "check", "--config", "f"]
    latin = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    ended = subprocess.run(
        command, check=False, capture_output=True, timeout=60, env=latin, cwd=tmp_path
    )
    assert (ended.returncode, ended.stderr) == (2, b"")
    assert ended.stdout.startswith(b'f:1: cluster: "\\u8ba2\\u5355" is not a name; ')


@pytest.mark.parametrize(
    "arguments",
    [["status"], ["drain"], ["resign", "g"], ["pause", "x"], ["runs"], ["trigger", "x"]],
)
def test_no_sidecar_there_is_one_clear_line(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """G11."""
    assert main([*arguments, "--address", "127.0.0.1:1"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == (
        "baton: no sidecar answers at 127.0.0.1:1; is it running, and is --address correct?\n"
    )


@pytest.mark.parametrize("arguments", [["drain", "--wait"], ["status"]])
def test_the_file_of_the_environment_says_where_the_sidecar_is(
    arguments: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """As in a preStop hook: the pod sets BATON_CONFIG, and the hook has no option."""
    file, socket = tmp_path / "baton.yaml", tmp_path / "api.sock"
    file.write_text(f"cluster: x\napi: {{address: 'unix://{socket}'}}\n")
    monkeypatch.setenv("BATON_CONFIG", str(file))
    assert main(arguments) == 1
    assert f"no sidecar answers at unix://{socket};" in capsys.readouterr().err


def test_a_bad_file_ends_with_two_and_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """G11."""
    file = tmp_path / "baton.yaml"
    file.write_text("cluster: x\nnonsense: 1\n")
    for command in ("run", "migrate", "status"):
        assert main([command, "--config", str(file)]) == 2
        assert f"{file}:2: nonsense: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "problem"),
    [("two\nlines", "is not one line of printable ASCII"), ("", "is empty")],
)
def test_a_token_that_cannot_be_sent_is_one_clear_line(
    content: str,
    problem: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """G11."""
    (tmp_path / "token").write_text(content)
    monkeypatch.setenv("BATON_API_TOKEN_FILE", str(tmp_path / "token"))
    assert main(["status", "--address", "127.0.0.1:1"]) == 2
    assert capsys.readouterr() == ("", f"baton: the file of the API's token {problem}\n")


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("arguments", [["preview", "* * * * *"], ["check", "--config", "/nowhere"]])
def test_a_full_disk_is_one_clear_line(arguments: list[str], unbuffered: str) -> None:
    """G11: at once, or when Python would flush at its end."""
    with open("/dev/full", "w") as full:
        ended = _ended(arguments, stdout=full, env={"PYTHONUNBUFFERED": unbuffered})
    assert (ended.returncode, ended.stderr) == (1, "baton: No space left on device\n")


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_has_left_is_no_error_to_talk_about(unbuffered: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as left:
        ended = _ended(["preview", "@daily"], stdout=left, env={"PYTHONUNBUFFERED": unbuffered})
    assert (ended.returncode, ended.stderr) == (1, "")


@pytest.mark.parametrize("typed", [b"", b"\xff\xfe\n", None], ids=["empty", "bytes", "closed"])
def test_a_token_from_standard_input_may_be_anything(typed: bytes | None) -> None:
    """G11."""
    arguments = ["deferred", "get", "-", "--address", "127.0.0.1:1"]
    closed = "exec <&-; " if typed is None else ""
    command = ["sh", "-c", f'{closed}exec "$@"', "sh", sys.executable, "-m", "sidecar", *arguments]
    strict = {**os.environ, "PYTHONIOENCODING": "utf-8:strict"}
    ended = subprocess.run(command, check=False, capture_output=True, input=typed, env=strict)
    assert ended.returncode == 1
    assert ended.stderr.startswith(b"baton: no sidecar answers at 127.0.0.1:1;")


def _ended(
    arguments: list[str], *, stdout: IO[str], env: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "sidecar", *arguments],
        check=False,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        env={**os.environ, **env},
    )
