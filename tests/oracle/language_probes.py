"""Programs in other languages that look at the sandbox flags, and what they wrote when they were run.

The programs are in `languages/*.txt`, as agents type them; what each wrote under each of the truths of
`env_probes` is recorded below `tests/data/env_languages`, so that no interpreter is needed to read it. By
hand, where perl, ruby, php, jq, gawk, python3, node and lua are installed:

    python -m tests.oracle.language_probes --record          run all programs, and record them
    python -m tests.oracle.language_probes [--live]          print what is read of each language, and missed
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

from tests.oracle.env_probes import Comparison, Probe, run_typed
from tests.oracle.env_scripts import Typed, typed_scripts

PROGRAMS = Path(__file__).with_name("languages")
RECORDED = Path(__file__).parent.parent / "data" / "env_languages"
LANGUAGES = ("awk", "jq", "lua", "node", "perl", "php", "python", "ruby")
UNSEEN = ("unseen_1", "unseen_2", "unseen_3")
"""Programs in all languages, typed before they were read for the first time; rounds one after another."""
_PATH = "/usr/local/bin:/usr/bin:/bin"


def programs(language: str) -> tuple[Typed, ...]:
    """Return the programs of a language."""
    return typed_scripts(PROGRAMS / f"{language}.txt")


def live(language: str) -> Iterator[Probe]:
    """Run the programs of a language."""
    return run_typed(programs(language), path=_PATH)


def record(language: str) -> None:
    """Run the programs of a language, and write what they wrote."""
    lines: dict[str, list[dict[str, object]]] = {}
    for probe in live(language):
        run = {"flags": probe.flags, "output": probe.output, "exit_code": probe.exit_code}
        lines.setdefault(probe.script, []).append(run)
    RECORDED.mkdir(exist_ok=True)
    text = "".join(json.dumps({"script": script, "runs": runs}) + "\n" for script, runs in lines.items())
    (RECORDED / f"{language}.jsonl").write_text(text)


def recorded(language: str) -> Iterator[Probe]:
    """Yield the programs of a language as they ran when they were recorded."""
    typed = {program.script: program for program in programs(language)}
    number = 0
    for line in (RECORDED / f"{language}.jsonl").read_text().splitlines():
        entry = json.loads(line)
        program = typed.pop(entry["script"])
        for run in entry["runs"]:
            number += 1
            flags = run["flags"]
            yield Probe(
                number=number,
                script=program.script,
                shell="bash",
                flags=flags,
                output=run["output"],
                exit_code=run["exit_code"],
                shown=frozenset(n for n in program.shown if n in flags or not program.needs_value),
                forms=(program.subject,),
            )
    if typed:
        raise ValueError(f"not recorded: {list(typed)}")


def main() -> None:
    """Print what is read of each language."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("languages", nargs="*", default=(*LANGUAGES, *UNSEEN))
    parser.add_argument("--record", action="store_true", help="run the programs and record what they write")
    parser.add_argument(
        "--live", action="store_true", help="run the programs instead of reading what is recorded"
    )
    given = parser.parse_args()
    for language in given.languages:
        if given.record:
            record(language)
        comparison = Comparison()
        for probe in live(language) if given.live else recorded(language):
            comparison.add(probe)
        print(f"{language}: {comparison}")  # noqa: T201 - run by hand
        for each in dict.fromkeys((*comparison.wrong, *comparison.missed)):
            print(f"\n{each}")  # noqa: T201


if __name__ == "__main__":
    main()
