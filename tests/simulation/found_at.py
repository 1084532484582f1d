"""At which seed each planted bug was last found: where the tests look first.

    python -m tests.simulation.found_at     # looks from the first seed on, and writes it down

A change of the code may move a bug to another seed. Then all are tried, as if nothing were written
here, and the test only takes longer.
"""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Iterable, Iterator
from pathlib import Path

from sidecar.execution import pipeline
from tests.simulation.cluster import Parts
from tests.simulation.planted import PLANTED, BlindRetry
from tests.simulation.scenario import SEEDS, simulate

BLIND_RETRY = "blind retry of a commit"  # planted in a module, not in parts
_FILE = Path(__file__).with_suffix(".json")


def seeds(name: str) -> Iterator[int]:
    """All seeds of the tests, the likeliest first."""
    first = json.loads(_FILE.read_text()).get(name, 0)
    assert first < SEEDS
    yield first
    yield from (seed for seed in range(SEEDS) if seed != first)


def found(parts: Parts, guarantee: str, among: Iterable[int]) -> int | None:
    """The first of these seeds in which the guarantee is reported as broken."""
    for seed in among:
        if any(f" s: {guarantee}:" in v for v in simulate(seed, parts=parts).violations):
            return seed
    return None


def _look(name: str) -> tuple[str, int | None]:
    """In a process of its own."""
    if name != BLIND_RETRY:
        return name, found(*PLANTED[name], range(SEEDS))
    pipeline.Recorder = BlindRetry  # type: ignore[attr-defined]
    return name, found(Parts(), "G4", range(SEEDS))


def main() -> None:
    with multiprocessing.Pool(maxtasksperchild=1) as pool:
        places = dict(pool.map(_look, [*PLANTED, BLIND_RETRY], chunksize=1))
    _FILE.write_text(json.dumps(places, indent=2) + "\n")


if __name__ == "__main__":
    main()
