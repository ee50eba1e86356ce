"""The roles of Claude Code's sub-agents: `agents/NAME.md`, where the front matter may set a permission
mode."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Final

import msgspec

from agentdash.agents.claude.home import MAX_FILE_BYTES, listed
from agentdash.files import read_bytes
from agentdash.model.decoders import JsonDecoder
from agentdash.model.policy import Policy
from agentdash.model.requested import Requested, RequestField, RequestLayer, RequestOrigin
from agentdash.model.sanitize import clean_line

_FRONT_MATTER: Final = re.compile(r"\A---\n(.*?)\n---\s*\n", re.DOTALL)


class _Meta(msgspec.Struct, rename="camel"):
    agent_type: str | None = None


_meta: Final = JsonDecoder(_Meta)


def read_role(transcript: Path, home: str, cwd: str, root: Path) -> Requested | None:
    """Return the permission mode in the file of a sub-agent's role: of the project, or else of the user."""
    try:
        content = read_bytes(transcript.with_suffix(".meta.json"), MAX_FILE_BYTES)
        name = _meta.decode(content).agent_type
    except (OSError, ValueError, msgspec.DecodeError, RecursionError):
        return None
    directories = (posixpath.join(cwd, ".claude/agents"), posixpath.join(home, "agents"))
    for directory in directories if name else ():
        for place in listed(root / directory.lstrip("/"), "*.md"):
            if (found := _role_mode(place, name or "")) is None:
                continue
            mode, line, modified = found
            if mode is None:
                return None
            file = clean_line(posixpath.join(directory, place.name))
            return msgspec.structs.replace(role_request(mode, file, line), files_written=modified)
    return None


def role_request(mode: str, file: str, line: int) -> Requested:
    """Return what a role asks for that sets a permission mode."""
    origin = RequestOrigin(
        field=RequestField.APPROVAL,
        layer=RequestLayer.ROLE,
        text=f"permissionMode: {mode}",
        file=file,
        line=line,
    )
    return Requested(policy=Policy(approval=mode), origins=(origin,))


def _role_mode(path: Path, name: str) -> tuple[str | None, int, float] | None:
    """Return the mode of the role with this name, its line, and its file's time; None for other roles."""
    try:
        modified = path.stat().st_mtime
        text = read_bytes(path, MAX_FILE_BYTES).decode("utf-8", "replace")
    except (OSError, ValueError):
        return None
    found, mode, line = parse_role(text)
    return (mode, line, modified) if found == name else None


def parse_role(text: str) -> tuple[str | None, str | None, int]:
    """Return the name of a role, its permission mode, and the line that sets it, of the text of its file."""
    head = _FRONT_MATTER.match(text.replace("\r\n", "\n"))
    values: dict[str, tuple[str, int]] = {}
    for number, line in enumerate(head[1].split("\n") if head else (), 2):
        key, colon, value = line.partition(":")
        if colon:
            values[key.strip()] = (clean_line(value).strip("'\""), number)
    name, _ = values.get("name", (None, 0))
    mode, at = values.get("permissionMode", (None, 0))
    return name, mode or None, at
