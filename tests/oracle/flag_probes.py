"""Probes: scripts that look at the sandbox flags, really run under known environments, and what is read.

`generate(seed, n)` makes random probes, `run_kept(kind, seed)` runs those of `flag_scripts.txt`. What is
read of them must never contradict the flags.

    python -m tests.oracle.flag_probes --seed 1 --count 1000    # prints how much is read, and what is wrong
"""

import argparse
import os
import random
import re
import shlex
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

NETWORK = "CODEX_SANDBOX_NETWORK_DISABLED"
SANDBOX = "CODEX_SANDBOX"
NAMES = (NETWORK, SANDBOX)
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


Draft = tuple[str, dict[str, str], str]
"""A shell, the flags in its environment, and a script."""


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


# ---------------------------------------------------------------- scripts


def kept_scripts(kind: str) -> list[str]:
    """Return the scripts of `flag_scripts.txt` of a kind: `hostile` or `typed`."""
    blocks = Path(__file__).with_name("flag_scripts.txt").read_text().split("\n%% ")[1:]
    parts = (block.partition("\n") for block in blocks)
    return [script.rstrip("\n") for header, _, script in parts if header == kind]


GRAMMAR: dict[str, tuple[str, ...]] = {
    "VALUE": ("seatbelt", "1", "other", "0", ""),
    "LABEL": ("net=", "flag: ", "sandbox is ", "[", "  x -> ", "A=", "value:", "=== ", "n:"),
    "DEFAULT": ("", "unset", "none", "<unset>", "(not set)", "-", "no", "off", "MISSING", "n/a"),
    "PARAMETER": ("$@NAME", "${@NAME}", "${@NAME-@DEFAULT}", "${@NAME:-@DEFAULT}", "${@NAME:-@DEFAULT}"),
    "FIELD": (
        "@LABEL@PARAMETER",
        "@LABEL@PARAMETER",
        "@LABEL@PARAMETER]",
        "@LABEL@PARAMETER .",
        "@LABEL@PARAMETER (done)",
    ),
    "PATH": ("out.txt", "/tmp/agentdash-probe-$$", "./e", '"$PWD/env.out"'),
    # a whole dump, plain filters behind it
    "DUMPER": (
        *("env", "env", "printenv", "/usr/bin/env", "command env", "timeout 10 env", "export -p", "set"),
        *("env -0 | tr '\\0' '\\n'", "tr '\\0' '\\n' </proc/$$/environ", "xargs -0 -n1 </proc/$$/environ"),
        "cat /proc/self/environ | tr '\\0' '\\n'",
    ),
    "SORT": ("", "", "", " | sort", "|sort", " | sort -u", " | LC_ALL=C sort", " | cat", " | sort -r"),
    "GREP": ("grep", "grep", "grep -E", "egrep", "grep -i", "grep --color=never"),
    "PATTERN": (
        *("CODEX", "CODEX_", "CODEX_SANDBOX", "SANDBOX", "NETWORK_DISABLED", "CODEX_SANDBOX_NETWORK"),
        *("CODEX_SANDBOX=", f"{NETWORK}="),
    ),
    "FILTER": ("", " | @GREP @PATTERN", " | @GREP '@PATTERN'", ' | @GREP "@PATTERN"'),
    "ANYWAY": ("", "", "", "", " || true", " || echo none", " || :", " 2>/dev/null", " 2>&1"),
    # documented forms
    "DOCUMENTED": (
        *("@DUMPER@SORT@FILTER@SORT@ANYWAY",) * 8,
        'echo "@FIELD"',
        'echo "@FIELD @FIELD"',
        'echo "@FIELD"\necho "@FIELD"',
        "printf '@LABEL%s\\n' \"@PARAMETER\"",
        "cat <<EOF\n@FIELD\n@FIELD\nEOF\n",
        "printenv @NAME || echo none",
        "printenv '@NAME'",
        'echo "v=$(printenv @NAME)"',
        *(
            f'if @TEST; then echo "set to {sign}"; else echo "not set"; fi'
            for sign in ("$@NAME", "${@NAME:-}")
        ),
        'if [ -z "${@NAME:-}" ]; then echo absent; else echo "there: $@NAME"; fi',
        *('@TEST && echo "it is $@NAME" || echo missing', '@TEST && printf "%s\\n" "v=$@NAME"'),
        'case "${@NAME:-}" in "") echo empty;; *) echo "val=$@NAME";; esac',
        "env > @PATH; grep CODEX @PATH",
        "env | sort > @PATH && cat @PATH",
        "env | tee e | grep CODEX_SANDBOX",
        'f=$(mktemp); env > "$f"; grep CODEX "$f"; rm -f "$f"',
        'show() { echo "v=${@NAME:-unset}"; }\nshow',
        'dump() {\n  env | grep "^@NAME="\n}\ndump || echo none',
        'show() { printf "%s=%s\\n" "$1" "$2"; }; show @NAME "$@NAME"',
    ),
    "TEST": ('[ -n "$@NAME" ]', '[ -n "${@NAME:-}" ]', 'test -n "${@NAME-}"'),
    "BASH": (
        "declare -x@FILTER",
        'cat <<< "@FIELD @FIELD"',
        *(
            f'for v in {" ".join(NAMES)}; do printf {form} "$v" @VIA; done'
            for form in ("'%s=%s\\n'", '"%s -> %s\\n"')
        ),
        f'for v in {" ".join(NAMES)}; do echo "$v=${{!v:-}}"; done',
    ),
    "VIA": ('"${!v}"', '"${!v:-}"', '"${!v:-<unset>}"'),
    # commands of which no line can look like a flag's
    "QUIET": (
        *("uname -a", "id", "pwd", "ls -la /tmp | head -3", 'echo "--- env"', "echo", "true", "mkdir -p d"),
        *("curl -sS --max-time 2 http://127.0.0.1:9/ || true", "cat /etc/os-release | head -2", "cd ."),
        *("grep -E 'Seccomp|NoNewPrivs' /proc/self/status", "ls /nonexistent", "echo done >&2"),
        *('echo "home=$HOME user=${USER:-}"', "wc -l notes.md", "date +%s > stamp", 'echo "rc=$?"'),
    ),
    # what hides, changes or imitates the flags, and is not in `flag_scripts.txt`
    "HOSTILE": (
        *("grep -rh CODEX_SANDBOX src", "env $(cat .env) env | grep CODEX", "env | grep -v CODEX"),
        *("env > .env; cat .env; cat env.sample", "{ env; cat env.sample; } | sort | grep CODEX"),
        *("env | rg CODEX || true", "env | grep -n CODEX", "if false; then env | grep CODEX; fi"),
        *('echo "n=${@NAME#s}"', 'echo "n=${@NAME:-${@NAME:-x}}"', '[ "$@NAME" = 1 ] && echo n=1'),
        "python3 -c \"import os; print(os.environ.get('@NAME') == 'seatbelt')\"",
        "python3 -c \"import os; os.environ['@NAME'] = '@VALUE'; print(os.environ.get('@NAME'))\"",
        *("jq -n '{net: env.@NAME}'", "awk 'BEGIN{print length(ENVIRON[\"@NAME\"])}'"),
        *("set -x; echo n=$@NAME; set +x", "export NOTE='x\nCODEX_SANDBOX=seatbelt'; env | grep CODEX"),
        "export @NAME=@VALUE; tr '\\0' '\\n' < /proc/$$/environ | grep CODEX",
        "env @NAME=@VALUE sh -c 'echo n=$@NAME m=$@NAME'",
    ),
    "BETWEEN": ("; ", ";", "\n", "\n", "\n\n", "\n# next\n", " ;\n", " && ", " || "),
    "HEADER": (*("",) * 28, "set -e\n", "set -u\n", "#!/bin/sh\n", "# look\n", "set -eu\n"),
}
"""What each name behind an `@` may stand for."""


class Maker(NamedTuple):
    """Makes scripts for a shell, at random."""

    random: random.Random
    shell: str

    def expand(self, name: str) -> str:
        """Return a statement: mostly about one flag, else about both."""
        flags = (self.random.choice(NAMES),) if self.number(70, 30) == 0 else NAMES
        return self._expand(name, flags)

    def _expand(self, name: str, flags: tuple[str, ...]) -> str:
        chosen = self.random.choice(flags if name == "NAME" else GRAMMAR[name])
        return re.sub(r"@([A-Z]+)", lambda match: self._expand(match[1], flags), chosen)

    def number(self, *weights: int) -> int:
        """Return a number from 0, by its weight."""
        return self.random.choices(range(len(weights)), weights)[0]

    def documented(self) -> str:
        is_bash = self.shell == "bash" and self.number(8, 2) == 1
        text = self.expand("BASH" if is_bash else "DOCUMENTED")
        return self.wrapped(text) if self.number(85, 15) else text

    def wrapped(self, text: str) -> str:
        """Return a statement in a group, a subshell, a substitution, or another shell."""
        body = text if text.endswith("\n") else f"{text}\n"
        shell = "sh" if self.shell == "dash" and "/proc/$$" not in text else self.shell
        ways = [f"{{\n{body}}}", f"(\n{body})", f"{shell} -c {shlex.quote(text)}"]
        ways += [f"timeout 20 {shell} -lc {shlex.quote(text)}"]
        if not any(sign in text for sign in ("<<", "`")):
            ways.append(f'echo "$({text})"')
        if not any(sign in text for sign in ("\n", "|", ";", "2>")):
            ways.append(f"{text} >&2")
        return self.random.choice(ways)

    def script(self) -> str:
        statements = [self.documented() for _ in range(self.number(10, 50, 30, 10))]
        statements += [self.expand("QUIET") for _ in range(self.number(35, 30, 25, 0, 10))]
        hostile = self.number(60, 30, 10) if statements else 1
        statements += [self.expand("HOSTILE") for _ in range(hostile)]
        self.random.shuffle(statements)
        text = ""
        for statement in statements:
            between = "" if not text or text.endswith("\n") else self.expand("BETWEEN")
            text += f"{between}{statement}"
        if self.number(95, 5):
            text = f"{self.shell} -c {shlex.quote(text)}"
        return self.expand("HEADER") + text


# ---------------------------------------------------------------- runs

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
        shell, flags = rng.choice(SHELLS), {name: value for name, value in named if value is not None}
        drafts.append((shell, flags, Maker(rng, shell).script()))
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
    drafts: list[Draft] = []
    for script in kept_scripts(kind):
        shell = rng.choice(SHELLS)
        drafts += [(shell, flags, script) for flags in rng.sample(TRUTHS, 2)]
    return _run_all(drafts, rng)


def _run_all(drafts: Sequence[Draft], rng: random.Random) -> list[Probe]:
    def run(number: int, draft: Draft, environment: dict[str, str]) -> Probe:
        shell, flags, script = draft
        return Probe(
            number, script, shell, flags, *run_script(shell, script, environment, Path(folder, str(number)))
        )

    with tempfile.TemporaryDirectory(prefix="agentdash-probes-") as folder, ThreadPoolExecutor(4) as pool:
        runs = [
            pool.submit(run, number, draft, environment_of(rng, draft[1]))
            for number, draft in enumerate(drafts)
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
