"""Read what a running Codex was asked for: from its arguments, environment and configuration files.

The role of a sub-agent is a file `agents/NAME.toml` in the Codex home or in `.codex` of the project, or the
`config_file` of `[agents.NAME]` in the user's configuration. Its `sandbox_mode` has no effect in 0.130 to
0.171: a sub-agent has the policy of the thread that spawned it (openai/codex#45482, #33314; 0.114 has no
roles to spawn).
"""

from __future__ import annotations

import os
import posixpath
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from agentdash.agents.adapter import RequestReader
from agentdash.agents.codex.config.argv import Arguments, parse_arguments
from agentdash.agents.codex.config.files import ConfigFile, Stack, directory, read_config, read_layers
from agentdash.agents.codex.config.precedence import FIRST_MEASURED, ask, request, requested, rules_of
from agentdash.model.policy import TMPDIR, Network
from agentdash.model.process import Process
from agentdash.model.requested import Requested, RequestField, RequestLayer
from agentdash.model.state_paths import resolve_path
from agentdash.model.thread import Thread
from agentdash.model.versions import numbers_of

_CLOCK_TOLERANCE_S: Final = 1.0
"""A file that was written so shortly after a process began was read by it, too."""


class CodexRequests(RequestReader):
    """What a `codex` process was asked for."""

    def read(self, process: Process, thread: Thread | None, root: Path, at: float) -> Requested | None:
        """Return what the arguments and the configuration of a process ask for, or None if it runs no
        thread of its own or they cannot be read."""
        arguments = parse_arguments(process.argv)
        home = codex_home(process)
        if arguments is None or arguments.mode == "other" or home is None:
            return None
        cwd = thread.cwd if thread is not None and thread.cwd else directory(arguments, process.cwd or "")
        if not cwd:
            return None
        version = thread.version if thread else None
        since = process.key.started
        found = read_request(arguments, home, cwd, version, root, since=since)
        return replace(found, since=since, read_at=at if found.changed_files else None)

    def read_role(self, process: Process, thread: Thread, root: Path, at: float) -> Requested | None:
        """Return what the role file of a sub-agent asks for, or None."""
        home = codex_home(process)
        if home is None or thread.role is None or thread.created_at is None or not thread.cwd:
            return None
        return read_role(thread.role, home=home, cwd=thread.cwd, root=root, since=thread.created_at, at=at)


def read_request(
    arguments: Arguments, home: str, cwd: str, version: str | None, root: Path, since: float | None = None
) -> Requested:
    """Read the request of a Codex with these arguments in a directory. Never raises.

    Only what its arguments ask for is kept if the version is unknown, or an old one that may have read these
    files otherwise, if not all files are known that count, and of a client of another Codex (`--remote`),
    which has a configuration of its own.

    Args:
        cwd: its workspace.
        version: of Codex.
        root: where its file system is mounted.
        since: when it started (unix seconds): files that were written later are named.
    """
    layers = read_layers(home, cwd, arguments, root=root)
    wanted, given = request(layers, arguments, cwd=cwd)
    measured = rules_of(version)
    # old versions had tables of profiles, and lists of domains that started a proxy
    may_differ = given.refusal is not None or wanted.policy.network is Network.MEDIATED
    is_certain = (
        bool(numbers_of(version))
        and layers.are_certain
        and not (measured == FIRST_MEASURED and may_differ)
        and arguments.last("remote") is None
    )
    found = requested(wanted, given if is_certain else None)
    are_plain = all(_is_plain(path, root) for path in found.policy.writable_roots)
    return replace(
        found,
        origins=tuple(
            origin
            for origin in found.origins
            if (is_certain or origin.layer is RequestLayer.ARGV)
            and (are_plain or origin.field is not RequestField.WRITABLE_ROOTS)
        ),
        files_written=max((file.modified for file in (*layers.files, *layers.managed)), default=0.0) or None,
        changed_files=_written_after(since, *layers.all),
        resumes=arguments.resumes,
        rules_of=measured,
        is_fixed=arguments.mode == "exec",
    )


def _written_after(since: float | None, *files: ConfigFile) -> tuple[str, ...]:
    """Return the files that were written after a time (unix seconds)."""
    return tuple(each.path for each in files if since and each.modified > since + _CLOCK_TOLERANCE_S)


def _is_plain(path: str, root: Path) -> bool:
    """Return whether Codex has a writable root under the same name: absolute, and no symbolic link in it."""
    if path == TMPDIR:
        return True
    real = os.path.realpath(root / path.lstrip("/"))
    return real in (path.rstrip("/"), os.path.realpath(root).rstrip("/") + path.rstrip("/"))


def codex_home(process: Process) -> str | None:
    """Return the Codex home of a process, or None if its environment does not show it."""
    return resolve_path("$CODEX_HOME", process.env or {})


# ---------------------------------------------------------------- roles of sub-agents


def read_role(role: str, *, home: str, cwd: str, root: Path, since: float, at: float) -> Requested | None:
    """Return what the role of a sub-agent asks for, or None if it has no file. Never raises.

    Args:
        role: its name (`agent_role`).
        root: where its file system is mounted.
        since: when it was started (unix seconds).
        at: now.
    """
    file = _file(role, home, cwd, root)
    if file is None or file.problem:
        return None
    changed = _written_after(since, file)
    return replace(
        role_request(file, cwd=cwd),
        since=since,
        read_at=at if changed else None,
        files_written=file.modified or None,
        changed_files=changed,
    )


def role_request(file: ConfigFile, *, cwd: str) -> Requested:
    """Return what a role file asks for by itself: of files and network."""
    asked = requested(ask(Stack(Arguments("tui"), (file,)), cwd=cwd, decided=True), None)
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
    places = [f"{cwd}/.codex/agents/{role}.toml", f"{home}/agents/{role}.toml"]
    user = read_config(root / home.lstrip("/") / "config.toml", RequestLayer.USER)
    named = user.get("agents", role, "config_file") if user else None
    if isinstance(named, str):
        places.append(posixpath.join(home, named))
    found = (read_config(root / path.lstrip("/"), RequestLayer.ROLE, path) for path in places)
    return next((file for file in found if file is not None), None)
