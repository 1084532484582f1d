"""What a changed configuration file means for a sidecar that runs.

Guarantees: the file of another cluster is refused whole; of any other file the schedules and
the queues apply at once, and keys that need a restart are named, in the log and in /health, for as
long as they differ from what this process runs with. Values are never shown: they may hold a
secret.
"""

from collections.abc import Callable, Iterator, Sequence

import structlog

from sidecar.config import Settings, changed_keys
from sidecar.config.problems import shown

log = structlog.get_logger()

_APPLIED_AT_ONCE = frozenset({"schedules", "jobs.queues", "config_revision"})
_SHOWN_MAX = 10


class Reload:
    """Judges each file that was read anew; `apply` gets those that may be applied."""

    def __init__(self, running: Settings, apply: Callable[[Settings], None]) -> None:
        self._running = running
        self._apply = apply
        self._refused: list[str] = []
        self._restart_keys: list[str] = []

    def offer(self, settings: Settings) -> None:
        if settings.cluster != self._running.cluster:
            self.refuse(
                [
                    f"cluster: the file is for {shown(settings.cluster)}, this sidecar serves"
                    f" {shown(self._running.cluster)}; nothing of it is applied: restore the file,"
                    " or restart the sidecar to change clusters"
                ]
            )
            return
        self._refused = []
        log.info("config_reloaded", schedules=len(settings.schedules))
        self._compare(settings)
        self._apply(settings)

    def refuse(self, problems: Sequence[str]) -> None:
        """The file cannot be used; what was applied before stays."""
        if list(problems) != self._refused:
            log.warning("config_refused", problems=list(problems))
        self._refused = list(problems)

    def warnings(self) -> Iterator[str]:
        """For /health."""
        if self._refused:
            more = len(self._refused) - 1
            rest = f" (and {more} more)" if more else ""
            yield f"the changed configuration file is refused: {self._refused[0]}{rest}"
        if self._restart_keys:
            yield f"restart to apply the changed keys {_listed(self._restart_keys)}"

    def _compare(self, settings: Settings) -> None:
        changed = [
            key for key in changed_keys(self._running, settings) if key not in _APPLIED_AT_ONCE
        ]
        if changed and changed != self._restart_keys:
            log.warning(
                "config_needs_restart",
                keys=changed,
                problem="these keys are read at start only: restart the sidecar to apply them",
            )
        self._restart_keys = changed


def _listed(keys: Sequence[str]) -> str:
    more = f" and {len(keys) - _SHOWN_MAX} more" if len(keys) > _SHOWN_MAX else ""
    return ", ".join(keys[:_SHOWN_MAX]) + more
