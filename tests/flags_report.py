"""Print how many flags that scripts show are read: `python -m tests.flags_report`. A report, not a gate.

The scripts are really run, in bash, zsh and dash. What is wrong is printed whole; that must be nothing.
"""

from __future__ import annotations

import argparse
import random

from tests.oracle.flag_probes import compare, generate, run_kept


def main() -> None:
    """Print a line for each seed, and one for each kind of kept scripts."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--seeds", type=int, default=1, help="number of seeds, from --seed on")
    parser.add_argument("--probes", type=int, default=1_000, help="probes of each seed")
    given = parser.parse_args()
    wrong: list[str] = []
    for seed in range(given.seed, given.seed + given.seeds):
        comparison = compare(generate(seed, given.probes))
        wrong += comparison.wrong
        print(f"seed {seed}: {comparison}", flush=True)
    for kind in ("hostile", "typed"):
        comparison = compare(run_kept(kind, given.seed))
        wrong += comparison.wrong
        print(f"{kind}: {comparison}", flush=True)
    print("\n\n".join(wrong))


if __name__ == "__main__":
    main()
