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
_REQUESTS: Final = (
    {
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "x", "version": "1"},
        },
    },
    {"method": "tools/list"},
    *(
        {"method": "tools/call", "params": {"name": name, "arguments": {}}}
        for name in ("status", "check", "sessions")
    ),
)


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """One run of agentdash."""

    arguments: tuple[str, ...]
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
    for arguments in (("status", "--json"), ("explain", GOOD, "--json"), ("reach", "--json"), ("metrics",)):
        yield Command(arguments=arguments, writes=(*MEMORY, *DIGESTS))
    yield Command(arguments=("since", "1h"), writes=(*MEMORY, *DIGESTS))
    yield Command(arguments=("wait", GOOD, "--timeout", "3"), writes=MEMORY)
    for arguments in (("status", "--follow"), ("status", "--watch")):
        yield Command(arguments=arguments, writes=MEMORY, lasts=True)
    yield Command(arguments=("doctor", "--json"), writes=MEMORY)
    for arguments in (("line",), ("schema", "status"), ("config", "default")):
        yield Command(arguments=arguments)
    for arguments in (("config", "check"), ("completion", "zsh"), ("completion", "fish"), ("--version",)):
        yield Command(arguments=arguments)
    yield Command(arguments=("completion", "bash"), programs=("bash",))  # click asks for its version
    yield Command(arguments=("sessions", "--json"), writes=DIGESTS)
    for options in ("--json", "--denials", "--format=sarif"):
        yield Command(arguments=("check", options), writes=DIGESTS)
    yield Command(arguments=("preflight", "--worker", "opencode"))
    yield Command(arguments=("check", "--json", "--no-cache"))
    export = root / "export"
    for suffix in ("md", "html"):
        yield Command(arguments=("replay", GOOD, "--export", str(export / f"out.{suffix}"), "--force"))
    lines = (json.dumps({"jsonrpc": "2.0", "id": number, **each}) for number, each in enumerate(_REQUESTS))
    requests = "".join(f"{line}\n" for line in lines).encode()
    yield Command(arguments=("mcp",), stdin=requests, writes=(*MEMORY, *DIGESTS))
    yield Command(arguments=("remote", "check", "build1"), programs=("ssh",))
    yield Command(arguments=("split",), in_pane=True, writes=("split",), tmux=("split-window", "select-pane"))
    yield Command(arguments=("publish",), lasts=True, writes=(*STATUS, *MEMORY))
    yield Command(
        arguments=("--record", str(root / "journal")),
        keys=_SCREEN,
        writes=(*STATUS, *MEMORY, "attention"),
    )
    library = (b"j", b"/", b"a", b"\x1b", b"\r", b"]", b"$")
    yield Command(arguments=("replay",), keys=library, writes=DIGESTS)
    yield Command(
        arguments=("replay", GOOD, "--journal", str(root / "journal")), keys=(b"]", b"$", b"0", b"?")
    )
    yield Command(arguments=("demo",), keys=_SCREEN)


def missing_commands(runs: list[Command]) -> set[str]:
    """Return the commands of agentdash that no run has."""
    return set(COMMANDS) - {run.arguments[0] for run in runs}
