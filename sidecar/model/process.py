"""A process of the app that attached: what it can execute, and what its code declares."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from sidecar.model.definitions import Schedule, Singleton
from sidecar.model.run import RunKind


@dataclass(frozen=True, slots=True)
class ProcessHello:
    """What a process said of itself when it attached."""

    client: str
    process_id: str
    capacity: int
    singletons: frozenset[str] = frozenset()
    schedules: frozenset[str] = frozenset()
    jobs: frozenset[str] = frozenset()
    declared_schedules: tuple[Schedule, ...] = ()
    declared_singletons: tuple[Singleton, ...] = ()
    revision: int = 0

    def handles(self, kind: RunKind) -> Collection[str]:
        match kind:
            case RunKind.SINGLETON:
                return self.singletons
            case RunKind.JOB:
                return self.jobs
        return self.schedules


class DeclaredSingletons:
    """The singletons of the configuration file and of the app's code; the file wins."""

    def __init__(self, file: Sequence[Singleton] = ()) -> None:
        self._file = {each.name: each for each in file}
        self._code: dict[str, Singleton] = {}

    def __iter__(self) -> Iterator[Singleton]:
        return iter((self._code | self._file).values())

    def get(self, name: str) -> Singleton | None:
        return self._file.get(name) or self._code.get(name)

    def declare(self, code: Sequence[Singleton]) -> list[str]:
        """Replace those of the code; returns the names that the file has, too."""
        self._code = {each.name: each for each in code}
        return sorted(self._code.keys() & self._file.keys())
