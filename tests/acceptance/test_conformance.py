"""`baton conformance` as a user runs it: every language's example passes, every broken app fails.

A broken app must fail the check that is about its fault, and no other.
"""

from __future__ import annotations

import re
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from devtools.servers import free_port
from tests.acceptance.languages import LANGUAGES, Language
from tests.lab.pages import ROOT, blocks
from tests.lab.processes import Child, wait_until

pytestmark = pytest.mark.timeout(2400)  # the first build of a language takes its time

_TOKEN = "a-token-for-the-conformance-suite"
_CONFORMANCE = [sys.executable, "-m", "sidecar", "conformance"]
_BROKEN = [sys.executable, "-m", "tests.acceptance.broken_app"]
_SIDE_BY_SIDE = 4
_NO_HANDLER_SHOWS = {
    "before-any-term", "unknown-handler", "token", "unknown-fields", "message-size", "next-term"
}  # fmt: skip
_FAULTS = {
    "is-not-serving": {"health"},
    "has-no-callback": {"first-contact", "before-any-term", "become", "next-term"},
    "refuses-epoch-zero": {"first-contact"},
    "becomes-with-an-error": {"become", "next-term"},
    "takes-any-handler": _NO_HANDLER_SHOWS,
    "fails-on-unknown-handlers": _NO_HANDLER_SHOWS,
    "seems-not-to-be-there": _NO_HANDLER_SHOWS,
    "refuses-second-attempts": {"handler"},
    "ignores-the-token": {"token"},
    "refuses-unknown-enums": {"unknown-fields"},
    "takes-small-messages": {"message-size"},
    "does-one-thing-at-a-time": {"concurrency"},
    "hangs-when-it-loses": {"lose"},
    "loses-once": {"lose-again"},
    "loses-known-terms": {"lose-again"},
    "never-forgets": {"stale-term"},
    "leads-once": {"next-term"},
}


def _address() -> str:
    return f"127.0.0.1:{free_port()}"


def _listens(address: str) -> bool:
    host, port = address.split(":")
    with socket.socket() as probe:
        return probe.connect_ex((host, int(port))) == 0


class Report:
    """What the suite said: `checks` by verdict."""

    def __init__(self, ended: subprocess.CompletedProcess[str], app: Child) -> None:
        self.code, self.text = ended.returncode, ended.stdout + ended.stderr + app.output[-2000:]
        self.summary = ended.stdout.splitlines()[-1] if ended.stdout else ""
        self.checks: dict[str, set[str]] = {"ok": set(), "FAIL": set(), "skip": set()}
        for line in ended.stdout.splitlines()[:-1]:
            verdict, name, sentence = line.split(maxsplit=2)
            assert sentence
            self.checks[verdict].add(name)


def _conformance(
    command: Sequence[str], directory: Path, *arguments: str, env: dict[str, str] | None = None
) -> Report:
    """The report on an app that is started for it."""
    address, sidecar = _address(), _address()
    start = [*command, "--address", address, "--sidecar", sidecar]
    with Child(start, directory / "app.log", env) as app:
        # The suite waits 5 s for it, from its own start; an app beside many others may need more.
        wait_until(lambda: _listens(address), 60, lambda: app.output[-2000:])
        where = ("--app", address, "--sidecar", sidecar)
        ended = subprocess.run(
            [*_CONFORMANCE, *where, *arguments],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    return Report(ended, app)


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Future[Report]]]:
    """The reports on every language's example, made side by side: most of their time is waiting."""

    def example(language: Language, directory: Path) -> Report:
        token = _token(directory)
        return _conformance(
            language.command(), directory,
            "--handler", "order-flow", "--singleton", "coordinator", "--token-file", token,
            env={"BATON_APP_TOKEN_FILE": token, "ORDERS_STEP_SECONDS": "0.1"},
        )  # fmt: skip

    with ThreadPoolExecutor(_SIDE_BY_SIDE) as pool:
        yield {
            language.name: pool.submit(example, language, tmp_path_factory.mktemp(language.name))
            for language in LANGUAGES
            if not language.missing
        }


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Future[Report]]]:
    """The reports on every broken app, likewise."""

    def broken_app(fault: str, directory: Path) -> Report:
        return _conformance(
            [*_BROKEN, "--fault", fault, "--token", _TOKEN], directory,
            "--handler", "work", "--token-file", _token(directory),
        )  # fmt: skip

    with ThreadPoolExecutor(_SIDE_BY_SIDE) as pool:
        yield {
            fault: pool.submit(broken_app, fault, tmp_path_factory.mktemp(fault))
            for fault in _FAULTS
        }


def _token(directory: Path) -> str:
    file = directory / "token"
    file.write_text(_TOKEN)
    return str(file)


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda language: language.name)
def test_the_example_of_every_language_conforms(
    language: Language, examples: dict[str, Future[Report]]
) -> None:
    """With our client or on bare stubs; nothing is left out but what cannot be seen."""
    if language.missing:
        pytest.skip(language.missing)
    report = examples[language.name].result()
    assert (report.code, report.checks["FAIL"]) == (0, set()), report.text
    # On bare stubs an app that acts only inside Execute need not watch its trust.
    assert report.checks["skip"] == ({"trust"} if language.name == "rust" else set()), report.text


def test_the_page_shows_what_is_printed(tmp_path: Path) -> None:
    """docs/conformance.md: its command, on the example that it is about."""
    shown = blocks("docs/conformance.md")[0].text.splitlines()
    arguments = shlex.split(shown[0].removeprefix("$ baton conformance --app 127.0.0.1:50051"))
    python = next(language for language in LANGUAGES if language.name == "python")
    env = {"ORDERS_STEP_SECONDS": "0.05"}
    report = _conformance(python.command(), tmp_path, *arguments, env=env)
    for line in shown[1:]:
        assert line == "…" or f"{line}\n" in report.text, line
    table = (ROOT / "docs/conformance.md").read_text()
    assert set(re.findall(r"^\| `([a-z-]+)` \|", table, re.MULTILINE)) == set().union(
        *report.checks.values()
    )


def test_an_app_on_bare_stubs_without_health_conforms(tmp_path: Path) -> None:
    report = _conformance(
        [*_BROKEN, "--fault", "has-no-health"], tmp_path, "--handler", "work", "--singleton", "life"
    )
    assert (report.code, report.checks["FAIL"]) == (0, set()), report.text
    assert report.checks["skip"] == {"token", "trust"}
    assert report.summary == "16 ok, 0 failed, 2 skipped"


@pytest.mark.parametrize("fault", _FAULTS)
def test_a_broken_app_fails_the_right_checks(fault: str, broken: dict[str, Future[Report]]) -> None:
    report = broken[fault].result()
    assert (report.code, report.checks["FAIL"]) == (1, _FAULTS[fault]), report.text
    assert _TOKEN not in report.text


def test_an_app_that_goes_on_after_its_call_is_found_out(tmp_path: Path) -> None:
    """What is cancelled must stop: it is seen by the calls that it still makes."""
    report = _conformance([*_BROKEN, "--fault", "goes-on"], tmp_path, "--singleton", "life")
    assert report.checks["FAIL"] == {"cancellation", "deadline", "lose"}, report.text


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [*_CONFORMANCE, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_nobody_there_is_one_failed_check() -> None:
    ended = _run("--app", _address(), "--sidecar", _address())
    assert ended.returncode == 1
    assert ended.stdout.startswith("FAIL  connection")
    assert ended.stdout.endswith("0 ok, 1 failed, 0 skipped\n")


def test_wrong_arguments_are_one_line(tmp_path: Path) -> None:
    """Exit code 2: nothing was checked."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        for arguments in (
            ("--sidecar", address),
            ("--sidecar", _address(), "--token-file", str(tmp_path / "missing")),
        ):
            ended = _run("--app", "127.0.0.1:1", *arguments)
            assert (ended.returncode, ended.stdout) == (2, "")
            assert ended.stderr.startswith("baton: --")
            assert ended.stderr.count("\n") == 1
