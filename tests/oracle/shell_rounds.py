"""Whole shell scripts, typed in rounds before it was tried what is read of them, and what each wrote.

Round 11 is by an author who had never seen this program. What it shows is measured, not judged: a run
shows a flag where no environment with another value of it gives the same output.

They ran in bash, zsh and dash under each of the truths of `env_probes`; what they wrote is recorded below
`tests/data/env_shells`, one script a line, equal runs of several shells once. `hostile` are
scripts that imitate, hide or change the flags: nothing is expected to be read of them. By hand:

    python -m tests.oracle.shell_rounds                   print what is read of each round, and missed
    python -m tests.oracle.shell_rounds --record FILE     run typed scripts, and write a round next to FILE
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.oracle.env_probes import Comparison, Probe, compare, run_typed
from tests.oracle.env_scripts import typed_scripts

RECORDED = Path(__file__).parent.parent / "data" / "env_shells"
_PATH = "/usr/local/bin:/usr/bin:/bin"
_MAX_OUTPUT = 700
"""Characters of an output; scripts that write more are left out."""
_OF_THE_MACHINE = re.compile(r"/root|/work\b|agentdash|Linux \S+ \d")
"""Outputs with it are left out, and their scripts."""


def rounds() -> list[str]:
    """Return the names of the rounds, oldest first."""
    return sorted(path.stem for path in RECORDED.glob("round_*.jsonl"))


def recorded(name: str) -> Iterator[Probe]:
    """Yield the scripts of a round as they ran."""
    for line in (RECORDED / f"{name}.jsonl").read_text().splitlines():
        entry = json.loads(line)
        for number, run in enumerate(entry["runs"]):
            yield Probe(
                number=number,
                script=entry["script"],
                shell=run["shells"][0],
                flags=run["flags"],
                output=run["output"],
                exit_code=run["exit_code"],
                shown=frozenset(run["shown"]),
                forms=(name,),
            )


def record(probes: Iterable[Probe], path: Path) -> None:
    """Write what scripts wrote, but for outputs that are long or show the machine."""
    scripts: dict[str, list[Probe]] = {}
    for probe in probes:
        scripts.setdefault(probe.script, []).append(probe)
    lines = [
        json.dumps({"script": script, "runs": _runs(ran)})
        for script, ran in scripts.items()
        if not any(len(p.output) > _MAX_OUTPUT or _OF_THE_MACHINE.search(p.output) for p in ran)
    ]
    path.write_text("".join(f"{line}\n" for line in lines))


def _runs(probes: list[Probe]) -> list[dict[str, object]]:
    """Return runs, those with the same output under the same flags once."""
    found: dict[str, dict[str, object]] = {}
    shells: dict[str, list[str]] = {}
    for probe in probes:
        run = {
            "flags": probe.flags,
            "shown": sorted(probe.shown),
            "output": probe.output,
            "exit_code": probe.exit_code,
        }
        key = json.dumps(run)
        shells.setdefault(key, []).append(probe.shell)
        found[key] = {"shells": shells[key], **run}
    return list(found.values())


def main() -> None:
    """Print what is read of each round, or record one."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--record", type=Path, help="typed scripts, as in env_typed.txt")
    given = parser.parse_args()
    if given.record:
        probes = run_typed(typed_scripts(given.record), path=_PATH)
        record(probes, given.record.with_suffix(".jsonl"))
        return
    for name in rounds():
        comparison: Comparison = compare(recorded(name))
        print(f"{name}: {comparison}")  # noqa: T201 - run by hand
        for each in (*comparison.wrong, *comparison.missed):
            print(f"\n{each}")  # noqa: T201


if __name__ == "__main__":
    main()
