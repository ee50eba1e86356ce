"""Which flags the output of a program shows, measured: no judgement of a reader or of its authors.

A flag is shown by a run where changing this flag alone, to each other value that it can have, changes the
output. Processes, times and the order of a hash differ between two runs in the same environment as well:
where they do, numbers and the order of lines are not compared, and where that is not enough nothing is
expected.
"""

from __future__ import annotations

import platform
import random
import re
import socket
import tempfile
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from pathlib import Path

import msgspec

from tests.oracle.env_probes import TRUTHS, environment_of, run_script
from tests.oracle.env_scripts import NAMES, NETWORK, SANDBOX

_VALUES = {NETWORK: ("1", None, "", "0", "2"), SANDBOX: ("seatbelt", None, "", "docker", "0", "none")}
"""Values of each flag; an empty one counts as unset. `0` is false in some languages; `none` is a default."""
_OWN: tuple[tuple[str | None, ...], ...] = (("1", None), ("seatbelt", None))
"""Those of which is known what a run shows of them."""
_HOST = rf"\b{re.escape(socket.gethostname())}\b" if len(socket.gethostname()) > 2 else "/root"
_MACHINE = re.compile(f"/root|{re.escape(platform.release())}|{_HOST}")
"""What a recorded output must not show of the machine; a host name of one letter is in every text."""
_NUMBER = re.compile(r"0x[0-9a-f]+|\d[\d.,:]*\d")

Flags = dict[str, str]


class Run(msgspec.Struct, frozen=True):
    """A program as it ran in an environment."""

    flags: Flags
    output: str
    exit_code: int
    shown: tuple[str, ...]


def measured(scripts: Iterable[str], *, path: str) -> Iterator[tuple[str, list[Run]]]:
    """Run programs under each truth; those whose output shows the machine are left out."""
    for number, script in enumerate(scripts):
        found = _runs(number, script, path)
        if not any(_MACHINE.search(run.output) for run in found):
            yield script, found


def _runs(number: int, script: str, path: str) -> list[Run]:
    with tempfile.TemporaryDirectory(prefix="agentdash-probes-") as folder:

        def run(flags: Flags) -> tuple[str, int]:
            environment = environment_of(random.Random(number), flags)
            environment["PATH"] = path
            return run_script("bash", script, environment, Path(folder) / "work")

        pairs = dict.fromkeys(map(_pair, TRUTHS)) | dict.fromkeys(product(_VALUES[NETWORK], _OWN[1]))
        first = {
            pair: run(_flags(pair)) for pair in pairs | dict.fromkeys(product(_OWN[0], _VALUES[SANDBOX]))
        }
        again = {pair: run(_flags(pair))[0] for pair in product(*_OWN)}
    outputs = {pair: output for pair, (output, _) in first.items()}
    compared = _comparable(outputs, again)
    return [
        Run(_flags(pair), *first[pair], () if compared is None else _shown(pair, compared))
        for pair in map(_pair, TRUTHS)
    ]


def _flags(pair: tuple[str | None, ...]) -> Flags:
    return {name: value for name, value in zip(NAMES, pair, strict=True) if value is not None}


def _pair(flags: Flags) -> tuple[str | None, ...]:
    return tuple(flags.get(name) for name in NAMES)


Outputs = dict[tuple[str | None, ...], str]


def _comparable(outputs: Outputs, again: Outputs) -> Outputs | None:
    """Return outputs without what differs between runs in the same environment; None where they still do."""
    ways: tuple[Callable[[str], str], ...] = (str, lambda text: _NUMBER.sub("#", text))
    for way in (*ways, lambda text: "\n".join(sorted(_NUMBER.sub("#", text).splitlines()))):
        if all(way(text) == way(outputs[pair]) for pair, text in again.items()):
            return {pair: way(text) for pair, text in outputs.items()}
    return None


def _shown(pair: tuple[str | None, ...], outputs: Outputs) -> tuple[str, ...]:
    """Return the flags of which the output is another one for each value that is not their own."""
    found: list[str] = []
    if any((own or None) not in known for own, known in zip(pair, _OWN, strict=True)) or "" in pair:
        return ()
    for at, (name, own) in enumerate(zip(NAMES, pair, strict=True)):
        others = [value for value in _VALUES[name] if (value or None) != (own or None)]
        changed = [(*pair[:at], value, *pair[at + 1 :]) for value in others]
        if all(outputs[other] != outputs[pair] for other in changed):
            found.append(name)
    return tuple(found)
