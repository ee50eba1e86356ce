"""What an output proves about the sandbox flags of the command's own environment, and what it does not."""

import pytest

from agentdash.engine.detect import restraints
from agentdash.model.observation import UNSET
from agentdash.sandbox.flags import read_flags

NET = "CODEX_SANDBOX_NETWORK_DISABLED"
SB = "CODEX_SANDBOX"
HOME = "HOME=/home/dev\nPATH=/bin\n"
BOTH = f"{HOME}{NET}=1\n{SB}=seatbelt\n"
FLAGS = f"{NET}=1\n{SB}=seatbelt\n"
PROBE = (
    'echo "role=${ROLE:-solo}"; echo "flag=${CODEX_SANDBOX_NETWORK_DISABLED:-}"; '
    'echo "sandbox=${CODEX_SANDBOX:-}"; echo "thread=${CODEX_THREAD_ID:-}"'
)

Expected = tuple[str | None, str | None]
SET: Expected = ("1", "seatbelt")
CLEAN: Expected = (UNSET, UNSET)
NOTHING: Expected = (None, None)


def read(script: str, output: str, exit_code: int | None = None) -> Expected:
    flags = read_flags(script, output, exit_code=exit_code)
    return flags.network, flags.sandbox


# ---------------------------------------------------------------- what is read


@pytest.mark.parametrize(
    ("script", "when_set", "when_clean"),
    [
        ("env", BOTH, HOME),
        ("/usr/bin/env | grep CODEX", FLAGS, ""),
        ("env | egrep 'CODEX|SANDBOX'", FLAGS, ""),
        ("env | grep ^CODEX", FLAGS, "CODEX_HOME=/x\n"),
        ("bash -lc 'env | sort'", BOTH, HOME),
        (f'printf "net=%s sb=%s\\n" "${NET}" "${SB}"', "net=1 sb=seatbelt\n", "net= sb=\n"),
        (PROBE, "role=solo\nflag=1\nsandbox=seatbelt\nthread=a\n", "role=solo\nflag=\nsandbox=\nthread=a\n"),
        (f"printenv {NET} {SB}", "1\nseatbelt\n", None),
        (f"cat <<EOF\nnet=${NET}\nsb=${SB}\nEOF\n", "net=1\nsb=seatbelt\n", "net=\nsb=\n"),
        (
            f'if [ -n "${NET}" ]; then echo "n ${NET}"; else echo no; fi\n'
            f'test -z "${SB}" && echo none || echo "s ${SB}"',
            "n 1\ns seatbelt\n",
            "no\nnone\n",
        ),
        # the mixed scripts of models
        (
            "uname -a; id; env | grep CODEX; curl -sS https://example.com",
            f"Linux x\nuid=0(root)\n{FLAGS}curl: (6) Could not resolve host: example.com\n",
            "Linux x\nuid=0(root)\ncurl: (6) Could not resolve host: example.com\n",
        ),
        (
            f'set -eu\n\n# look\necho "net=${{{NET}:-}}"   # one\necho "sb=${{{SB}:-}}"\n',
            "net=1\nsb=seatbelt\n",
            "net=\nsb=\n",
        ),
        (f'echo "n=${NET} s=${SB}" >&2', "n=1 s=seatbelt\n", "n= s=\n"),
    ],
)
def test_what_is_read(script: str, when_set: str | None, when_clean: str | None) -> None:
    """None: this script does not prove it."""
    outputs = [
        (output, truth) for output, truth in ((when_set, SET), (when_clean, CLEAN)) if output is not None
    ]
    assert [read(script, output) for output, _ in outputs] == [truth for _, truth in outputs] != []


# ---------------------------------------------------------------- what proves nothing


@pytest.mark.parametrize(
    ("script", "output", "exit_code"),
    [
        # dumps that are not whole, or did not run
        ("env | grep -c CODEX", "10\n", 0),
        ("env | rg CODEX 2>/dev/null || true", "", 0),
        ("env | grep -v CODEX", HOME, 0),
        ("env | grep CODEX | head -1", "CODEX_HOME=/x\n", 0),
        # what a filter has passed on has its pattern: another line is the error of something else
        ("env | grep ^CODEX", "something went wrong\n", 0),
        ("env | grep ^CODEX | sort", f"HOME=/x\n{FLAGS}", 0),
        ("env", "bash: env: command not found\n", 127),
        ("env", "HOME=/home/dev\n… 12 tokens truncated …\nPATH=/bin\n", 0),
        ("false && env | grep CODEX", "", 1),
        ("env -i env | grep CODEX", "", 1),
        ("sleep 9 & env | grep CODEX &", "", 0),
        ("env() { :; }; env | grep CODEX", "", 1),
        (f"unset {NET} {SB}; env | grep CODEX", "", 1),
        # derived values
        (f"node -e 'console.log(process.env.{SB})'", "seatbelt\n", 0),
        ("env > a.txt && cat a.txt", FLAGS, 0),
        (f'echo "sb=${{{SB}:+seatbelt}}"', "sb=seatbelt\n", 0),
        (f'echo "${{{SB}:0:6}}"', "seatbe\n", 0),
        ("env | sed 's/=.*/=<redacted>/' | grep CODEX", f"{NET}=<redacted>\n{SB}=<redacted>\n", 0),
        (f'[ "${SB}" = other ] && echo seatbelt', "seatbelt\n", 0),
        (f'echo "n=\\${NET}"', f"n=${NET}\n", 0),
        (f"echo {NET}=1", f"{NET}=1\n", 0),
        (f'echo "n=${NET}"', "n=true\n", 0),
        # variables that may have lines which look like a flag's
        ("NOTE=$(cat .env) env", BOTH, 0),
        ("export NOTE=$(cat .env); bash -c 'env | sort'", BOTH, 0),
        (f'x+=${{{SB}:=seatbelt}}; echo "s=${SB}"', "s=seatbelt\n", 0),
    ],
)
def test_what_proves_nothing(script: str, output: str, exit_code: int) -> None:
    assert read(script, output, exit_code) == NOTHING


@pytest.mark.parametrize(
    ("script", "output", "expected"),
    [
        (f'echo "sb: ${{{SB}:-not set}}"', "sb: not set\n", (None, UNSET)),
        (f'echo "${{{SB}-unset}}"', "unset\n", (None, UNSET)),
        (f"printenv {NET}", "", (UNSET, None)),
        (f"printenv {NET}", "1\n", ("1", None)),
        ("env | grep CODEX_SANDBOX_NET", "", (UNSET, None)),
        (f'test -z "${NET}" && echo empty || echo there', "empty\n", (UNSET, None)),
        # set to nothing
        ("env", f"{HOME}{SB}=\n", (UNSET, None)),
        (f'echo "s=${SB}"', "s=\n", (None, UNSET)),
    ],
)
def test_bare_values_and_defaults(script: str, output: str, expected: Expected) -> None:
    assert read(script, output) == expected


# ---------------------------------------------------------------- text from elsewhere


@pytest.mark.parametrize(
    ("script", "output"),
    [
        ("cat .env", FLAGS),
        (f"{SB}=seatbelt {NET}=1 env", BOTH),
        (f"export {SB}=seatbelt {NET}=1; env", BOTH),
        ("export $(cat .env | xargs); env | grep CODEX", FLAGS),
        (f'for {SB} in seatbelt; do echo "s=${SB}"; done', "s=seatbelt\n"),
        (f"echo seatbelt | read {SB}; echo s=${SB}", "s=seatbelt\n"),
        (f'echo "n=${NET}"; echo "n=${SB}"; cat .env', "n=\nn=\nn=1\n"),
    ],
)
def test_text_from_elsewhere_proves_no_value(script: str, output: str) -> None:
    flags = read_flags(script, output)
    assert flags.network != "1"
    assert flags.sandbox != "seatbelt"


# ---------------------------------------------------------------- quotes


@pytest.mark.parametrize(
    ("script", "output", "quote"),
    [
        (PROBE, "role=solo\nflag=1\nsandbox=\nthread=abc\n", "flag=1; sandbox="),
        ("env | grep CODEX", f"{SB}=seatbelt\n", f"{NET} is not in what it printed; {SB}=seatbelt"),
        (f"echo ${NET}", "1\n", "1"),
        (f'echo "sb: ${{{SB}:-none}}"', "sb: none\n", "sb: none"),
        ("cat .env", FLAGS, ""),
    ],
)
def test_the_quote_is_the_line_that_shows_it(script: str, output: str, quote: str) -> None:
    assert read_flags(script, output).quote == quote


# ---------------------------------------------------------------- the own process's status

STATUS = "Name:\tcat\nNoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t1\n"


@pytest.mark.parametrize(
    ("script", "output", "shown"),
    [
        ("cat /proc/self/status", STATUS, (2, True)),
        ("ls /tmp && grep -E 'Seccomp|NoNewPrivs' /proc/self/status; sleep 1", STATUS, (2, True)),
        ("cat /proc/self/status", "Seccomp: much\n", (None, None)),
        ("cat /proc/self/status", STATUS + "Seccomp:\t0\n", (None, True)),
        ("cat /proc/1/status; grep Pid /proc/self/status", STATUS, (None, None)),
        ("echo 'cat /proc/self/status'", STATUS, (None, None)),
        ("echo 'Seccomp: 2'; cat /proc/self/status", STATUS, (None, None)),
        ("cat notes.txt; cat /proc/self/status >/dev/null", STATUS, (None, None)),
        ("cat notes.txt /proc/self/status", STATUS, (None, None)),
        ("ssh build cat /proc/self/status", STATUS, (None, None)),
        ("git log; cat /proc/self/status", STATUS, (None, None)),
        ("cat /proc/self/status | tail -3", STATUS, (None, None)),
    ],
)
def test_own_process_status(script: str, output: str, shown: tuple[int | None, bool | None]) -> None:
    assert restraints(script, output) == shown


# ---------------------------------------------------------------- bounds

LONG = "a" * 10_000


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    ("script", "output"),
    [
        (f"env | grep -E '{'|'.join('ab' * 200)}'", f"{LONG}\n"),
        ("cat x; echo $CODEX_SANDBOX$CODEX_SANDBOX; cat y", "a " * 30_000),
        ("cat x; " + "printf %s%s $CODEX_SANDBOX $CODEX_SANDBOX_NETWORK_DISABLED; " * 30, "q\n" * 30_000),
        ("uname || " * 200 + "env", HOME),
        ("env", "sh:" * 20_000 + " error\n"),
        ("env\n" * 2_000, HOME),
    ],
    ids=range(6),
)
def test_what_takes_too_long_is_not_read(script: str, output: str) -> None:
    assert not read_flags(script, output, exit_code=0)
