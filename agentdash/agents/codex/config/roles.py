"""Read what the roles of sub-agents ask for.

A role is a file `agents/NAME.toml` in the Codex home or in `.codex` of the project, or the `config_file` of
`[agents.NAME]` in the user's configuration. Its `sandbox_mode` has no effect in 0.130 and 0.169: a sub-agent
has the policy of the thread that spawned it (openai/codex#45482, #33314; 0.114 has no roles to spawn).
"""

from __future__ import annotations

import posixpath
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from agentdash.agents.codex.config.argv import Arguments
from agentdash.agents.codex.config.files import ConfigFile, read_config
from agentdash.agents.codex.config.layers import requested
from agentdash.agents.codex.config.precedence import ask
from agentdash.agents.codex.config.stack import Stack
from agentdash.agents.codex.config.versions import latest_rules
from agentdash.model.requested import Requested, RequestField, RequestLayer

_NOTHING: Final = Arguments("tui")
_CLOCK_TOLERANCE_S: Final = 1.0


def read_role(role: str, *, home: str, cwd: str, root: Path, since: float, at: float) -> Requested | None:
    """Return what the role of a sub-agent asks for; None where no file of it is found. Never raises.

    Args:
        role: its name (`agent_role`).
        root: where its file system is mounted.
        since: when it was started (unix seconds).
        at: now.
    """
    file = _file(role, home, cwd, root)
    if file is None or file.problem:
        return None
    is_newer = file.modified > since + _CLOCK_TOLERANCE_S
    found = role_request(file, cwd=cwd)
    return replace(
        found,
        since=since,
        read_at=at if is_newer else None,
        files_written=file.modified or None,
        changed_files=(file.path,) if is_newer else (),
    )


def role_request(file: ConfigFile, *, cwd: str) -> Requested:
    """Return what a role file asks for by itself: of files and network."""
    asked = requested(ask(Stack(_NOTHING, (file,), latest_rules()), cwd=cwd, decided=True), None)
    own = tuple(
        origin
        for origin in asked.origins
        if origin.layer is RequestLayer.ROLE
        and origin.field in (RequestField.FILESYSTEM, RequestField.NETWORK, RequestField.WRITABLE_ROOTS)
    )
    return replace(asked, origins=own)


def _file(role: str, home: str, cwd: str, root: Path) -> ConfigFile | None:
    """Return the file of a role: that of the project first."""
    if "/" in role or role.startswith("."):
        return None
    for folder in (posixpath.join(cwd, ".codex"), home):
        path = posixpath.join(folder, "agents", f"{role}.toml")
        if (found := read_config(root / path.lstrip("/"), RequestLayer.ROLE, path)) is not None:
            return found
    user = read_config(root / home.lstrip("/") / "config.toml", RequestLayer.USER)
    named = user.get("agents", role, "config_file") if user else None
    if not isinstance(named, str):
        return None
    path = posixpath.join(home, named)
    return read_config(root / path.lstrip("/"), RequestLayer.ROLE, path)
