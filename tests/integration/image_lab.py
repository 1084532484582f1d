"""Builds and runs what the Dockerfile says without Docker: in mount namespaces of this machine.

The base image is stood in for by this machine's Python with nothing but pip in it. Every RUN line
runs as it stands, without a network. The result runs as the Dockerfile's user in a root of its own:
read-only, with neither a shell nor any other program, and one directory to write to.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
RUN_DIR = "/run/baton"
CONFIG_DIR = "/etc/baton"
_PYTHON = sys.base_prefix  # at its own place: it may look for its libraries there
_PACKAGES = f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
_BASE_PATH = f"{_PYTHON}/bin:/usr/bin:/bin"
_LINKS = ("bin", "lib", "lib64", "sbin")
_DEVICES = ("null", "urandom")
_NAMESPACE = ("unshare", "--mount", "--propagation", "private", "sh", "-euc")
_SECONDS_MAX = 90


def why_not() -> str:
    """Why images cannot be built here, or nothing."""
    if os.geteuid() != 0:
        return "making mount namespaces needs root"
    if sys.base_prefix == "/usr":
        return "the system's own Python cannot stand in for the base image"
    probe = subprocess.run([*_NAMESPACE, "true"], capture_output=True, text=True, check=False)
    return probe.stderr.strip()


@dataclass(frozen=True, slots=True)
class Instruction:
    name: str
    text: str

    @property
    def words(self) -> list[str]:
        """The arguments, of the exec form or of the other."""
        return list(json.loads(self.text)) if self.text.startswith("[") else shlex.split(self.text)


@dataclass(frozen=True, slots=True)
class Stage:
    """The instructions from one FROM to the next."""

    instructions: list[Instruction] = field(default_factory=list)

    def all(self, name: str) -> list[Instruction]:
        return [one for one in self.instructions if one.name == name]

    def last(self, name: str) -> Instruction:
        return self.all(name)[-1]

    @property
    def environment(self) -> dict[str, str]:
        given = (word.split("=", 1) for one in self.all("ENV") for word in one.words)
        return {name: value.replace("$PATH", _BASE_PATH) for name, value in given}


def stages() -> list[Stage]:
    """The stages of the Dockerfile; the first holds what comes before any FROM."""
    lines = (REPOSITORY / "Dockerfile").read_text().splitlines()
    text = "\n".join(line for line in lines if not line.lstrip().startswith("#"))
    found = [Stage()]
    for line in text.replace("\\\n", " ").splitlines():
        name, _, arguments = line.strip().partition(" ")
        if name == "FROM":
            found.append(Stage())
        if name:
            found[-1].instructions.append(Instruction(name, arguments.strip()))
    return found


def wheels(locks: Mapping[str, str], *pip_options: str) -> Path:
    """A directory with the wheels that the locks name; kept, so that the next time works offline.

    `locks` are texts of requirement files by name; the hashes in them are checked.
    """
    stamp = hashlib.sha256(json.dumps([dict(locks), pip_options, sys.version]).encode()).hexdigest()
    directory = REPOSITORY / ".cache/wheels" / stamp[:16]
    if directory.exists():
        return directory
    unfinished = directory.with_suffix(f".{os.getpid()}")
    unfinished.mkdir(parents=True)
    command: list[str | Path] = [
               sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
               "--require-hashes", "--no-deps", "--only-binary=:all:", "--dest", unfinished,
               *pip_options]  # fmt: skip
    for name, text in locks.items():
        (unfinished / name).write_text(text)
        command += ["-r", unfinished / name]
    try:
        subprocess.run(command, check=True, timeout=300)
        try:
            unfinished.rename(directory)
        except OSError:
            if not directory.exists():  # else another worker was quicker
                raise
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return directory


class Image:
    """What the Dockerfile makes, under `root`: `build`, then `command` to run things in it."""

    def __init__(self, root: Path) -> None:
        self._build_root, self.root = root / "build", root / "image"
        self.run_dir, self.config_dir = root / "run", root / "config"
        self._base = root / "base"
        _, self.build_stage, self.final_stage = stages()
        self.user = self.final_stage.last("USER").text
        _, source, self._target = self.final_stage.last("COPY").words
        self.installed = self._build_root / source.lstrip("/")  # what the final stage takes over

    def build(self, wheels_dir: Path) -> None:
        """Run the instructions of the build stage, one after the other, as they stand."""
        subprocess.run([sys.executable, "-m", "venv", self._base], check=True, timeout=60)
        directories = ("/usr", "/etc", "/proc", "/dev", "/tmp", "/opt", "/wheels", _PYTHON)
        _skeleton(self._build_root, directories)
        binds = {"/usr": "/usr", "/etc": "/etc", "/proc": "/proc", "/dev": "/dev",
                 str(wheels_dir): "/wheels", **self._python()}  # fmt: skip
        offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "/wheels", "HOME": "/tmp"}
        environment = {"PATH": _BASE_PATH, **self.build_stage.environment, **offline}
        workdir = "/"
        for one in self.build_stage.instructions:
            if one.name == "WORKDIR":
                workdir = one.text
                (self._build_root / workdir.lstrip("/")).mkdir(parents=True, exist_ok=True)
            elif one.name == "COPY":
                self._copy(one.words, workdir)
            elif one.name == "RUN":
                script = f"cd {workdir}; {one.text}"
                inside = ["/usr/sbin/chroot", ".", *_env(environment), "/bin/sh", "-euc", script]
                _run(_command(self._build_root, binds, inside, read_only_root=False))

    def _python(self) -> dict[str, str]:
        return {_PYTHON: _PYTHON, str(self._base / _PACKAGES): f"{_PYTHON}/{_PACKAGES}"}

    def prepare(self, config: Mapping[str, str]) -> None:
        """Lay out the root that the container will see, with these files in its CONFIG_DIR."""
        directories = ("/usr/lib", "/usr/lib64", _PYTHON, "/proc", "/dev", "/tmp", self._target,
                       RUN_DIR, CONFIG_DIR)  # fmt: skip
        _skeleton(self.root, directories)
        for device in _DEVICES:
            (self.root / "dev" / device).touch()
        self.run_dir.mkdir()
        os.chown(self.run_dir, *(int(number) for number in self.user.split(":")))
        self.run_dir.chmod(0o770)
        self.config_dir.mkdir()
        self.config_dir.chmod(0o755)
        for name, text in config.items():
            (self.config_dir / name).write_text(text)
            (self.config_dir / name).chmod(0o444)

    def command(self, words: Sequence[str], environment: Mapping[str, str]) -> list[str]:
        """The command line that runs `words` in the container, as its user."""
        binds = {"/usr/lib": "/usr/lib", "/usr/lib64": "/usr/lib64",
                 "/proc": "/proc", **self._python(),
                 str(self.installed): self._target,
                 str(self.config_dir): CONFIG_DIR,
                 **{f"/dev/{name}": f"/dev/{name}" for name in _DEVICES}}  # fmt: skip
        everything = {"PATH": _BASE_PATH, **self.final_stage.environment, **environment}
        program = self._program(words[0], everything["PATH"])
        inside = ["env", "-i", *_pairs(everything), "setpriv", "--no-new-privs",
                  "--bounding-set=-all,+sys_chroot,+setuid,+setgid", "/usr/sbin/chroot",
                  f"--userspec={self.user}", "--groups=", ".", program, *words[1:]]  # fmt: skip
        writable = {str(self.run_dir): RUN_DIR}
        return _command(self.root, binds, inside, read_only_root=True, writable=writable)

    def _program(self, name: str, path: str) -> str:
        """Where PATH finds a program in the image: chroot itself would look outside."""
        for directory in path.split(":"):
            inside = self.installed / directory.removeprefix(self._target).lstrip("/")
            if directory.startswith(self._target) and os.path.lexists(inside / name):
                return f"{directory}/{name}"
        return name

    def _copy(self, words: Sequence[str], workdir: str) -> None:
        *sources, target = words
        into = self._build_root / workdir.lstrip("/") / target
        for source in sources:
            if (REPOSITORY / source).is_dir():
                ignored = shutil.ignore_patterns("__pycache__", "*.pyc")
                shutil.copytree(REPOSITORY / source, into, ignore=ignored, symlinks=True)
            else:
                shutil.copy(REPOSITORY / source, into)


def _skeleton(root: Path, directories: Sequence[str]) -> None:
    for directory in directories:
        (root / directory.lstrip("/")).mkdir(parents=True, exist_ok=True)
    for name in _LINKS:
        if Path("/", name).is_symlink():
            (root / name).symlink_to(os.readlink(Path("/", name)))
    root.chmod(0o755)


def _command(
    root: Path,
    binds: Mapping[str, str],
    inside: Sequence[str],
    *,
    read_only_root: bool,
    writable: Mapping[str, str] | None = None,
) -> list[str]:
    """`inside`, in the directory `root` of a mount namespace where the binds are read-only."""
    at = shlex.quote(str(root))
    lines = [f"mount --bind {at} {at}"]
    for source, target in binds.items():
        if Path(source).exists():
            place = f"{at}{target}"
            lines += [f"mount --rbind {shlex.quote(source)} {place}"]
            lines += [f"mount -o remount,bind,ro {place}"]
    lines += [f"mount --bind {shlex.quote(of)} {at}{to}" for of, to in (writable or {}).items()]
    if read_only_root:
        lines.append(f"mount -o remount,bind,ro {at}")
    lines.append(f"cd {at}; exec {shlex.join(inside)}")
    return [*_NAMESPACE, "\n".join(lines)]


def _env(environment: Mapping[str, str]) -> list[str]:
    return ["/usr/bin/env", "-i", *_pairs(environment)]


def _pairs(environment: Mapping[str, str]) -> list[str]:
    return [f"{name}={value}" for name, value in environment.items()]


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=_SECONDS_MAX, check=False
    )
    assert done.returncode == 0, f"{command[-1]}\n{done.stdout}{done.stderr}"
