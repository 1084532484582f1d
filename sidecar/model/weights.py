"""How free slots are divided between priorities: smooth weighted round robin, 4:3:2:1.

Guarantees: while all priorities have a backlog, starts follow the weights, over any number of
claims; a priority that was found empty leaves its share to the others and does not save it up;
slots reserved for critical jobs are given to no other.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil

WEIGHTS = (4, 3, 2, 1)
CRITICAL = 0  # its place in the weights


@dataclass(slots=True)
class Shares:
    weights: Sequence[int] = WEIGHTS
    _credit: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self._credit = [0] * len(self.weights)

    def divided(
        self, free: int, *, critical_only: int = 0, empty: frozenset[int] = frozenset()
    ) -> list[int]:
        """How many jobs of each priority to claim. `critical_only` of the `free` slots are for
        critical jobs; `empty` are the places of priorities that had no job at the last claim."""
        shares = [0] * len(self.weights)
        critical_only = min(free, critical_only)
        places = [place for place in range(len(self.weights)) if place not in empty]
        if not places:
            return shares
        # After a whole round the credits are what they were before it.
        rounds, rest = divmod(free - critical_only, sum(self.weights[place] for place in places))
        for place in places:
            shares[place] = rounds * self.weights[place]
        for _ in range(rest):
            shares[self._next(places)] += 1
        if CRITICAL not in empty:
            shares[CRITICAL] += critical_only
        return shares

    def claimed(self, asked: Sequence[int], found: Sequence[int]) -> frozenset[int]:
        """What a claim found; returns the places of priorities that have no more due jobs."""
        empty = frozenset(place for place, most in enumerate(asked) if most and found[place] < most)
        for place in empty:
            self._credit[place] = 0
        return empty

    def _next(self, places: Sequence[int]) -> int:
        for place in places:
            self._credit[place] += self.weights[place]
        best = max(places, key=lambda place: self._credit[place])
        self._credit[best] -= sum(self.weights[place] for place in places)
        return best


def reserved_slots(capacity: int, reserve: float) -> int:
    """How many slots only critical jobs may take; never all of them."""
    return min(capacity - 1, ceil(capacity * reserve)) if capacity > 1 else 0
