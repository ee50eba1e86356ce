"""The commands whose system calls are checked: all that `agentdash --help` lists, and what each may write."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from agentdash.cli import COMMANDS
from tests.torture.stage import GOOD

MEMORY: Final = ("memory-2.sqlite",)
DIGESTS: Final = ("digests.sqlite",)
STATUS: Final = ("status-",)
"""Beginnings of names in the state directory, as SECURITY.md lists them; SQLite has files beside its own."""
_SCREEN: Final = (b"j", b"w", b"\x1b", b"\r", b"?", b"\x1b", b"\t")
_LIBRARY: Final = (b"j", b"/", b"a", b"\x1b", b"\r", b"]", b"$")
_CLIENT: Final = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "x", "version": "1"},
}
_REQUESTS: Final = (
    {"method": "initialize", "params": _CLIENT},
    {"method": "tools/list"},
    *(
        {"method": "tools/call", "params": {"name": name, "arguments": {}}}
        for name in ("status", "check", "sessions")
    ),
)


class Command(msgspec.Struct, frozen=True):
    """One run of agentdash."""

    line: str
    writes: tuple[str, ...] = ()
    """Beginnings of the names in the state directory that it may write."""
    keys: tuple[bytes, ...] = ()
    """What is pressed; with any, it runs in a terminal."""
    stdin: bytes = b""
    lasts: bool = False
    """Whether it runs until a signal ends it."""
    programs: tuple[str, ...] = ("tmux",)
    """The programs that it may start."""
    tmux: tuple[str, ...] = ()
    """The commands of tmux that change something, and that it may give."""
    in_pane: bool = False
    """Whether it runs in a pane of the tmux server."""


def commands(root: Path) -> Iterator[Command]:
    """Yield the runs, of which some read what those before have written.

    Args:
        root: has the directories `export` and `journal`.
    """
    for line in ("status --json", f"explain {GOOD} --json", "reach --json", "metrics", "since 1h"):
        yield Command(line, (*MEMORY, *DIGESTS))
    for line in (f"wait {GOOD} --timeout 3", "doctor --json"):
        yield Command(line, MEMORY)
    for line in ("status --follow", "status --watch"):
        yield Command(line, MEMORY, lasts=True)
    for line in ("line", "schema status", "config default", "config check", "completion zsh", "--version"):
        yield Command(line)
    yield Command("completion bash", programs=("bash",))  # click asks for its version
    for line in ("sessions --json", "check --json", "check --denials", "check --format=sarif"):
        yield Command(line, DIGESTS)
    for suffix in ("md", "html"):
        yield Command(f"replay {GOOD} --export {root}/export/out.{suffix} --force")
    for line in ("preflight --worker opencode", "check --json --no-cache"):
        yield Command(line)
    lines = (json.dumps({"jsonrpc": "2.0", "id": number, **each}) for number, each in enumerate(_REQUESTS))
    yield Command("mcp", (*MEMORY, *DIGESTS), stdin="".join(f"{line}\n" for line in lines).encode())
    yield Command("remote check build1", programs=("ssh",))
    yield Command("split", ("split",), in_pane=True, tmux=("split-window", "select-pane"))
    yield Command("publish", (*STATUS, *MEMORY), lasts=True)
    yield Command(f"--record {root}/journal", (*STATUS, *MEMORY, "attention"), _SCREEN)
    yield Command("replay", DIGESTS, _LIBRARY)
    yield Command(f"replay {GOOD} --journal {root}/journal", keys=(b"]", b"$", b"0", b"?"))
    yield Command("demo", keys=_SCREEN)


def missing_commands(runs: list[Command]) -> set[str]:
    """Return the commands of agentdash that no run has."""
    return set(COMMANDS) - {run.line.split()[0] for run in runs}
