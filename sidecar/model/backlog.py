"""What is due and not started, and what to do about it."""

from dataclasses import dataclass

# Less is how long a busy second takes.
VISIBLE_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Backlog:
    """The due work of one group that has not started."""

    runs: int = 0
    schedules: int = 0  # with a due tick that has no run yet
    seconds: float = 0.0  # for how long the oldest of both has been due

    @property
    def size(self) -> int:
        return self.runs + self.schedules

    @property
    def visible(self) -> bool:
        return self.size > 0 and self.seconds >= VISIBLE_SECONDS

    def warning(self, group: str) -> str:
        return (
            f"group {group}: {self.size} runs are due and not started, the oldest for"
            f" {self.seconds:.0f} s: more is due than this pod and its app can run."
            " Run fewer schedules or less often, spread them over more groups, or raise"
            " app.max_concurrent if the app has room"
        )
