"""How well each worker CLI is known: the `[known]` tables of `agents/*.toml`, and which version is installed.

The documentation's table and `agentdash doctor` are made from these.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

import msgspec

from agentdash.agents.adapter import Adapter
from agentdash.agents.registry import adapters, identify_table
from agentdash.files import read_text
from agentdash.model.sanitize import clean_line
from agentdash.model.versions import numbers_of

_MAX_PARENTS: Final = 5
"""Directories above a program in which its npm package is described (`@google/gemini-cli/bundle/`)."""
_VERSION_DIRECTORY: Final = re.compile(r"/versions/(\d[\w.+-]*)")
"""Native installations (Claude Code, Cursor) run a program below `versions/VERSION`."""


class Knowledge(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The `[known]` table of one worker CLI."""

    name: str
    """As its vendor writes it."""
    sessions: str = "-"
    """What is read of its sessions, and of which versions."""
    sandbox: str = "observed"
    """What is compared of its sandbox."""
    untested: str = ""
    """Why its screens were not tested on a real program, or not all of them; empty where they were."""


class InstalledAgent(msgspec.Struct, frozen=True):
    """A worker CLI that could be started on this machine."""

    agent: str
    path: str
    version: str | None
    """None where it cannot be found out without running the program."""


@cache
def knowledge() -> Mapping[str, Knowledge]:
    """Return what is known of each worker CLI, by its name (`opencode`)."""
    return {name: msgspec.convert(adapter.tables["known"], Knowledge) for name, adapter in adapters().items()}


def screen_versions(agent: str) -> tuple[str, ...]:
    """Return the versions on real screens of which the rules of a CLI were tested, the newest first."""
    tested = adapters()[agent].tables.get("screen", {}).get("tested", ())
    return tuple(sorted(tested, key=numbers_of, reverse=True))


# ---------------------------------------------------------------- what is installed


def installed_agents() -> Iterator[InstalledAgent]:
    """Yield the worker CLIs on the PATH of this process, without running any of them."""
    for name, adapter in adapters().items():
        program = next(filter(None, map(shutil.which, sorted(identify_table(name).programs))), None)
        if program is not None:
            yield InstalledAgent(name, clean_line(program), version_of(adapter, program))


def version_of(adapter: Adapter, program: str) -> str | None:
    """Return the version of a program: of its npm package, or in the path of a native installation."""
    place = Path(program).resolve()
    if found := _VERSION_DIRECTORY.search(str(place)):
        return clean_line(found[1])
    for folder in list(place.parents)[:_MAX_PARENTS]:
        try:
            package = json.loads(read_text(folder / "package.json"))
        except (OSError, ValueError, RecursionError):
            continue
        if isinstance(package, dict) and package.get("name") in identify_table(adapter.name).packages:
            return clean_line(str(package.get("version"))) or None
    return None


def installed_codex() -> str | None:
    """Return the version of the Codex on PATH, if npm installed it, or None. Codex is not run."""
    program = shutil.which("codex")
    return None if program is None else version_of(adapters()["codex"], program)
