"""Probes: scripts that look at the sandbox flags, really run under known environments, and what is read.

`generate(seed, n)` makes random probes, `run_kept(kind, seed)` runs those of `flag_scripts.txt`. What is
read of them must never contradict the flags.

    python -m tests.oracle.flag_probes --seed 1 --count 1000    # prints how much is read, and what is wrong
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from agentdash.model.observation import UNSET
from agentdash.sandbox.flags import read_flags
from agentdash.sandbox.flags.parts import OWN
from agentdash.sandbox.flags.reader import consistent_hypotheses
from agentdash.sandbox.flags.state import OTHER
from tests.oracle.flag_scripts import NAMES, NETWORK, SANDBOX, Draft, Maker, kept_scripts

SHELLS = ("bash", "bash", "zsh", "dash")
"""Codex starts the user's shell: mostly bash or zsh."""


class Probe(NamedTuple):
    """A script that was run."""

    number: int
    script: str
    shell: str
    flags: dict[str, str]
    """The flags that were set in its environment."""
    output: str
    exit_code: int

    def __str__(self) -> str:
        head = f"probe {self.number}, {self.shell}, {self.flags}, exit {self.exit_code}"
        return f"{head}\n{self.script}\n-->\n{self.output}"


class Comparison(NamedTuple):
    """What was read of probes, beside what is so."""

    probes: int
    read: int
    """Flags that were read."""
    wrong: list[str]
    """Contradictions of the environment, and true environments that were ruled out while others were not."""

    def __str__(self) -> str:
        return f"{self.probes} probes, {self.read} flags read, {len(self.wrong)} wrong"


def compare(probes: Sequence[Probe], *, shell_is_known: bool = False) -> Comparison:
    """Compare what is read of probes with their environments.

    Args:
        probes: that were run.
        shell_is_known: whether the reader gets the name of the shell, as of `["bash", "-lc", …]`.
    """
    read, wrong = 0, []
    for probe in probes:
        shell = probe.shell if shell_is_known else ""
        flags = read_flags(probe.script, probe.output, shell=shell, exit_code=probe.exit_code)
        left = consistent_hypotheses(probe.script, probe.output, shell=shell, exit_code=probe.exit_code)
        values = ((name, probe.flags.get(name)) for name in NAMES)
        truth = tuple(value if value in (None, "", OWN[name]) else OTHER for name, value in values)
        if left and truth not in left:
            wrong.append(f"the environment is ruled out: {probe}")
        for name, value in ((NETWORK, flags.network), (SANDBOX, flags.sandbox)):
            read += value is not None
            # an empty one counts as unset, as for most scripts
            if value not in (None, probe.flags.get(name) or UNSET):
                wrong.append(f"{name} read as {value}: {probe}")
    return Comparison(len(probes), read, wrong)


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
    drafts = []
    for _ in range(n):
        network = rng.choices(("1", None, "0", "", "true"), (45, 40, 5, 5, 5))[0]
        sandbox = rng.choices(("seatbelt", None, "other", "", "docker", "1"), (40, 42, 6, 4, 5, 3))[0]
        named = ((NETWORK, network), (SANDBOX, sandbox))
        draft = Draft(rng.choice(SHELLS), {name: value for name, value in named if value is not None})
        drafts.append((draft, Maker(rng, draft).script()))
    return _run_all(drafts, rng)


TRUTHS: tuple[dict[str, str], ...] = (
    {NETWORK: "1", SANDBOX: "seatbelt"},
    {},
    {NETWORK: "1"},
    {SANDBOX: "seatbelt"},
    {NETWORK: "", SANDBOX: ""},
    {NETWORK: "0", SANDBOX: "docker"},
)
"""Environments in which each typed script is run."""


def run_kept(kind: str, seed: int) -> list[Probe]:
    """Run the scripts of a kind, each in one shell and under two truths."""
    rng = random.Random(seed)
    drafts: list[tuple[Draft, str]] = []
    for script in kept_scripts(kind):
        shell = rng.choice(SHELLS)
        drafts += [(Draft(shell, flags), script) for flags in rng.sample(TRUTHS, 2)]
    return _run_all(drafts, rng)


def _run_all(drafts: Sequence[tuple[Draft, str]], rng: random.Random) -> list[Probe]:
    def run(number: int, draft: Draft, script: str, environment: dict[str, str]) -> Probe:
        output, code = run_script(draft.shell, script, environment, Path(folder, str(number)))
        return Probe(number, script, draft.shell, draft.flags, output, code)

    with tempfile.TemporaryDirectory(prefix="agentdash-probes-") as folder, ThreadPoolExecutor(4) as pool:
        runs = [
            pool.submit(run, number, draft, script, environment_of(rng, draft.flags))
            for number, (draft, script) in enumerate(drafts)
        ]
        return [each.result() for each in runs]


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
        **dict.fromkeys(NAMES),
    }
    names = list(environment)
    rng.shuffle(names)
    found = {name: flags.get(name, environment[name]) for name in names}
    return {name: value for name, value in found.items() if value is not None}


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


def main() -> None:
    """Run probes of a seed, and print what was read wrong."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=500)
    given = parser.parse_args()
    comparison = compare(generate(given.seed, given.count))
    sys.stdout.write("\n".join((*comparison.wrong, f"seed {given.seed}: {comparison}\n")))


if __name__ == "__main__":
    main()
