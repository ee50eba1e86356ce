"""Flags are read from commands that print their environment, and from nothing else."""

from __future__ import annotations

import pytest

from agentdash.engine.detect.env_output import flags, platform, restraints

UNSET = "unset"
PROBE = (
    'echo "role=${ROLE:-solo}"; echo "flag=${CODEX_SANDBOX_NETWORK_DISABLED:-}"; echo "sandbox=${CODEX_SANDBOX:-}"; '
    'echo "thread=${CODEX_THREAD_ID:-}"'
)


@pytest.mark.parametrize(
    ("command", "output", "network", "sandbox"),
    [
        (PROBE, "role=solo\nflag=1\nsandbox=\nthread=abc\n", "1", UNSET),
        (PROBE, "role=child\nflag=\nsandbox=seatbelt\nthread=abc\n", UNSET, "seatbelt"),
        (
            'echo "=== $ROLE ==="\necho "flag=${CODEX_SANDBOX_NETWORK_DISABLED-}"\ncurl x',
            "=== a ===\nflag=1\ncurl: (6) no\n",
            "1",
            None,
        ),
        ("env | grep ^CODEX | sort", "CODEX_HOME=/x\nCODEX_SANDBOX_NETWORK_DISABLED=1\n", "1", UNSET),
        ("env | grep CODEX_SANDBOX", "", UNSET, UNSET),
        ("env | grep CODEX_SANDBOX_NET", "", UNSET, None),
        ("env", "PATH=/bin\nFOO=1\n", UNSET, UNSET),
        ("env", "PATH=/bin\n… 12 tokens truncated …\nFOO=1\n", None, None),
        ("printenv CODEX_SANDBOX_NETWORK_DISABLED", "", UNSET, None),
        ("printenv CODEX_SANDBOX_NETWORK_DISABLED", "1\n", "1", None),
        ("export -p", 'declare -x CODEX_SANDBOX="seatbelt"\ndeclare -x PATH="/bin"\n', UNSET, "seatbelt"),
        ("set", "CODEX_SANDBOX='seatbelt'\nPATH=/bin\n", UNSET, "seatbelt"),
        (
            'printf "net=%s sb=%s\\n" "$CODEX_SANDBOX_NETWORK_DISABLED" "$CODEX_SANDBOX"',
            "net=1 sb=seatbelt\n",
            "1",
            "seatbelt",
        ),
        ("echo $CODEX_SANDBOX_NETWORK_DISABLED", "1\n", "1", None),
        ("echo $CODEX_SANDBOX_NETWORK_DISABLED; echo $CODEX_SANDBOX", "1\nseatbelt\n", "1", "seatbelt"),
        ('echo "${CODEX_SANDBOX:-unset}"', "unset\n", None, UNSET),
        ('echo "${CODEX_SANDBOX:-none} / ${CODEX_SANDBOX_NETWORK_DISABLED:-no}"', "none / 1\n", "1", UNSET),
        (
            "python3 -c \"import os; print('flag', os.environ.get('CODEX_SANDBOX_NETWORK_DISABLED'))\"",
            "flag 1\n",
            "1",
            None,
        ),
        (
            "python3 -c \"import os; print(os.environ.get('CODEX_SANDBOX_NETWORK_DISABLED'))\"",
            "None\n",
            UNSET,
            None,
        ),
        ("node -e 'console.log(process.env.CODEX_SANDBOX)'", "undefined\n", None, UNSET),
        ("./probe.sh", "CODEX_THREAD_ID=abc\nCODEX_SANDBOX=seatbelt\n", None, "seatbelt"),
    ],
)
def test_what_was_printed(command: str, output: str, network: str | None, sandbox: str | None) -> None:
    found = flags(command, output, "abc")
    assert (found.network, found.sandbox) == (network, sandbox)


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("cat notes.md", "CODEX_SANDBOX=seatbelt\nCODEX_SANDBOX_NETWORK_DISABLED=1\n"),
        ("grep -rn CODEX_SANDBOX src", "src/a.py: CODEX_SANDBOX=seatbelt\n"),
        ("ssh host env", "CODEX_SANDBOX=seatbelt\nPATH=/bin\n"),
        ("docker run x env", "CODEX_SANDBOX=seatbelt\nPATH=/bin\n"),
        (
            "CODEX_SANDBOX=1 CODEX_SANDBOX_NETWORK_DISABLED=1 env",
            "CODEX_SANDBOX=1\nCODEX_SANDBOX_NETWORK_DISABLED=1\nPATH=x\n",
        ),
        ("export CODEX_SANDBOX=x; echo s=$CODEX_SANDBOX", "s=x\n"),
        ("echo 'sb $CODEX_SANDBOX'", "sb $CODEX_SANDBOX\n"),
        ("./probe.sh", "CODEX_THREAD_ID=another\nCODEX_SANDBOX=seatbelt\n"),
        ("echo 'unclosed", "CODEX_SANDBOX=1"),
        ("", ""),
    ],
)
def test_what_proves_nothing(command: str, output: str) -> None:
    assert not flags(command, output, "abc")


def test_the_quote_is_the_line_that_says_it() -> None:
    assert flags(PROBE, "role=solo\nflag=1\nsandbox=\n").quote == "flag=1; sandbox="


@pytest.mark.parametrize(
    ("text", "system"),
    [
        ("/home/dev/project", "linux"),
        ("/Users/dev/project", "darwin"),
        ("/root", "linux"),
        ("CODEX_CI=1\nCODEX_HOME=/home/dev/.codex\n", "linux"),
        ("wrote /home/dev/x", None),
        ("/workspace", None),
    ],
)
def test_platform(text: str, system: str | None) -> None:
    assert platform(text) == system


STATUS = "Name:\tcat\nNoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t1\n"


@pytest.mark.parametrize(
    ("command", "output", "seccomp", "privs", "sandboxed"),
    [
        ("cat /proc/self/status", STATUS, 2, True, None),
        ("grep -E 'Seccomp|NoNewPrivs' /proc/$$/status", "NoNewPrivs:\t0\nSeccomp:\t0\n", 0, False, False),
        ("grep Seccomp: /proc/self/status; env", "Seccomp:\t2\nPATH=/bin\n", 2, None, None),
        ("cat notes.txt", STATUS, None, None, None),
        ("cat /proc/1/status", STATUS, None, None, None),
        ("cat /proc/self/status", "Seccomp: much\n", None, None, None),
    ],
)
def test_the_kernels_word_on_itself(
    command: str, output: str, seccomp: int | None, privs: bool | None, sandboxed: bool | None
) -> None:
    found = restraints(command, output)
    assert (found.seccomp, found.no_new_privs, found.sandboxed, bool(found)) == (
        seccomp,
        privs,
        sandboxed,
        (seccomp, privs) != (None, None),
    )
