"""Probes: scripts that look at the sandbox flags, really run under known environments, and what is read.

`generate(seed, n)` makes random probes. What is read of them must never contradict the flags; of probes that
are made of documented forms and quiet neighbours alone it must be what was shown. By hand:

    python -m tests.oracle.env_probes --seeds 3 --probes 2000    random probes
    python -m tests.oracle.env_probes --typed                    each script of env_typed.txt alone
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from agentdash.engine.detect.env_output import read_flags
from agentdash.engine.detect.env_output.reader import consistent_worlds
from agentdash.engine.detect.env_output.world import FLAG_VALUES, Assumption, Given, World
from agentdash.model.observation import UNSET
from tests.oracle.env_scripts import NETWORK, SANDBOX, Draft, Maker, Typed, typed_scripts

SHELLS = ("bash", "bash", "zsh", "dash")
"""Codex starts the user's shell: mostly bash or zsh."""


@dataclass(frozen=True)
class Probe:
    """A script that was run."""

    number: int
    script: str
    shell: str
    flags: dict[str, str]
    """The flags that were set in its environment."""
    output: str
    exit_code: int
    shown: frozenset[str]
    """Names of the flags that documented forms show, where nothing in the script is in the way."""
    forms: tuple[str, ...] = ()
    """Names of those forms."""

    def assumption(self, name: str) -> Assumption:
        """Return what is true of a flag."""
        value = self.flags.get(name)
        if value is None:
            return Given.UNSET
        return Given.EMPTY if value == "" else value if value in FLAG_VALUES[name] else Given.OTHER

    def allows(self, name: str, value: str | None) -> bool:
        """Return whether what was read of a flag is so; an empty one counts as unset, as for most scripts."""
        return value in (None, self.flags.get(name) or UNSET)

    def __str__(self) -> str:
        head = f"probe {self.number}, {self.shell}, {self.flags}, exit {self.exit_code}, {self.forms}"
        return f"{head}\n{self.script}\n-->\n{self.output}"


@dataclass
class Comparison:
    """What was read of probes, beside what is so."""

    shell_is_known: bool = False
    """The reader gets the name of the shell, as of `["bash", "-lc", …]`."""
    probes: int = 0
    shown: int = 0
    read: int = 0
    """Flags that were read; also of probes of which nothing is expected."""
    wrong: list[str] = field(default_factory=list)
    """Contradictions of the environment, and true environments that were ruled out."""
    missed: list[str] = field(default_factory=list)
    missed_forms: Counter[str] = field(default_factory=Counter)

    @property
    def recall(self) -> float:
        """Return the share of the flags shown that was read."""
        return 1 - len(self.missed) / self.shown if self.shown else 1.0

    def add(self, probe: Probe) -> None:
        """Read a probe and compare."""
        self.probes += 1
        shell = probe.shell if self.shell_is_known else ""
        flags = read_flags(probe.script, probe.output, shell=shell, exit_code=probe.exit_code)
        worlds = consistent_worlds(probe.script, probe.output, shell=shell, exit_code=probe.exit_code)
        truth = World(probe.assumption(NETWORK), probe.assumption(SANDBOX))
        if worlds is not None and truth not in worlds:
            self.wrong.append(f"the environment is ruled out: {probe}")
        for name, value in ((NETWORK, flags.network), (SANDBOX, flags.sandbox)):
            self.read += value is not None
            if not probe.allows(name, value):
                self.wrong.append(f"{name} read as {value}: {probe}")
            if name not in probe.shown or probe.assumption(name) in (Given.EMPTY, Given.OTHER):
                continue
            self.shown += 1
            if value is None:
                self.missed.append(f"{name}: {probe}")
                self.missed_forms.update(probe.forms)

    def __str__(self) -> str:
        counts = f"{self.probes} probes, {self.read} flags read, recall {self.recall:.3f} of {self.shown}"
        forms = ", ".join(f"{form} {count}" for form, count in self.missed_forms.most_common())
        return f"{counts}, {len(self.wrong)} wrong; missed by form: {forms or 'none'}"


def compare(probes: Iterable[Probe]) -> Comparison:
    """Compare what is read of probes with their environments."""
    result = Comparison()
    for probe in probes:
        result.add(probe)
    return result


FILES = {
    ".env": "CODEX_SANDBOX=seatbelt\nCODEX_SANDBOX_NETWORK_DISABLED=1\nAPI=x\n",
    "env.sample": "CODEX_SANDBOX=docker\nCODEX_SANDBOX_NETWORK_DISABLED=0\nn=1\nm=seatbelt\n",
    "notes.md": "# Notes\nCODEX_SANDBOX=seatbelt means macOS\nn=seatbelt\nnet=1\n",
    "rollout.jsonl": (
        '{"output": "CODEX_THREAD_ID=abc\\nCODEX_SANDBOX=seatbelt\\nCODEX_SANDBOX_NETWORK_DISABLED=1"}\n'
    ),
    "probe.sh": "#!/bin/sh\nenv | grep CODEX\n",
    "printer.sh": "#!/bin/sh\necho CODEX_SANDBOX=seatbelt\necho n=1\necho net=1\necho 1\necho seatbelt\n",
    "src/a.py": "CODEX_SANDBOX = 'seatbelt'\n# CODEX_SANDBOX=seatbelt\nCODEX_SANDBOX=seatbelt\n",
}


def generate(seed: int, n: int) -> list[Probe]:
    """Return `n` probes; the same seed gives the same scripts and environments."""
    rng = random.Random(seed)
    drafts: list[tuple[int, Draft, str, dict[str, str]]] = []
    for number in range(n):
        draft = Draft(shell=rng.choice(SHELLS), flags=_flags(rng))
        script = Maker(rng, draft).script()
        drafts.append((number, draft, script, environment_of(rng, draft.flags)))
    return _run_all(drafts)


def _run_all(drafts: list[tuple[int, Draft, str, dict[str, str]]]) -> list[Probe]:
    with tempfile.TemporaryDirectory(prefix="agentdash-probes-") as folder, ThreadPoolExecutor(4) as pool:
        return list(pool.map(lambda draft: _run(Path(folder), *draft), drafts))


def _flags(rng: random.Random) -> dict[str, str]:
    network = rng.choices(("1", None, "0", "", "true"), (45, 40, 5, 5, 5))[0]
    sandbox = rng.choices(("seatbelt", None, "other", "", "docker", "1"), (40, 42, 6, 4, 5, 3))[0]
    return {name: value for name, value in ((NETWORK, network), (SANDBOX, sandbox)) if value is not None}


def environment_of(rng: random.Random, flags: dict[str, str]) -> dict[str, str]:
    """Return an environment with some flags; the same numbers give the same others, in the same order."""
    extras = {
        "CODEX_HOME": "/home/dev/.codex",
        "CODEX_THREAD_ID": "0199-abc",
        "CODEX_CI": "1",
        "NOTE": "see CODEX_SANDBOX=seatbelt",
        "TEXT": "two\nlines = here",
        "USER": "dev",
        "LESS": "-R",
        "EMPTY": "",
        "COLON": "a=b=c",
        "http_proxy": "http://127.0.0.1:3128",
    }
    chosen = {name: value for name, value in extras.items() if rng.random() < 0.4}
    environment = {
        "PATH": f"{Path(sys.executable).resolve().parent}:{os.environ['PATH']}",  # past slow wrappers
        "HOME": "/tmp",
        "LANG": rng.choice(("C.UTF-8", "C")),
        **chosen,
        **dict.fromkeys(FLAG_VALUES),
    }
    names = list(environment)
    rng.shuffle(names)
    found = {name: flags.get(name, environment[name]) for name in names}
    return {name: value for name, value in found.items() if value is not None}


def _run(folder: Path, number: int, draft: Draft, script: str, environment: dict[str, str]) -> Probe:
    output, code = run_script(draft.shell, script, environment, folder / str(number))
    return Probe(
        number=number,
        script=script,
        shell=draft.shell,
        flags=draft.flags,
        output=output,
        exit_code=code,
        forms=tuple(draft.forms),
        shown=frozenset(() if draft.hostile else draft.shown),
    )


def run_script(shell: str, script: str, environment: dict[str, str], scratch: Path) -> tuple[str, int]:
    """Run a script in a folder made for it; return what it writes, and its exit code."""
    for name, text in FILES.items():
        path = scratch / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    try:
        done = subprocess.run(
            [shell, "-c", script],
            env=environment,
            cwd=scratch,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=20,
            check=False,
        )
        return done.stdout.decode(errors="replace"), done.returncode
    except subprocess.TimeoutExpired as error:
        return (error.stdout or b"").decode(errors="replace"), 124
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


TRUTHS: tuple[dict[str, str], ...] = (
    {NETWORK: "1", SANDBOX: "seatbelt"},
    {},
    {NETWORK: "1"},
    {SANDBOX: "seatbelt"},
    {NETWORK: "", SANDBOX: ""},
    {NETWORK: "0", SANDBOX: "docker"},
)
"""Environments in which each typed script is run."""


def run_typed(scripts: Iterable[Typed], *, path: str = "") -> Iterator[Probe]:
    """Run each script alone, in each of its shells and under each truth; `path` is its `PATH`."""
    rng = random.Random(1)
    drafts: list[tuple[int, Draft, str, dict[str, str]]] = []
    for typed in scripts:
        for shell in ("bash", "zsh", "dash") if typed.shell == "any" else (typed.shell,):
            for flags in TRUTHS:
                shown = {name for name in typed.shown if name in flags or not typed.needs_value}
                draft = Draft(shell=shell, flags=flags, shown=shown, forms=[typed.subject])
                environment = environment_of(rng, flags)
                environment["PATH"] = path or environment["PATH"]
                drafts.append((len(drafts), draft, typed.script, environment))
    yield from _run_all(drafts)


def main() -> None:
    """Print what is read of probes, and what is missed."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--seeds", type=int, default=1, help="number of seeds, from --seed on")
    parser.add_argument("--probes", type=int, default=1_000, help="probes of each seed")
    parser.add_argument("--typed", action="store_true", help="run the typed scripts, each alone")
    parser.add_argument("--misses", type=int, default=5, help="number of misses that are printed")
    given = parser.parse_args()
    total = Comparison()
    for seed in range(given.seed, given.seed + given.seeds):
        for probe in run_typed(typed_scripts()) if given.typed else generate(seed, given.probes):
            total.add(probe)
        print(f"seed {seed}: {total}", flush=True)  # noqa: T201 - run by hand
    for each in (*total.wrong, *total.missed[: given.misses]):
        print(f"\n{each}")  # noqa: T201


if __name__ == "__main__":
    main()
