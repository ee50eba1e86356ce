"""Flags are read from commands that print their own environment, and from nothing else."""

from __future__ import annotations

import pytest

from agentdash.engine.detect.env_output import read_flags
from agentdash.engine.detect.process_status import restraints
from agentdash.model.observation import UNSET

NETWORK = "CODEX_SANDBOX_NETWORK_DISABLED"
SANDBOX = "CODEX_SANDBOX"
SET = f"{NETWORK}=1\n{SANDBOX}=seatbelt\n"
PROBE = 'echo "flag=${CODEX_SANDBOX_NETWORK_DISABLED:-}"; echo "sandbox=${CODEX_SANDBOX:-}"'


def read(script: str, output: str, exit_code: int | None = 0) -> tuple[str | None, str | None]:
    """Return the network flag and the sandbox flag."""
    flags = read_flags(script, output, exit_code=exit_code)
    return flags.network, flags.sandbox


@pytest.mark.parametrize(
    ("script", "output", "network", "sandbox"),
    [
        (PROBE, "flag=1\nsandbox=\n", "1", UNSET),
        (PROBE, "flag=\nsandbox=seatbelt\n", UNSET, "seatbelt"),
        ("env | grep CODEX_SANDBOX_NET", f"{NETWORK}=1\n", "1", None),
        ("env | grep ^CODEX | sort", f"CODEX_HOME=/x\n{NETWORK}=1\n", "1", UNSET),
        ("env", "PATH=/bin\nFOO=1\n", UNSET, UNSET),
        ("env", f"PATH=/bin\n{SET}", "1", "seatbelt"),
        ("export -p", 'declare -x CODEX_SANDBOX="seatbelt"\ndeclare -x PATH="/bin"\n', UNSET, "seatbelt"),
        (f"printenv {NETWORK}", "1\n", "1", None),
        (f'printf "net=%s sb=%s\\n" "${NETWORK}" "${SANDBOX}"', "net=1 sb=seatbelt\n", "1", "seatbelt"),
        (f"echo ${NETWORK}; echo ${SANDBOX}", "1\nseatbelt\n", "1", "seatbelt"),
        (f"echo ${{{SANDBOX}:-unset}}", "unset\n", None, UNSET),
        (f"python3 -c \"import os; print(os.environ.get('{NETWORK}'))\"", "None\n", UNSET, None),
        (f"python3 -c \"import os; print('flag', os.environ.get('{NETWORK}'))\"", "flag 1\n", "1", None),
        (f"node -e 'console.log(process.env.{SANDBOX})'", "undefined\n", None, UNSET),
        (f"set -euo pipefail\n# flags\necho n=${{{NETWORK}:-}}\n", "n=1\n", "1", None),
        (f"printenv {NETWORK}; printenv {SANDBOX}", "1\nseatbelt\n", "1", "seatbelt"),
        ("bash -lc 'env | grep CODEX_SANDBOX'", SET, "1", "seatbelt"),
        ("/usr/bin/env | grep CODEX_SANDBOX | sort", SET, "1", "seatbelt"),
        ("timeout 10 env", f"PATH=/bin\n{SET}", "1", "seatbelt"),
        ("uname\nenv | grep CODEX_SANDBOX\nid", f"Linux\n{SET}uid=0(root)\n", "1", "seatbelt"),
        (f"cat <<EOF\nn=${NETWORK}\nEOF\n", "n=1\n", "1", None),
    ],
)
def test_shown_flags(script: str, output: str, network: str | None, sandbox: str | None) -> None:
    assert read(script, output) == (network, sandbox)


@pytest.mark.parametrize(
    ("script", "output", "exit_code"),
    [
        ("env | grep -c CODEX", "10\n", 0),
        ("env | grep -c ^CODEX_SANDBOX", "1\n", 0),
        ("env | grep -q CODEX_SANDBOX && echo yes", "yes\n", 0),
        ("printenv | grep CODEX | wc -l", "2\n", 0),
        ("env | sed 's/=.*//' | grep CODEX", f"{NETWORK}\n", 0),
        ("env | rg CODEX", "bash: rg: command not found\n", 127),
        ("env | rg CODEX || true", "bash: rg: command not found\n", 0),
        ("env | grep -v CODEX", "PATH=/bin\n", 0),
        ("env | head -5", "PATH=/bin\nHOME=/root\n", 0),
        ("env | sort | tail -5", "USER=dev\n_=/usr/bin/env\n", 0),
        ("env | wc -l", "23\n", 0),
        ("env >/dev/null && echo yes", "yes\n", 0),
        ("env | grep CODEX | head -1", "CODEX_HOME=/x\n", 0),
        ("env | grep -i proxy", "http_proxy=x\n", 0),
    ],
)
def test_filtered_dumps_show_no_absence(script: str, output: str, exit_code: int) -> None:
    """truth: the flags were set; nothing that is printed says that they are not."""
    assert UNSET not in read(script, output, exit_code)


@pytest.mark.parametrize(
    ("script", "output"),
    [
        (f'node -e "console.log(JSON.stringify({{sb: process.env.{SANDBOX}}}))"', "{}\n"),
        (f"node -e 'console.log(!!process.env.{SANDBOX})'", "false\n"),
        (f'node -e \'console.log(process.env.{SANDBOX} ? "boxed" : "free")\'', "free\n"),
        (f"python3 -c \"import os; print(os.environ.get('{SANDBOX}') == 'seatbelt')\"", "False\n"),
        (f"python3 -c \"import os; print(bool(os.environ.get('{SANDBOX}')))\"", "False\n"),
        (f"printf '%q\\n' \"${SANDBOX}\"", "''\n"),
        (f'echo "${{{SANDBOX}:-$(uname)}}"', "Darwin\n"),
        ("env | grep CODEX_SANDBOX | sed 's/=.*/=<redacted>/'", f"{SANDBOX}=<redacted>\n"),
    ],
)
def test_derived_values_are_no_values(script: str, output: str) -> None:
    assert set(read(script, output)) <= {None, UNSET}


@pytest.mark.parametrize(
    ("script", "output"),
    [
        ("set -e; cat .env", SET),
        ("cat env.sample; env | wc -l", f"{SET}23\n"),
        ("cat .env.example && env | sort | head -3", f"{SET}A=1\nB=2\nC=3\n"),
        ("ps eww -p 4321 | tr ' ' '\\n'; env | wc -l", f"{SET}23\n"),
        ("codex exec -s read-only 'env' | tail; env | grep -c x", f"{SET}3\n"),
        ("cat /tmp/env-before.txt", SET),
        ("grep CODEX_ ~/.codex/sessions/a.jsonl", SET),
        ("grep -rn CODEX_SANDBOX src", f"src/a.py: {SANDBOX}=seatbelt\n"),
        ("ssh host env", SET),
        ("docker run x env", SET),
        ("sudo env", SET),
        ("env -i A=1 env", "A=1\n"),
        (f"{SANDBOX}=seatbelt {NETWORK}=1 env | grep CODEX_SANDBOX", SET),
        (f"export {SANDBOX}=x; echo s=${SANDBOX}", "s=x\n"),
        (f"echo 'sb ${SANDBOX}'", f"sb ${SANDBOX}\n"),
        ("./probe.sh", SET),
        ("echo 'env unclosed", SET),
        ("", ""),
    ],
)
def test_text_from_elsewhere_shows_nothing(script: str, output: str) -> None:
    assert read(script, output) == (None, None)


def test_cut_outputs_show_no_absence() -> None:
    assert read("env", "PATH=/bin\n… 12 tokens truncated …\nFOO=1\n") == (None, None)
    assert not read_flags("env", "PATH=/bin\n", truncated=True)


def test_the_quote_is_the_line_that_shows_the_value() -> None:
    assert read_flags(PROBE, "flag=1\nsandbox=\n", exit_code=0).quote == "flag=1; sandbox="
    assert read_flags("env", f"A=1\n{SET}", exit_code=0).quote == SET.strip().replace("\n", "; ")


STATUS = "Name:\tcat\nNoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t1\n"


@pytest.mark.parametrize(
    ("script", "output", "seccomp", "privileges", "sandboxed"),
    [
        ("cat /proc/self/status", STATUS, 2, True, None),
        ("cat /proc/self/status | grep Seccomp", "Seccomp:\t2\n", 2, None, None),
        ("grep -E 'Seccomp|NoNewPrivs' /proc/$$/status", "NoNewPrivs:\t0\nSeccomp:\t0\n", 0, False, False),
        ("grep Seccomp: /proc/self/status; env", "Seccomp:\t2\nPATH=/bin\n", 2, None, None),
        ("cat notes.txt", STATUS, None, None, None),
        ("cat /proc/1/status", STATUS, None, None, None),
        ("cat /proc/1/status; grep Pid /proc/self/status", STATUS, None, None, None),
        ("cat notes.txt # /proc/self/status", STATUS, None, None, None),
        ("echo 'cat /proc/self/status'", STATUS, None, None, None),
        ("docker run x cat /proc/self/status", STATUS, None, None, None),
        ("cat notes.txt; cat /proc/self/status >/dev/null", STATUS, None, None, None),
        ("cat /proc/self/status", "Seccomp: much\n", None, None, None),
    ],
)
def test_own_process_status(
    script: str, output: str, seccomp: int | None, privileges: bool | None, sandboxed: bool | None
) -> None:
    found = restraints(script, output)
    assert (found.seccomp, found.no_new_privs, found.sandboxed) == (seccomp, privileges, sandboxed)
