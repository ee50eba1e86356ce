"""Remedies: the narrowest change that makes a denied operation succeed and keeps all others working.

Each form is applied to the real `codex sandbox` by `tests/live/test_remedies.py`. Where no narrow change
exists, the remedy states in words what to do instead; none opens what a finding reports as danger.

`remedy_places` chooses the directory, `remedy_forms` writes the settings.
"""

from __future__ import annotations

import ipaddress
import posixpath
import re
import shlex
from typing import Final

from msgspec.structs import replace

from agentdash.engine.judge.findings import overruled, remedy_forms
from agentdash.engine.judge.findings.claude_remedies import claude_remedy
from agentdash.engine.judge.findings.remedy_places import (
    PROTECTED_NAMES,
    Place,
    absolute,
    is_at_or_below,
    place_of,
)
from agentdash.model.denials import Denial, LedgerEntry, Operation, PathFacts, Remedy, with_directories
from agentdash.model.observation import NETWORK_FLAG
from agentdash.model.policy import Filesystem, Network, Policy, PolicyRule

_UNLISTED: Final = ("auggie", "cursor-agent", "droid")
"""Programs of worker CLIs that `check --worker` does not know by this name."""
_DOCTOR: Final = Remedy("codex doctor")
_RESTART: Final = Remedy("end this Codex, then go on in a new one: codex resume ID")
_HELPER_IS_MISSING: Final = "bwrap: execvp codex-linux-sandbox: "
"""Printed by bubblewrap, with ENOENT or EACCES by what is on PATH, after Codex's warning "could not create
PATH aliases", which it prints where another one starts in the same home at the same time (0.169.0)."""
UNSET_FLAG: Final = Remedy(f"env -u {NETWORK_FLAG} COMMAND")
OUTSIDE: Final = Remedy("start this Codex from a shell outside of the sandbox")
SERVER_OUTSIDE: Final = Remedy(
    "start the tmux server from a shell outside of the sandbox: tmux kill-server, then tmux"
)
MCP_SERVER: Final = Remedy(
    "MCP servers run outside of the agent's sandbox: what is around the agent refuses this, or file modes do"
)

_SOCKET_PROGRAMS: Final = frozenset(
    ("tmux", "screen", "zellij", "docker", "podman", "docker-compose", "ssh-add", "ssh-agent", "gpg",
     "dbus-send", "systemctl", "xdg-open", "code", "cursor")
)  # fmt: skip
"""Programs that ask a server on this machine to act, over a Unix socket: what it does is in no sandbox."""
_SOCKET_WORDS: Final = re.compile(
    r"\.sock\b|unix[- ]socket|unix://|/tmux-\d+/|error connecting to /|/ssh-\w+/agent"
)
_WORKTREE: Final = "/.git/worktrees/"
"""Also with `--add-dir MAIN/.git` it is read-only, though the policy lets it be written (0.171)."""
_LOCAL_NAMES: Final = ("localhost", "ip6-localhost", "host.docker.internal")
_PROXY_KEEPS_LOCAL: Final = re.compile(r"local/private|not_allowed_local")
"""Codex's proxy refuses private addresses whatever its list of domains has."""
_PROXY_HOST: Final = re.compile(r'Network access to "([\w.:-]+)"|"host":\s*"([\w.:-]+)"')
_HOST: Final = re.compile(r"(?=.*[A-Za-z0-9])[A-Za-z0-9_.:-]+")
_INEXACT: Final = ("…", "\ufffd")
"""Marks of a text that was cut or could not be decoded."""


def remedy_for(
    entry: LedgerEntry | Denial,
    policy: Policy | None,
    facts: PathFacts,
    *,
    script: str = "",
    by_mcp: bool = False,
) -> Remedy | None:
    """Return the remedy for a denial; None where none is known to work.

    Args:
        entry: the denial, or its entry in the ledger.
        policy: the one in force; None where it is not known.
        facts: what is known of the disk, and where the configuration is.
        script: the shell script of the denied call, as written; empty where it is not known.
        by_mcp: whether the denied call is one of an MCP server.
    """
    if by_mcp:
        return MCP_SERVER
    if policy is not None and not policy.has_agent_sandbox:
        return None
    if policy is not None and policy.enforced_by == "agent":
        return claude_remedy(entry, policy, facts, script)
    if entry.what == "filesystem" and entry.target:
        return filesystem_remedy(entry.target, entry.operation, policy, facts)
    if entry.what == "network":
        return _network_remedy(entry, policy, facts, script)
    if entry.what == "filesystem" and entry.nested not in (None, *_UNLISTED) and policy is not None:
        # its message names no file; what is known of the CLI does
        return _instead(
            f"`agentdash check --worker {entry.nested}` lists the directories that it needs", policy, facts
        )
    return startup_remedy(entry.quote) if entry.what == "sandbox" else None


def startup_remedy(quote: str) -> Remedy:
    """Return what helps where the sandbox of Codex could not be started, by what was printed."""
    return _RESTART if _HELPER_IS_MISSING in quote else _DOCTOR


def filesystem_remedy(
    path: str, operation: Operation, policy: Policy | None, facts: PathFacts
) -> Remedy | None:
    """Return the remedy for a path that may not be written; None where the policy lets it be written.

    Args:
        path: absolute, or below `~`.
        operation: what was denied.
        policy: the one in force; None where it is not known.
        facts: what is known of the disk.
    """
    path = absolute(path, facts)
    if not path.startswith("/") or any(mark in path for mark in _INEXACT):
        return None
    if policy is not None and policy.filesystem in (Filesystem.UNRESTRICTED, Filesystem.UNKNOWN):
        return None
    if policy is not None and policy.may_write(path) and not _is_protected(path, policy):
        if _WORKTREE in path:
            return _instead("Codex keeps the git directory of a linked worktree read-only", policy, facts)
        return None
    if policy is not None and any(rule.access == "deny" and _covers(rule, path) for rule in policy.rules):
        return Remedy(f"the permission profile denies {path}: remove its `deny` entry, if that is meant")
    if policy is not None and not policy.writable_roots:
        is_workspace = any(is_at_or_below(path, workspace) for workspace in facts.workspaces)
        if is_workspace and not set(path.split("/")) & set(PROTECTED_NAMES):
            if (decides := overruled.instead_of_workspace(facts)) is not None:
                return _instead(decides, policy, facts)
            return remedy_forms.workspace_write(facts)
        return _instead("a read-only sandbox writes nothing", policy, facts, is_file=True)
    place = place_of(path, operation, facts)
    if place.obstacle:
        return _instead(place.obstacle, policy, facts, is_file=True)
    if (
        policy is not None
        and policy.may_write(place.directory)
        and not _is_protected(place.directory, policy)
    ):
        return _instead(f"{place.directory} is a writable directory already", policy, facts, is_file=True)
    if (decides := overruled.instead_of_root(path, policy, facts)) is not None:
        return _instead(decides, policy, facts, is_file=True)
    return _opened(place, policy, facts)


def network_access_remedy(policy: Policy | None, facts: PathFacts) -> Remedy | None:
    """Return the remedy for a worker that needs hosts of the internet: its model."""
    if policy is not None and (policy.network is not Network.OFF or not policy.writable_roots):
        return None
    return _network_access(policy, facts)


def _opened(place: Place, policy: Policy | None, facts: PathFacts) -> Remedy | None:
    """Return the settings for a directory that may be opened."""
    remedy = remedy_forms.writable_root(
        place.directory, policy, facts, assumed=not place.known and not place.create
    )
    if remedy is None or not place.create:
        return remedy
    return replace(
        remedy,
        where=with_directories(remedy.where or "", [place.directory]),
        once=remedy.once and f"mkdir -p {shlex.quote(place.directory)} && {remedy.once}",
    )


def _network_remedy(
    entry: LedgerEntry | Denial, policy: Policy | None, facts: PathFacts, script: str
) -> Remedy | None:
    if policy is None or policy.network in (Network.ON, Network.UNKNOWN):
        return None
    if _is_socket(entry, script):
        return _socket_remedy(policy, facts, script)
    host = _host(entry, mediated=policy.network is Network.MEDIATED)
    if host is None or entry.operation == "bind":
        return _instead("no host is known that a setting could open", policy, facts)
    if _is_local(host):
        return _instead(f"{host} is a service of this machine, which no setting opens alone", policy, facts)
    if policy.network is Network.MEDIATED:
        if _PROXY_KEEPS_LOCAL.search(entry.quote):
            return _instead(f"{host} has a private address, which the proxy never reaches", policy, facts)
        return remedy_forms.network_domain(host, policy, facts)
    if not policy.writable_roots:
        return _instead("a read-only sandbox has no network", policy, facts)
    return _network_access(policy, facts)


def _network_access(policy: Policy | None, facts: PathFacts) -> Remedy | None:
    """Return the settings that turn the network on, unless they were asked for, or would have no effect."""
    if (decides := overruled.instead_of_network(Network.ON, policy, facts)) is not None:
        return _instead(decides, policy, facts)
    return remedy_forms.network_access(policy, facts)


def _socket_remedy(policy: Policy, facts: PathFacts, script: str) -> Remedy:
    """Return the words to approve the command that was denied; a rule for it where Codex never asks.

    Turning the network on would open the socket as well, and with it all that its server does outside.
    """
    rule = remedy_forms.command_rule(script, facts) if policy.approval == "never" else None
    if rule is not None:
        return rule
    words = _instead("what the server of that socket does is in no sandbox", policy, facts)
    if "tmux" not in _programs(script):
        return words
    return replace(
        words,
        text=f"{words.text}; the states of other workers can be read inside while"
        " `agentdash publish` runs outside",
    )


def _instead(reason: str, policy: Policy | None, facts: PathFacts, *, is_file: bool = False) -> Remedy:
    """Return what to do where no setting is narrow enough, or none would have an effect."""
    never_asks = policy is not None and policy.approval == "never"
    approve = (
        "start Codex with `-a on-request` and approve that command" if never_asks else "approve that command"
    )
    choices = [approve] if overruled.can_be_asked(policy, facts) else []
    choices += ["write elsewhere below the working directory"] if is_file else []
    others = "".join(f"{choice}, " for choice in choices)
    return Remedy(f"{others}{'or ' if choices else ''}run it yourself outside of the sandbox: {reason}")


def _is_protected(path: str, policy: Policy) -> bool:
    """Return whether Codex keeps the path read-only in a writable root; old policies do not list it."""
    return any(
        is_at_or_below(path, posixpath.join(root, name))
        for root in policy.writable_roots
        for name in PROTECTED_NAMES
    )


def _covers(rule: PolicyRule, path: str) -> bool:
    return not rule.glob and is_at_or_below(path, rule.path)


def _is_socket(entry: LedgerEntry | Denial, script: str) -> bool:
    """Return whether what was denied is a Unix socket of this machine."""
    if entry.target:
        return "/" in entry.target
    return bool(_SOCKET_WORDS.search(entry.quote)) or not _SOCKET_PROGRAMS.isdisjoint(_programs(script))


def _programs(script: str) -> set[str]:
    """Return the names of the programs that a script runs."""
    from agentdash.sandbox.shell import commands  # noqa: PLC0415 - few remedies read a script

    found = commands(script) if script else None
    return {command.argv[0].text.rpartition("/")[2] for command in found or () if command.argv}


def _host(entry: LedgerEntry | Denial, *, mediated: bool) -> str | None:
    """Return the host that was denied: of the proxy's message, or the target."""
    if mediated and (match := _PROXY_HOST.search(entry.quote)):
        return match[1] or match[2]
    target = entry.target
    return target if target and _HOST.fullmatch(target) else None


def _is_local(host: str) -> bool:
    name = host.strip("[]").casefold()
    if name in _LOCAL_NAMES or name.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified
