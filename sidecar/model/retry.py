"""How long a failed attempt waits before the next one.

Guarantees: a wait is never longer than the cap and never shorter than 80 % of the plain exponential
step; the random part is an argument, so that the same input gives the same wait.
"""

from dataclasses import dataclass

JITTER = 0.2  # a fifth either way: enough to part runs that failed together
_DOUBLINGS_MAX = 40


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Attempts in all, the first included, and the waits between them."""

    attempts: int = 3
    initial_seconds: float = 1.0
    max_seconds: float = 60.0


# An app that cannot be reached is asked again after this; it uses up no retry.
UNDELIVERABLE = RetryPolicy(attempts=0, initial_seconds=0.5, max_seconds=10.0)


def wait_seconds(policy: RetryPolicy, failures: int, chance: float) -> float:
    """The wait after the `failures`-th failure (1 for the first); `chance` is in [0, 1)."""
    step = policy.initial_seconds * 2.0 ** min(max(failures, 1) - 1, _DOUBLINGS_MAX)
    spread = 1 - JITTER + 2 * JITTER * chance
    return min(min(step, policy.max_seconds) * spread, policy.max_seconds)
