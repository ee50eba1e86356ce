"""What a command's output says of its environment and of itself: the sandbox flags that it printed, and its line in the kernel's books.

Only a command that prints its own environment, or its own `/proc/self/status`, is believed: `env`, `printenv`, `set`, `export -p`,
`echo`/`printf` of the variables, also through a label (`echo "flag=${CODEX_SANDBOX_NETWORK_DISABLED:-}"` -> `flag=1`), and Python or Node
one-liners. Text that merely contains the names (a file that was shown, a grep over sources) is not.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, Literal

import msgspec

from agentdash.engine.detect.shell import statements
from agentdash.model.fleet import UNSET

NETWORK_FLAG: Final = "CODEX_SANDBOX_NETWORK_DISABLED"
SANDBOX_FLAG: Final = "CODEX_SANDBOX"

_DUMPERS: Final = frozenset(("env", "printenv", "set", "export", "declare", "typeset"))
_ELSEWHERE: Final = frozenset(("ssh", "docker", "podman", "sudo", "su", "kubectl", "nsenter", "chroot"))
"""Commands that give what follows an environment of another place."""
_ASSIGNED = r"(?:^|[\s;&|(])(?:export\s+)?{0}=|\bunset\b[^;&|\n]*\b{0}\b|-u\s*{0}\b"
_VALUE = r"""^\s*(?:declare -x |export )?['"]?{0}['"]?\s*(?:=|:\s)\s*['"]?(?P<value>[^'"\s,]*)"""
_TRUNCATED: Final = ("tokens truncated", "characters left out", "chars truncated", "output truncated")
_CODE: Final = (
    r"os\.(?:environ\.get|getenv)\(\s*['\"]{0}['\"](?:\s*,\s*['\"](?P<default>[^'\"]*)['\"])?\s*\)|os\.environ\[['\"]{0}['\"]\]",
    r"process\.env(?:\.{0}\b|\[['\"]{0}['\"]\])(?:\s*(?:\|\||\?\?)\s*['\"](?P<default>[^'\"]*)['\"])?",
)
_HOME: Final = re.compile(
    r"^(?:(?:CODEX_)?HOME=|PWD=)?(?:(?P<macos>/Users/)|/home/|/root(?:/|$))", re.MULTILINE
)
_HOMES: Final = ("/Users/", "/home/", "/root")
_DUMPS: Final = re.compile(r"\b(?:env|printenv|set|export|declare|typeset)\b")
_NOTHING: Final = frozenset(("", "None", "undefined", "null", "nil"))


_OWN_STATUS: Final = re.compile(r"/proc/(?:self|\$\$|\$BASHPID)/status")
_SECCOMP: Final = re.compile(r"^\s*Seccomp:\s+([012])\s*$", re.MULTILINE)
_NO_NEW_PRIVS: Final = re.compile(r"^\s*NoNewPrivs:\s+([01])\s*$", re.MULTILINE)


class Restraints(msgspec.Struct, frozen=True):
    """What `/proc/self/status` said when a command printed it; None where it did not show."""

    seccomp: int | None = None
    no_new_privs: bool | None = None

    def __bool__(self) -> bool:
        return self.seccomp is not None or self.no_new_privs is not None

    @property
    def sandboxed(self) -> bool | None:
        """False where nothing restrains it: every sandbox of Codex on Linux sets no_new_privs. What sets it cannot be told from this."""
        return False if self.no_new_privs is False and self.seccomp == 0 else None

    @property
    def quote(self) -> str:
        """The lines, on one."""
        told = (
            ("Seccomp", self.seccomp),
            ("NoNewPrivs", None if self.no_new_privs is None else int(self.no_new_privs)),
        )
        return " ".join(f"{name}: {value}" for name, value in told if value is not None)


class Flags(msgspec.Struct, frozen=True):
    """The two flags as printed: a value, `unset`, or None where the command did not show it."""

    network: str | None = None
    sandbox: str | None = None
    quote: str = ""

    def __bool__(self) -> bool:
        return self.network is not None or self.sandbox is not None


def flags(command: str, output: str, thread: str | None = None) -> Flags:
    """The flags that `command` printed into `output`.

    Args:
        command: the shell script as the model gave it.
        output: what it printed, without Codex's own header lines.
        thread: the thread's id: an output that shows `CODEX_THREAD_ID` with it vouches for itself, whatever printed it.
    """
    vouched = thread is not None and f"CODEX_THREAD_ID={thread}" in output
    if not vouched and SANDBOX_FLAG not in command and not _DUMPS.search(command):
        return Flags()
    found = [_one(name, command, output, vouched) for name in (NETWORK_FLAG, SANDBOX_FLAG)]
    quotes = dict.fromkeys(quote for _, quote in found if quote)
    return Flags(found[0][0], found[1][0], "; ".join(quotes))


def restraints(command: str, output: str) -> Restraints:
    """The kernel's words about itself that `command` printed into `output`."""
    if not _OWN_STATUS.search(command):
        return Restraints()
    seccomp, privs = _SECCOMP.search(output), _NO_NEW_PRIVS.search(output)
    return Restraints(int(seccomp[1]) if seccomp else None, privs[1] == "1" if privs else None)


def platform(text: str) -> Literal["linux", "darwin"] | None:
    """Which system a working directory, or an output that shows `HOME` or `CODEX_HOME`, belongs to."""
    if not any(place in text for place in _HOMES):  # a hundred times as fast, and true of most outputs
        return None
    match = _HOME.search(text)
    if not match:
        return None
    return "darwin" if match["macos"] else "linux"


def _one(name: str, command: str, output: str, vouched: bool) -> tuple[str | None, str]:
    if any(way in command for way in (f"{name}=", "unset", "-u")) and re.search(
        _ASSIGNED.format(name), command
    ):
        return None, ""
    for poll in (_labelled, _coded, _dumped):
        if (hit := poll(name, command, output)) is not None:
            return hit
    return (_listed(name, output) if vouched else None) or (None, "")


# ---------------------------------------------------------------- echo and printf


def _labelled(name: str, command: str, output: str) -> tuple[str, str] | None:
    if name not in command:
        return None
    said = statements(command)
    if any(s[0] in _ELSEWHERE for s in said):
        return None
    echoes = [s for s in said if s[0] in ("echo", "printf")]
    templates = {
        number: template
        for number, words in enumerate(echoes)
        if (template := _template(words, name)) is not None
    }
    lines = output.splitlines() if templates else []
    in_step = len(echoes) == len(said) == len(lines)
    for number, (pattern, default, bare) in templates.items():
        for line in [lines[number]] if in_step else [] if bare and len(lines) != 1 else lines:
            if (match := pattern.fullmatch(line)) and not (value := match["value"].strip()).startswith("$"):
                return (UNSET if value in ("", default) else value), line.strip()
    return None


@lru_cache(512)
def _template(words: tuple[str, ...], name: str) -> tuple[re.Pattern[str], str | None, bool] | None:
    """A pattern of the line that an `echo` or `printf` of the variable prints, its default text, and whether nothing else is on it."""
    if words[0] == "printf":
        pieces = re.split(r"%\w", words[1] if len(words) > 1 else "")
        args = [*words[2:], *[""] * len(pieces)]
        text = "".join(
            piece + (arg if i < len(pieces) - 1 else "")
            for i, (piece, arg) in enumerate(zip(pieces, args, strict=False))
        )
    else:
        text = " ".join(w for i, w in enumerate(words[1:]) if not (i == 0 and re.fullmatch(r"-[neE]+", w)))
    text = text.replace("\\n", "\n")
    line = next((part for part in text.split("\n") if re.search(rf"\${{?{name}\b(?!_)", part)), None)
    if line is None:
        return None
    default, bare = None, True
    out = ""
    for piece in re.split(r"(\$\{\w+[^}]*\}|\$\w+|\$\([^)]*\))", line):
        variable = re.fullmatch(r"\$\{?(\w+)(?::?([-+])([^}]*))?\}?", piece)
        if variable and variable[1] == name and "(?P<value>" not in out:
            if variable[2] == "+":
                return None
            default = variable[3]
            out += "(?P<value>.*?)"
        elif piece.startswith("$"):
            out, bare = out + ".*?", False
        elif piece:
            out, bare = out + re.escape(piece), bare and not piece.strip()
    return re.compile(r"\s*" + out.strip() + r"\s*"), default, bare


# ---------------------------------------------------------------- Python and Node one-liners


def _coded(name: str, command: str, output: str) -> tuple[str, str] | None:
    if name not in command:
        return None
    for pattern in _CODE:
        call = rf"(?:print|console\.log)\((?P<before>[^\n;]*?)(?:{pattern.format(name)})(?P<after>[^\n;]*?)\)(?=[\s;\"']|$)"
        if not (match := re.search(call, command)):
            continue
        label = re.findall(r"['\"`]([^'\"`{}$]+)['\"`{$]", match["before"])
        start = label[-1].strip() if label else ""
        for line in output.splitlines():
            if start and not line.strip().startswith(start):
                continue
            if not start and len(output.split()) != 1:
                continue
            rest = line.strip()[len(start) :].strip().strip("'\"")
            value = rest.split()[0] if rest else ""
            return (UNSET if value in _NOTHING or value == match["default"] else value), line.strip()
    return None


# ---------------------------------------------------------------- dumps of the whole environment


def _dumped(name: str, command: str, output: str) -> tuple[str, str] | None:
    said = statements(command)
    if any(s[0] in _ELSEWHERE or s[:2] == ("env", "-i") for s in said):
        return None
    for number, words in enumerate(said):
        if words[0] not in _DUMPERS or (words[0] == "env" and len(words) > 1):
            continue
        if words[0] in ("set", "export", "declare", "typeset") and any(
            not w.startswith("-") for w in words[1:]
        ):
            continue
        if words[0] == "printenv" and len(words) > 1:
            return _asked(name, words[1:], output) if name in words else None
        if listed := _listed(name, output):
            return listed
        filters = [
            w
            for s in said[number + 1 :]
            if s[0] in ("grep", "egrep", "rg")
            for w in s[1:]
            if not w.startswith("-")
        ]
        shown = any(_matches(f, f"{name}=1") for f in filters) if filters else "PATH=" in output
        if shown and not _is_truncated(output):
            return UNSET, f"{name} is not among what `{' '.join(words)}` printed"
    return None


def _is_truncated(output: str) -> bool:
    text = output.lower()
    return any(words in text for words in _TRUNCATED)


def _asked(name: str, names: tuple[str, ...], output: str) -> tuple[str, str] | None:
    lines = output.splitlines()
    if len(names) == 1 and len(lines) <= 1:
        return (
            (lines[0].strip(), f"{name}={lines[0].strip()}")
            if lines
            else (UNSET, f"printenv {name} printed nothing")
        )
    return None


def _listed(name: str, output: str) -> tuple[str, str] | None:
    if name not in output:
        return None
    match = re.search(_VALUE.format(name) + ".*$", output, re.MULTILINE)
    if not match or match["value"].startswith("$"):
        return None
    return match["value"] or UNSET, match[0].strip()


def _matches(pattern: str, line: str) -> bool:
    try:
        return re.search(pattern.replace("\\|", "|"), line, re.IGNORECASE) is not None
    except re.error:
        return pattern in line
