"""The README, followed word for word: one terminal, every block in its order, in each language.

And the programs that the clients' own pages start with (clients/*/README.md).

Its commands and files are taken from the page itself. Only two things differ from what a reader
does: the ports, which must be free on this machine, and that nothing is sent to Docker and
Kubernetes (what is said to them is checked in tests/unit/test_docs.py and by helm/test).
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from devtools.servers import free_port
from tests.acceptance.languages import LANGUAGES, PATH
from tests.lab.pages import ROOT, Block, blocks, script

_HEADING = "Ten minutes to production"
_OF_LANGUAGE = {"Python": "python", "TypeScript": "typescript", "Go": "go", "Java": "java"}
_SECONDS = 600.0  # a reader is told ten minutes; the first build of a language is the most of it
_LISTENS = "until (: < /dev/tcp/${BATON_APP_ADDRESS/:/\\/}) 2>/dev/null; do sleep 0.5; done"
_ELSEWHERE = ("docker", "kubectl")
_LANGUAGES = [
    pytest.param(fold, marks=[] if fold == "Python" else pytest.mark.languages)
    for fold in _OF_LANGUAGE
]


def _way(language: str) -> list[Block]:
    chosen = [block for block in blocks("README.md") if block.heading == _HEADING]
    return [block for block in chosen if block.fold in ("", language)]


def _caches() -> dict[str, str]:
    """Another home is no reason to download everything again."""
    home = Path.home()
    return {
        "GOPATH": os.environ.get("GOPATH", str(home / "go")),
        "GOCACHE": os.environ.get("GOCACHE", str(home / ".cache" / "go-build")),
        "RUSTUP_HOME": os.environ.get("RUSTUP_HOME", str(home / ".rustup")),
        "CARGO_HOME": os.environ.get("CARGO_HOME", str(home / ".cargo")),
        "NPM_CONFIG_CACHE": os.environ.get("NPM_CONFIG_CACHE", str(home / ".npm")),
        "MAVEN_ARGS": f"-Dmaven.repo.local={home / '.m2' / 'repository'}",
    }


@contextmanager
def _terminal(home: Path, typed: str) -> Iterator[subprocess.CompletedProcess[str]]:
    """Bash in a home of its own, after it has ended; what it started ends with the block."""
    tools = home / "tools"
    tools.mkdir()
    for tool in _ELSEWHERE:
        (tools / tool).write_text(f'#!/bin/sh\necho {tool}: "$@"\n')
        (tools / tool).chmod(0o755)
    env = {
        **{name: value for name, value in os.environ.items() if not name.startswith("BATON_")},
        **_caches(),
        "HOME": str(home),
        "PATH": f"{tools}:{PATH}",
        "BATON_APP_ADDRESS": f"127.0.0.1:{free_port()}",
        "BATON_API_ADDRESS": f"127.0.0.1:{free_port()}",
        "BATON_HTTP_ADDRESS": f"127.0.0.1:{free_port()}",
    }
    typed = typed.replace("127.0.0.1:9400", env["BATON_HTTP_ADDRESS"])
    with (home / "output").open("wb") as output:  # no pipe: what runs on would keep it open
        process = subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c", typed], cwd=ROOT, env=env,
            stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    try:
        code = process.wait(_SECONDS)
        shown = (home / "output").read_text()
        yield subprocess.CompletedProcess(process.args, code, shown)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.mark.timeout(_SECONDS + 30)
@pytest.mark.parametrize("language", _LANGUAGES)
def test_ten_minutes_to_production(language: str, tmp_path: Path) -> None:
    """From nothing to a leader whose schedule succeeds, and a clean end."""
    of_client = next(one for one in LANGUAGES if one.name == _OF_LANGUAGE[language])
    if of_client.missing:
        pytest.skip(of_client.missing)
    with _terminal(tmp_path, script(_way(language))) as ended:
        logs = "".join(f"--- {log.name}\n{log.read_text()[-3000:]}" for log in _logs(tmp_path))
        assert ended.returncode == 0, f"{ended.stdout}{logs}"
    assert "leading default in term" in ended.stdout
    assert re.search(r"^\d+ +coordinator .* running$", ended.stdout, re.MULTILINE), ended.stdout
    assert " succeeded " in ended.stdout
    assert 'baton_is_leader{group="default"} 1.0' in ended.stdout
    assert ended.stdout.count("T02:00:00+0") == 3, "the preview"
    assert ended.stdout.count("kubectl:") == 4


def _program_of(page: str, fold: str) -> list[Block]:
    """The README's blocks for a language, with the program that the client's page starts with."""
    mine = [block for block in _way(fold) if block.fold == fold]
    program = blocks(page)[0]
    named = next(block for block in mine if block.file)
    text = f"{named.text.partition(chr(10))[0]}\n{program.text}"
    return [replace(named, text=text), *(block for block in mine if block is not named)]


@pytest.mark.languages
@pytest.mark.timeout(_SECONDS + 30)
@pytest.mark.parametrize("fold", _OF_LANGUAGE)
def test_the_program_of_a_client_page_conforms(fold: str, tmp_path: Path) -> None:
    """What clients/<language>/README.md starts with is built, started and put to the test."""
    name = _OF_LANGUAGE[fold]
    if missing := next(one.missing for one in LANGUAGES if one.name == name):
        pytest.skip(missing)
    typed = f"""
export BATON={ROOT} PATH={ROOT}/.venv/bin:$PATH
mkdir $HOME/orders
cd $HOME/orders
{script(_program_of(f"clients/{name}/README.md", fold))}
{_compiled_only(name)}
{_LISTENS}
baton conformance --app $BATON_APP_ADDRESS --sidecar $BATON_API_ADDRESS \\
  --handler daily-cleanup --payload '{{"days": 30}}' --singleton coordinator
"""
    with _terminal(tmp_path, typed) as ended:
        logs = "".join(f"--- {log.name}\n{log.read_text()[-3000:]}" for log in _logs(tmp_path))
        assert ended.returncode == 0, f"{ended.stdout}{logs}"
    assert "17 ok, 0 failed, 1 skipped" in ended.stdout


def _compiled_only(language: str) -> str:
    """Further programs of the page; they need more than a sidecar in memory."""
    rest = blocks(f"clients/{language}/README.md")[1:] if language == "typescript" else ()
    return "".join(
        f"cat > more.ts <<'END'\n{block.text}END\n"
        "npx tsc --noEmit --module nodenext --types node more.ts\n"
        for block in rest
    )


@pytest.mark.languages
@pytest.mark.timeout(_SECONDS + 30)
def test_the_commands_of_the_rust_page_work(tmp_path: Path) -> None:
    """clients/rust/README.md: built, started, asked whether it conforms."""
    if missing := next(one.missing for one in LANGUAGES if one.name == "rust"):
        pytest.skip(missing)
    text = "".join(block.text for block in blocks("clients/rust/README.md"))
    build, start, check = (line.removeprefix("$ ") for line in text.splitlines())
    typed = f"""
export PATH={ROOT}/.venv/bin:$PATH
mkdir $HOME/orders
cd clients/rust
{build}
{start} > $HOME/orders/app.log 2>&1 &
{_LISTENS}
{check} --sidecar $BATON_API_ADDRESS
"""
    addresses = ("127.0.0.1:50051", "$BATON_APP_ADDRESS"), ("127.0.0.1:9401", "$BATON_API_ADDRESS")
    for shown, free in addresses:
        assert shown in typed
        typed = typed.replace(shown, free)
    with _terminal(tmp_path, typed) as ended:
        assert ended.returncode == 0, ended.stdout
    assert " 0 failed" in ended.stdout


def _logs(home: Path) -> list[Path]:
    return sorted((home / "orders").glob("*.log"))


def test_every_language_has_its_fold() -> None:
    folds = {block.fold for block in blocks("README.md")} - {""}
    assert folds == set(_OF_LANGUAGE)
    assert {_OF_LANGUAGE[fold] for fold in folds} | {"rust"} == {one.name for one in LANGUAGES}
