"""Which worker CLI a process is, from its argument vector: the `[identify]` tables of `agents/*.toml`.

The first argument decides, not the executable: Codex's sandbox helper is the `codex` binary under another name. Programs run by an
interpreter (`node .../bin/codex`, `python -m aider`, a shell script) are looked up by their script, or by the npm package it lies in.

One agent can be several processes: the node launcher of Codex and the binary below it, or Gemini and its second self. All of them are
identified; who needs one takes the outermost.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import msgspec

Role = Literal["worker", "server", "aside"]
"""`worker`: works on a task, or waits for one. `server`: does so for others, in the background (Codex's app-server). `aside`: a command
of the same program that is no agent (`codex sandbox`, `claude mcp`)."""


class Identify(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How one worker CLI is told apart from everything else."""

    programs: frozenset[str]
    """Names of its program, without directory and extension."""
    packages: frozenset[str] = frozenset()
    """npm packages whose scripts are this program, whatever the script's name."""
    places: tuple[str, ...] = ()
    """Parts of the path of its program or script, where the file's own name says nothing."""
    working: frozenset[str] = frozenset()
    """Commands that make it a worker. Needed only to keep their arguments from being taken for one of the following."""
    serving: frozenset[str] = frozenset()
    """Commands that make it a server."""
    aside: frozenset[str] = frozenset()
    """Commands that make it neither."""
    once: frozenset[str] = frozenset()
    """Arguments that give it one task, with which it ends."""
    keeps_rollouts: bool = False
    """Whether it holds files open that tell which sessions it runs."""

    def role(self, args: Sequence[str]) -> Role:
        """What the program is asked to be: the first argument that is one of its commands says so; without any it works."""
        for arg in args:
            if arg == "--" or arg in self.working:
                break
            if arg in self.serving:
                return "server"
            if arg in self.aside:
                return "aside"
        return "worker"


class Identity(msgspec.Struct, frozen=True):
    """What a process was found to be."""

    agent: str
    """`codex`, `opencode` ...: the name of the TOML file."""
    role: Role
    keeps_rollouts: bool = False
    once: bool = False
    """Whether it was given one task, with which it ends (`opencode run`)."""


class _File(msgspec.Struct, frozen=True):
    identify: Identify


def identify(argv: Sequence[str], exe: str | None = None) -> Identity | None:
    """The worker CLI that a process is part of, or None. A process without arguments (a zombie, another user's) is nothing."""
    if not argv:
        return None
    if (agent := _lookup(argv[0])) is not None:
        return _identity(agent, argv[1:])
    if (interpreter := _interpreter(argv[0]) or _interpreter(exe or "")) is None:
        return None
    at = _script(interpreter, argv)
    return _identity(agent, argv[at + 1 :]) if at and (agent := _lookup(argv[at])) is not None else None


def programs(agent: str) -> frozenset[str]:
    """The names of a worker CLI's program."""
    return _tables()[agent].programs


def _identity(agent: str, args: Sequence[str]) -> Identity:
    rules = _tables()[agent]
    asked = args[: args.index("--")] if "--" in args else args
    return Identity(agent, rules.role(args), rules.keeps_rollouts, not rules.once.isdisjoint(asked))


@cache
def agent_files() -> Mapping[str, Mapping[str, Any]]:
    """What stands in `agents/*.toml`, by the agent's name. Read once: parsing them takes as long as a look at all processes."""
    folder = files("agentdash") / "agents"
    return {
        path.name.removesuffix(".toml"): tomllib.loads(path.read_text("utf-8"))
        for path in sorted(folder.iterdir(), key=lambda p: p.name)
        if path.name.endswith(".toml") and path.name != "any.toml"
    }


@cache
def _tables() -> dict[str, Identify]:
    return {agent: msgspec.convert(said, _File).identify for agent, said in agent_files().items()}


# ---------------------------------------------------------------- programs and scripts

_EXTENSION = re.compile(r"\.(?:[cm]?[jt]s|py|exe)$")
_INTERPRETER = re.compile(r"(node|bun|deno|python|pypy|sh|bash|dash|zsh|ksh)(?:js|[\d.]+)?$")
_SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh"))
_INLINE = {
    "node": frozenset(("-e", "--eval", "-p", "--print", "-pe")),
    "bun": frozenset(("-e", "--eval", "-p", "--print")),
    "deno": frozenset(("eval",)),
    "python": frozenset(("-c",)),
    "pypy": frozenset(("-c",)),
}
"""Options after which the program itself follows as text: no script."""
_VALUED = frozenset(
    (
        "-r",
        "--require",
        "--import",
        "--loader",
        "--experimental-loader",
        "-C",
        "--conditions",
        "--env-file",
        "--cwd",
        "-X",
        "-W",
        "-o",
        "-O",
    )
)
"""Options of interpreters whose value is an argument of its own."""


def _lookup(path: str) -> str | None:
    """The agent that a program or script of this path belongs to."""
    by_program, by_package, by_place = _index()
    name = _EXTENSION.sub("", path.rpartition("/")[2])
    if agent := by_program.get(name):
        return agent
    package = f"/{path}".rpartition("/node_modules/")[2].split("/") if "node_modules/" in path else []
    if package and (agent := by_package.get("/".join(package[: 2 if package[0].startswith("@") else 1]))):
        return agent
    return next((agent for place, agent in by_place if place in path), None)


@cache
def _index() -> tuple[dict[str, str], dict[str, str], list[tuple[str, str]]]:
    tables = _tables().items()
    return (
        {program: agent for agent, rules in tables for program in rules.programs},
        {package: agent for agent, rules in tables for package in rules.packages},
        [(place, agent) for agent, rules in tables for place in rules.places],
    )


def _interpreter(path: str) -> str | None:
    match = _INTERPRETER.match(path.rpartition("/")[2].lstrip("-"))
    return match.group(1) if match else None


def _script(interpreter: str, argv: Sequence[str]) -> int:
    """Where in `argv` the script or module stands that the interpreter runs; 0 where it runs none."""
    at = 1
    while at < len(argv):
        arg = argv[at]
        if arg == "-m" and interpreter in ("python", "pypy"):
            return at + 1 if at + 1 < len(argv) else 0
        if arg in _INLINE.get(interpreter, ()) or (interpreter in _SHELLS and _runs_text(arg)):
            return 0
        if interpreter in ("bun", "deno") and arg in ("run", "x"):
            at += 1
        elif arg.startswith("-"):
            at += 2 if arg in _VALUED else 1
        else:
            return at
    return 0


def _runs_text(option: str) -> bool:
    """Whether a shell's option, or one in a cluster like `-lc`, makes it read its script from the next argument or from its input."""
    return option.startswith("-") and not option.startswith("--") and not {"c", "s"}.isdisjoint(option)
