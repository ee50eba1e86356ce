"""Remedies: the narrowest change that makes a denied operation succeed and keeps all others working.

Each form is applied to the real `codex sandbox` by `tests/live/test_remedies.py`. Where no narrow change
exists, the remedy states in words what to do instead; none opens what a finding reports as danger. What was
typed or configured already, and lost, is no remedy: the words name what decides instead.

`remedy_places` chooses the directory.
"""

from __future__ import annotations

import json
import posixpath
import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

from msgspec.structs import replace

from agentdash.engine.judge.findings.remedy_places import (
    PROTECTED_NAMES,
    Place,
    is_at_or_below,
    place_of,
)
from agentdash.model.denials import (
    Denial,
    LedgerEntry,
    Operation,
    PathFacts,
    PathKind,
    Remedy,
    with_directories,
)
from agentdash.model.observation import NETWORK_FLAG
from agentdash.model.policy import Filesystem, Network, Policy
from agentdash.model.requested import RequestField, RequestLayer

UNSET_FLAG: Final = Remedy(f"env -u {NETWORK_FLAG} COMMAND")
OUTSIDE: Final = Remedy("start this Codex from a shell outside the sandbox")
SERVER_OUTSIDE: Final = Remedy(
    "start the tmux server from a shell outside the sandbox: tmux kill-server, then tmux"
)
MCP_SERVER: Final = Remedy(
    "MCP servers run outside the agent's sandbox: what is around the agent refuses this, or file modes do"
)
_DOCTOR: Final = Remedy("codex doctor")
_RESTART: Final = Remedy("end this Codex, then go on in a new one: codex resume ID")
_HELPER_IS_MISSING: Final = "bwrap: execvp codex-linux-sandbox: "
"""Printed by bubblewrap, with ENOENT or EACCES by what is on PATH, after Codex's warning "could not create
PATH aliases", which it prints where another one starts in the same home at the same time (0.169.0)."""
_HIDDEN_HELPER: Final = re.compile(r"bwrap: execvp (?P<tmp>/\S*/tmp)/arg0\S*/codex-linux-sandbox: ")
"""The same in a sandbox that may not read the directory of that program (openai/codex#19299)."""
_REPLACED: Final = "(deleted): No such file or directory"
"""Codex was updated while it ran (0.48)."""
_UNLISTED: Final = ("auggie", "cursor-agent", "droid")
"""Programs of worker CLIs that `preflight --worker` does not know by this name."""
_WORKTREE: Final = "/.git/worktrees/"
"""Also with `--add-dir MAIN/.git` it is read-only, though the policy lets it be written (0.171)."""
_THIS_MACHINE: Final = re.compile(
    r"(?:.+\.)?localhost|ip6-localhost|host\.docker\.internal|127(?:\.\d+){3}|0\.0\.0\.0|::1?", re.IGNORECASE
)
_HOST: Final = re.compile(r"(?=.*[A-Za-z0-9])[A-Za-z0-9_.:-]+")
_EXACT: Final = re.compile(r"/[^…\ufffd]*", re.DOTALL)
"""An absolute path without marks of a text that was cut or could not be decoded."""
_ELSEWHERE: Final = "write elsewhere below the working directory"
_BY_HAND: Final = "run it yourself outside the sandbox"


def remedy_for(
    entry: LedgerEntry | Denial,
    policy: Policy | None,
    facts: PathFacts,
    *,
    script: str = "",
    by_mcp: bool = False,
) -> Remedy | None:
    """Return the remedy for a denial, or None if none is known to work.

    Args:
        policy: the one in force, or None if unknown.
        script: the shell script of the denied call, as written; empty if it is not known.
        by_mcp: whether the denied call is one of an MCP server.
    """
    if by_mcp:
        return MCP_SERVER
    if policy is not None and not policy.has_agent_sandbox:
        return None
    if policy is not None and policy.enforced_by == "agent":
        return _claude_remedy(entry, policy, facts, script)
    if entry.what == "filesystem" and entry.target:
        if entry.target not in facts.kinds and f"{entry.target}/" in entry.quote:
            facts = replace(facts, kinds={**facts.kinds, entry.target: PathKind.DIRECTORY})
        return filesystem_remedy(entry.target, entry.operation, policy, facts)
    if entry.operation == "exec":
        return _instead("no setting lets a sandbox run it", policy, facts)
    if entry.what == "network":
        return _network_remedy(entry, policy, facts)
    if entry.what == "filesystem" and entry.nested not in (None, *_UNLISTED) and policy is not None:
        # its message names no file; what is known of the CLI does
        reason = f"`agentdash preflight --worker {entry.nested}` lists the directories that it needs"
        return _instead(reason, policy, facts)
    return startup_remedy(entry.quote, policy, facts) if entry.what == "sandbox" else None


def startup_remedy(quote: str, policy: Policy | None, facts: PathFacts) -> Remedy:
    """Return what helps where the sandbox of Codex could not be started, by what was printed."""
    hidden, profile = _HIDDEN_HELPER.search(quote), _profile(policy, facts)
    reads_all = any(rule.path == "/" and rule.access != "deny" for rule in policy.rules) if policy else True
    if hidden is not None and profile is not None and not reads_all:
        folders = {_text(hidden["tmp"]): _text("read"), _text("/PATH/OF/CODEX"): _text("read")}
        words = " (the second line: the directory in which Codex is installed)"
        found = _profile_entry(profile, "filesystem", folders, facts, words)
        return replace(found, once=None) if found is not None else _DOCTOR
    return _RESTART if _HELPER_IS_MISSING in quote or _REPLACED in quote else _DOCTOR


# ---------------------------------------------------------------- Codex: files


def filesystem_remedy(
    path: str, operation: Operation, policy: Policy | None, facts: PathFacts
) -> Remedy | None:
    """Return the remedy for a path that may not be written, or None if the policy lets it be written.

    Without a policy, the one in force is not known.
    """
    path = posixpath.normpath(path)
    if not _EXACT.fullmatch(path):
        return None
    if policy is not None:
        if policy.filesystem in (Filesystem.UNRESTRICTED, Filesystem.UNKNOWN):
            return None
        if _may_write(policy, path):
            linked = "Codex keeps the git directory of a linked worktree read-only"
            return _instead(linked, policy, facts) if _WORKTREE in path else None
        denied = (rule.path for rule in policy.rules if rule.access == "deny" and not rule.glob)
        if any(is_at_or_below(path, root) for root in denied):
            return Remedy(f"the permission profile denies {path}: remove its `deny` entry, if that is meant")
        if not policy.writable_roots:
            return _in_read_only(path, policy, facts)
    place = place_of(path, operation, facts)
    reason = place.obstacle
    if reason is None and policy is not None and _may_write(policy, place.directory):
        reason = f"{place.directory} is a writable directory already"
    reason = reason or _instead_of_root(path, policy, facts)
    return _instead(reason, policy, facts, is_file=True) if reason else _writable_root(place, policy, facts)


def _may_write(policy: Policy, path: str) -> bool:
    """Return whether a path may be written; old policies do not list what Codex keeps read-only."""
    is_protected = any(
        is_at_or_below(path, posixpath.join(root, name))
        for root in policy.writable_roots
        for name in PROTECTED_NAMES
    )
    return bool(policy.may_write(path)) and not is_protected


def _in_read_only(path: str, policy: Policy, facts: PathFacts) -> Remedy:
    is_workspace = any(is_at_or_below(path, workspace) for workspace in facts.workspaces)
    if not is_workspace or set(path.split("/")) & set(PROTECTED_NAMES):
        return _instead("a read-only sandbox writes nothing", policy, facts, is_file=True)
    is_asked = facts.request is not None and facts.request.policy.filesystem is Filesystem.WORKSPACE
    decides = _overruled(facts, RequestField.FILESYSTEM, is_asked=is_asked, spares='"workspace-write"')
    if decides is not None:
        return _instead(decides, policy, facts)
    return Remedy(
        text='sandbox_mode = "workspace-write"',
        where=f"{_config_file(facts)}, above the first [table], in place of another sandbox_mode; {_AGAIN}",
        once="codex -s workspace-write",
    )


def _instead(reason: str, policy: Policy | None, facts: PathFacts, *, is_file: bool = False) -> Remedy:
    """Return what to do where no setting is narrow enough, or none would have an effect."""
    choices = ["approve that command"]
    if policy is not None and policy.approval == "never":
        is_asked = facts.request is not None and facts.request.policy.approval == "on-request"
        can_ask = _overruled(facts, RequestField.APPROVAL, is_asked=is_asked) is None
        choices = ["start Codex with `-a on-request` and approve that command"] if can_ask else []
    choices += [_ELSEWHERE] if is_file else []
    others = f"{', '.join(choices)}, or " if choices else ""
    return Remedy(f"{others}{_BY_HAND}: {reason}")


# ---------------------------------------------------------------- Codex: the network


def turn_network(
    wanted: Literal[Network.ON, Network.OFF], policy: Policy | None, facts: PathFacts
) -> Remedy | None:
    """Return the settings that turn the network on or off, unless they were asked for, or would have no
    effect. Files stay as they are."""
    if policy is not None and wanted is Network.ON and policy.network is not Network.OFF:
        return None
    if policy is not None and wanted is Network.ON and not policy.writable_roots:
        return _instead("a read-only sandbox has no network", policy, facts)
    profile, value = _profile(policy, facts), "true" if wanted is Network.ON else "false"
    is_asked = facts.request is not None and facts.request.policy.network is wanted
    # the network of a mode is opened by a setting of its own, that of a managed profile is not
    spares = "sandbox_mode" if profile is None else None
    if (decides := _overruled(facts, RequestField.NETWORK, is_asked=is_asked, spares=spares)) is not None:
        words = Remedy(f"the network stays on: {decides}")
        return words if wanted is Network.OFF else _instead(decides, policy, facts)
    if profile is None:
        return _table(_WORKSPACE_WRITE, {"network_access": value}, facts)
    return _profile_entry(profile, "network", {"enabled": value}, facts)


def _network_remedy(entry: LedgerEntry | Denial, policy: Policy | None, facts: PathFacts) -> Remedy | None:
    if policy is None or policy.network in (Network.ON, Network.UNKNOWN):
        return None
    host = entry.target or ""
    # with the network on, a socket would be open as well, and with it all that its server does outside
    is_remote = _HOST.fullmatch(host) and not _THIS_MACHINE.fullmatch(host.strip("[]"))
    if not is_remote or entry.operation == "bind":
        return _instead(f"no setting opens {host or 'an unknown host'} alone", policy, facts)
    if policy.network is Network.MEDIATED:
        return _instead(f"the domains that its proxy allows do not have {host}", policy, facts)
    return turn_network(Network.ON, policy, facts)


# ---------------------------------------------------------------- what decides instead of a setting


def _instead_of_root(path: str, policy: Policy | None, facts: PathFacts) -> str | None:
    """Return what decides instead of a further writable root for `path`, or None if one would help."""
    request = facts.request
    if request is None or policy is None:
        return None
    asked, fields = request.policy, (RequestField.WRITABLE_ROOTS, RequestField.FILESYSTEM)
    field = next((each for each in fields if request.origin(each) is not None), fields[0])
    roots = [root for root in asked.writable_roots if is_at_or_below(path, root)]
    if any(facts.kinds.get(root) is PathKind.MISSING for root in roots):
        return f"{request.origin(field)} names a directory that does not exist: create it, and start again"
    is_asked = asked.filesystem is Filesystem.WORKSPACE and bool(asked.may_write(path))
    if decides := _overruled(facts, field, is_asked=is_asked, spares="sandbox_mode"):
        return decides
    return _overruled(facts, fields[1]) if _profile(policy, facts) is not None else None


def _overruled(
    facts: PathFacts, field: RequestField, *, is_asked: bool = False, spares: str | None = None
) -> str | None:
    """Return what decides a part, whatever is asked for, or None if a setting would have an effect.

    Args:
        is_asked: whether the request has the value of the setting already, perhaps from nowhere.
        spares: words in a setting of an administrator that leaves the choice to the user.
    """
    request = facts.request
    if request is None:
        return None
    asked, given = request.origin(field), request.given_origin(field)
    is_managed = given is not None and given.layer is RequestLayer.MANAGED
    is_barred = given is not None and is_managed and (spares is None or spares not in given.text)
    if not is_barred and not (is_asked and asked is not None):
        return None
    if given is not None and given != asked:
        return f"{given} decides, whatever is asked for"
    if asked is not None and asked.file in request.changed_files:
        return f"{asked} was written after its start: start it again"
    chosen = "" if request.is_fixed else ": another one may have been chosen in it (`/permissions`)"
    return f"{asked} was not kept{chosen}"


# ---------------------------------------------------------------- the settings of Codex
# Blocks of `config.toml`, rules, and `-c` options, tried on 0.169. A dotted key that is appended to the file
# would fall into its last table, and Codex would not start. A block with its own header can be appended,
# unless the table is there already: then the line belongs into it.

_WORKSPACE_WRITE: Final = "sandbox_workspace_write"
_BUILT_IN_WORKSPACE: Final = ":workspace"
"""A permission profile of Codex; profiles of the user may extend it, and cannot change it."""
_EXTENDED: Final = "workspace-extended"
"""Name of a profile that extends it."""
_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")
_TEMPORARY: Final = ("/tmp", "/private/tmp")  # noqa: S108 - of the policy
_AGAIN: Final = "then start Codex again"


def exclude_flags(facts: PathFacts) -> Remedy:
    """Return the settings that remove inherited flags.

    Codex sets a true one again after the filter (0.169), so nothing is hidden.
    """
    return _table("shell_environment_policy", {"exclude": _array(["CODEX_SANDBOX*"])}, facts)


def _writable_root(place: Place, policy: Policy | None, facts: PathFacts) -> Remedy | None:
    """Return the settings that make one more directory writable; None for a profile with an unusual name."""
    root = place.directory
    condition = "" if place.known or place.create else ", if that directory exists"
    profile = _profile(policy, facts)
    if profile is not None:
        entries = {_text(root): _text("write")}
        remedy = _profile_entry(profile, "filesystem", entries, facts, condition)
    else:
        roots = {"writable_roots": _array([*_extra_roots(policy, facts), root])}
        adds_to = "" if policy else "its writable_roots"
        remedy = _table(_WORKSPACE_WRITE, roots, facts, condition, adds_to)
    if remedy is None or not place.create:
        return remedy
    return replace(
        remedy,
        where=with_directories(remedy.where or "", [root]),
        once=remedy.once and f"mkdir -p {shlex.quote(root)} && {remedy.once}",
    )


def _extra_roots(policy: Policy | None, facts: PathFacts) -> list[str]:
    """Return the writable roots that were configured: not the working directory, temporary directories, or
    what Codex adds itself."""
    own = {*facts.workspaces, *_TEMPORARY, f"{facts.codex_home or '~/.codex'}/memories"}
    roots = dict.fromkeys(policy.writable_roots) if policy else ()
    configured = (root for root in roots if root not in own and root.startswith("/"))
    return [root for root in configured if not root.endswith("/.codex/memories")]


def _table(
    name: str, entries: Mapping[str, str], facts: PathFacts, condition: str = "", adds_to: str = ""
) -> Remedy:
    """Return entries of one table of `config.toml`.

    Args:
        entries: keys and values, as TOML.
        condition: words behind the place.
        adds_to: what the value has to be added to if its present value is not known: then `once` is
            None, since it would replace that.
    """
    there = (
        f"add the path to {adds_to}" if adds_to else "put the line there, in place of one with the same key"
    )
    return Remedy(
        text=f"[{name}]\n{_lines(entries)}",
        where=f"{_config_file(facts)}, at the end{condition}; if it has a table [{name}] already, {there};"
        f" {_AGAIN}",
        once=None if adds_to else _codex(*(f"{name}.{key}={value}" for key, value in entries.items())),
    )


def _profile(policy: Policy | None, facts: PathFacts) -> str | None:
    """Return the permission profile in force, by the log or by what was asked for."""
    return facts.profile if policy is None or policy.profile is None else policy.profile


def _profile_entry(
    profile: str, part: str, entries: Mapping[str, str], facts: PathFacts, condition: str = ""
) -> Remedy | None:
    """Return entries of a permission profile (0.138+). In these Codex ignores `[sandbox_workspace_write]`."""
    name = f"permissions.{_EXTENDED if profile == _BUILT_IN_WORKSPACE else profile}"
    option = f"{name}.{part}={_inline(entries)}"
    if profile == _BUILT_IN_WORKSPACE:
        extended, built_in = _text(_EXTENDED), _text(_BUILT_IN_WORKSPACE)
        return Remedy(
            text=f"[{name}]\nextends = {built_in}\n\n[{name}.{part}]\n{_lines(entries)}",
            where=f"{_config_file(facts)}, at the end{condition}, with `default_permissions = {extended}`"
            f" above the first [table]; {_AGAIN}",
            once=_codex(f"default_permissions={extended}", f"{name}.extends={built_in}", option),
        )
    if not _BARE_KEY.fullmatch(profile):
        return None
    return replace(_table(f"{name}.{part}", entries, facts, condition), once=_codex(option))


def _config_file(facts: PathFacts) -> str:
    home = facts.codex_home
    is_usual = home is None or home in {f"{user}/.codex" for user in facts.homes}
    return f"{'~/.codex' if is_usual else home}/config.toml"


def _codex(*options: str) -> str:
    return " ".join(("codex", *(f"-c {shlex.quote(option)}" for option in options)))


def _text(value: str) -> str:
    """Return a basic string of TOML and Starlark."""
    return json.dumps(value, ensure_ascii=False)


def _array(values: Iterable[str]) -> str:
    return f"[{', '.join(map(_text, values))}]"


def _inline(entries: Mapping[str, str]) -> str:
    return f"{{{', '.join(f'{key} = {value}' for key, value in entries.items())}}}"


def _lines(entries: Mapping[str, str]) -> str:
    return "\n".join(f"{key} = {value}" for key, value in entries.items())


# ---------------------------------------------------------------- the settings of Claude Code
# Tried on 2.1.330, in a file and after `--settings` (`tests/live/test_claude_live.py`): lists of all files
# are joined, a directory that does not exist is left out of the sandbox, and the files that Claude Code
# protects stay read-only.


def _claude_remedy(
    entry: LedgerEntry | Denial, policy: Policy, facts: PathFacts, script: str
) -> Remedy | None:
    """Return the remedy for a denial by the sandbox of Claude Code. Arguments: `remedy_for`."""
    for pattern in facts.excluded:  # `git`, `git *`, `docker:*`
        named = pattern.replace(":*", " *").removesuffix(" *").split()
        if named and script.split()[: len(named)] == named:
            inside = "and the command ran inside all the same"
            return Remedy(f"{_BY_HAND}: `sandbox.excludedCommands` has `{pattern}`, {inside}")
    if entry.what == "filesystem" and entry.target:
        return _claude_filesystem_remedy(posixpath.normpath(entry.target), entry.operation, policy, facts)
    if entry.what == "network" and entry.target and "/" not in entry.target:
        return _claude_settings({"network": {"allowedDomains": [entry.target]}}, facts)
    return None


def _claude_filesystem_remedy(
    path: str, operation: Operation, policy: Policy, facts: PathFacts
) -> Remedy | None:
    is_workspace = policy.filesystem is Filesystem.WORKSPACE
    if not _EXACT.fullmatch(path) or not is_workspace or policy.may_write(path):
        return None
    if any(is_at_or_below(path, root) for root in policy.writable_roots):
        return Remedy(f"Claude Code keeps {path} read-only in every sandbox: write elsewhere, or {_BY_HAND}")
    place = place_of(path, operation, facts)
    reason = place.obstacle or _instead_of_root(path, policy, facts)
    if reason is not None:
        return Remedy(f"{_ELSEWHERE}, or {_BY_HAND}: {reason}")
    remedy = _claude_settings({"filesystem": {"allowWrite": [place.directory]}}, facts)
    if not place.create:
        return remedy
    create = f"mkdir -p {shlex.quote(place.directory)}"
    return replace(
        remedy,
        where=f"{remedy.where}; before that, `{create}`: a directory that does not exist is left out",
        once=f"{create} && {remedy.once}",
    )


def _claude_settings(sandbox: Mapping[str, Any], facts: PathFacts) -> Remedy:
    """Return an entry of `sandbox` in settings.json, and the option for one run."""
    home = facts.claude_home or "~/.claude"
    return Remedy(
        text=json.dumps({"sandbox": sandbox}),
        where=f"{home}/settings.json, merged with what is there; then start Claude Code again",
        once=f"claude --settings {shlex.quote(json.dumps({'sandbox': sandbox}, separators=(',', ':')))}",
    )
