"""The command line: help that a newcomer understands, errors in one line, exit codes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from sidecar.cli import main

COMMANDS = [
    "run", "check", "migrate", "preview", "status", "drain", "resign", "pause", "resume", "trigger",
    "runs", "deferred", "demo",
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


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["resign"], ["runs", "--outcome", "x"]])
def test_wrong_arguments_end_with_two(arguments: list[str]) -> None:
    """G11."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2


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
        "baton: no sidecar answers at 127.0.0.1:1; is it running, and is --address right?\n"
    )


def test_a_bad_file_ends_with_two_and_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """G11."""
    file = tmp_path / "baton.yaml"
    file.write_text("cluster: x\nnonsense: 1\n")
    for command in ("run", "migrate", "status"):
        assert main([command, "--config", str(file)]) == 2
        assert f"{file}:2: nonsense: " in capsys.readouterr().err
