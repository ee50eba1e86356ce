"""Identify the worker CLI that a process is, by its argument vector and the `[identify]` tables of
`agents/*.toml`.

The first argument decides before the executable: Codex's sandbox helper is the `codex` binary under another
name. Programs run by an interpreter (`node .../bin/codex`, `python -m aider`, a shell script) are looked up
by their script, or by the npm package it lies in.

One agent can be several processes: the node launcher of Codex and the binary below it, or Gemini and the
child that it restarts itself as. All of them are identified; callers that need one process take the
outermost.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Final

import msgspec

from agentdash.agents.adapter import Role
from agentdash.agents.registry import adapters, identify_table


class Identity(msgspec.Struct, frozen=True):
    """The worker CLI that a process was identified as."""

    agent: str
    """`codex`, `opencode` ...: the name of the TOML file."""
    role: Role
    once: bool = False
    """Whether it was given one task, with which it ends (`opencode run`)."""


def identify(argv: Sequence[str], exe: str | None = None) -> Identity | None:
    """Return the worker CLI that a process is part of, or None.

    Args:
        argv: its argument vector; empty (a zombie, another user's process) identifies nothing.
        exe: the path of its executable: an interpreter's, or that of a CLI that was started under another
            name (a symbolic link), where all names are known under which it is another program.
    """
    if not argv:
        return None
    if (agent := _lookup(argv[0]) or _renamed(argv[0], exe or "")) is not None:
        return _identity(agent, argv[1:])
    if (interpreter := _interpreter(argv[0]) or _interpreter(exe or "")) is None:
        return None
    at = _script(interpreter, argv)
    return _identity(agent, argv[at + 1 :]) if at and (agent := _lookup(argv[at])) is not None else None


def _identity(agent: str, args: Sequence[str]) -> Identity:
    table = identify_table(agent)
    options = args[: args.index("--")] if "--" in args else args
    return Identity(agent, table.role(args), once=not table.once.isdisjoint(options))


# ---------------------------------------------------------------- programs and scripts

_EXTENSION: Final = re.compile(r"\.(?:[cm]?[jt]s|py|exe)$")
_INTERPRETER: Final = re.compile(r"(node|bun|deno|python|pypy|sh|bash|dash|zsh|ksh)(?:js|[\d.]+)?$")
_SHELLS: Final = frozenset(("sh", "bash", "dash", "zsh", "ksh"))
_INLINE_OPTIONS: Final = {
    "node": frozenset(("-e", "--eval", "-p", "--print", "-pe")),
    "bun": frozenset(("-e", "--eval", "-p", "--print")),
    "deno": frozenset(("eval",)),
    "python": frozenset(("-c",)),
    "pypy": frozenset(("-c",)),
}
"""Options of interpreters after which the program follows as text, so that there is no script."""
_VALUED_OPTIONS: Final = frozenset(
    (
        *("-r", "--require", "--import", "--loader", "--experimental-loader", "-C", "--conditions"),
        *("--env-file", "--cwd", "-X", "-W", "-o", "-O"),
    )
)
"""Options of interpreters whose value is an argument of its own."""


def _lookup(path: str) -> str | None:
    """Return the agent that a program or script belongs to, by its path."""
    by_program, by_package, by_place = _index()
    name = _EXTENSION.sub("", path.rpartition("/")[2])
    if agent := by_program.get(name):
        return agent
    package = f"/{path}".rpartition("/node_modules/")[2].split("/") if "node_modules/" in path else []
    if package and (agent := by_package.get("/".join(package[: 2 if package[0].startswith("@") else 1]))):
        return agent
    return next((agent for place, agent in by_place if place in path), None)


def _renamed(name: str, exe: str) -> str | None:
    """Return the agent whose program runs under a name that is not its own, and not that of another tool."""
    agent = _index()[0].get(exe.rpartition("/")[2])
    tools = identify_table(agent).tools if agent is not None else ()
    return agent if tools and name.rpartition("/")[2] not in tools else None


@cache
def _index() -> tuple[dict[str, str], dict[str, str], list[tuple[str, str]]]:
    """Return the agents by program, by npm package, and by part of a path."""
    found = {agent: identify_table(agent) for agent in adapters()}
    by_program = {program: agent for agent, table in found.items() for program in table.programs}
    by_package = {package: agent for agent, table in found.items() for package in table.packages}
    return (
        by_program,
        by_package,
        [(place, agent) for agent, table in found.items() for place in table.places],
    )


def _interpreter(path: str) -> str | None:
    match = _INTERPRETER.match(path.rpartition("/")[2].lstrip("-"))
    return match.group(1) if match else None


def _script(interpreter: str, argv: Sequence[str]) -> int:
    """Return the index in `argv` of the script or module that the interpreter runs; 0 where it runs none."""
    at = 1
    while at < len(argv):
        arg = argv[at]
        if arg == "-m" and interpreter in ("python", "pypy"):
            return at + 1 if at + 1 < len(argv) else 0
        if arg in _INLINE_OPTIONS.get(interpreter, ()) or (interpreter in _SHELLS and _reads_text(arg)):
            return 0
        if interpreter in ("bun", "deno") and arg in ("run", "x"):
            at += 1
        elif arg.startswith("-"):
            at += 2 if arg in _VALUED_OPTIONS else 1
        else:
            return at
    return 0


def _reads_text(option: str) -> bool:
    """Return whether a shell reads its script from an argument or stdin: `-c`, `-s`, also in a cluster like
    `-lc`."""
    return option.startswith("-") and not option.startswith("--") and not {"c", "s"}.isdisjoint(option)
