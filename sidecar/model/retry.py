"""The wait between a failed attempt and the next one.

Guarantees: a wait is at most `max_seconds` and at least 80 % of the capped exponential step; the
random part is an argument, so the same input gives the same wait.
"""

from sidecar.model.definitions import Retry

JITTER = 0.2  # ±20 %: enough to spread the retries of runs that failed together
_DOUBLINGS_MAX = 40


# For runs that could not be delivered because the app is unreachable; uses no attempt.
UNDELIVERABLE = Retry(attempts=0, initial_seconds=0.5, max_seconds=10.0)


def wait_seconds(policy: Retry, failures: int, chance: float) -> float:
    """The wait after the `failures`-th failure (1 for the first); `chance` is in [0, 1)."""
    step = policy.initial_seconds * 2.0 ** min(max(failures, 1) - 1, _DOUBLINGS_MAX)
    spread = 1 - JITTER + 2 * JITTER * chance
    return min(min(step, policy.max_seconds) * spread, policy.max_seconds)
