"""`python -m tests.simulation --seeds 2000`, or `--seed N --verbose` to replay one."""

import argparse
import sys
import time

from tests.simulation.scenario import simulate


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=500, help="how many, counted from --first")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seed", type=int, help="just this one")
    parser.add_argument("--traces", action="store_true", help="print the hash of each history")
    parser.add_argument("--verbose", action="store_true", help="print the whole history")
    options = parser.parse_args()
    first, count = (options.first, options.seeds) if options.seed is None else (options.seed, 1)
    started = time.perf_counter()
    failed = takeovers = deliveries = redeliveries = completions = 0
    for seed in range(first, first + count):
        report = simulate(seed, verbose=options.verbose)
        takeovers += report.takeovers
        deliveries += report.deliveries
        redeliveries += report.redeliveries
        completions += report.completions
        if report.violations:
            failed += 1
            print(f"seed {seed}: {report.violations[0]}", flush=True)
        if options.traces or options.seed is not None:
            print(f"seed {seed}: trace {report.trace_hash}")
    seconds = time.perf_counter() - started
    print(
        f"{count} seeds, {failed} failed, {takeovers} takeovers, {deliveries} deliveries,"
        f" {redeliveries} of them again, {completions} completions, {seconds:.1f} s"
    )
    if failed:
        print("replay one with: python -m tests.simulation --verbose --seed N")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
