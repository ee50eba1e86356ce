"""What a thread was told that it may do: one shape for the policies of every Codex era.

Read from `turn_context` and `thread_settings_applied` (`permission_profile` since 0.125, `sandbox_policy` before and beside it) and, in
files of 2025, from the `<environment_context>` message.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, Literal

import msgspec

from agentdash.facts.text import clean_line


class Filesystem(StrEnum):
    """How much of the disk may be written."""

    READ_ONLY = "read-only"
    WORKSPACE = "workspace"
    """The workspace, extra roots, and usually the temporary directories."""
    UNRESTRICTED = "unrestricted"
    CUSTOM = "custom"
    """Entries that fit none of the above, or that hide paths from reading."""
    UNKNOWN = "unknown"
    """A tag of a later Codex: never taken for safe."""


class Network(StrEnum):
    """What the network policy says; only `on` promises a command the host's network."""

    OFF = "off"
    ON = "on"
    MEDIATED = "mediated"
    """On, but through Codex's own proxy and its list of domains."""
    UNKNOWN = "unknown"


Access = Literal["read", "write", "deny"]
TMPDIR: Final = "$TMPDIR"
"""Stands for the directory that a command's own `TMPDIR` names."""
_SLASH_TMP: Final = "/tmp"  # noqa: S108 - a name in a policy, nothing is written there
_ACCESS: Final[dict[str, Access]] = {"read": "read", "write": "write", "deny": "deny", "none": "deny"}
"""`none` until 0.130."""
_SPECIAL: Final = {"root": "/", "slash_tmp": _SLASH_TMP, "tmpdir": TMPDIR}
_PROTECTED: Final = (".git", ".agents", ".codex", ".aws")
"""What stays read-only at the top of every writable root, also where the policy does not say so. Through 0.150 without the last one: there
a policy lists the three others."""
_OWN: Final = ("/dev", "/proc", "/sys")
"""Places of which a sandbox has its own: no policy speaks of them."""


class Rule(msgspec.Struct, frozen=True, omit_defaults=True):
    """One entry of a policy: the most specific that covers a path decides."""

    path: str
    """Absolute, or `$TMPDIR`[/...], or, if `glob`, a pattern."""
    access: Access
    glob: bool = False


class Policy(msgspec.Struct, frozen=True, omit_defaults=True):
    """A policy in force."""

    filesystem: Filesystem = Filesystem.UNKNOWN
    network: Network = Network.UNKNOWN
    rules: tuple[Rule, ...] = ()
    """Empty for unrestricted and unknown policies."""
    approval: str | None = None
    """`never`, `on-request`, `untrusted`, `on-failure`, `granular`."""
    may_ask: tuple[str, ...] = ()
    """Of a granular approval policy: what it may ask about."""
    reviewer: str | None = None
    """`approvals_reviewer`: who answers (0.145+)."""
    enforced_by: Literal["codex", "nobody", "external"] = "codex"
    """`nobody`: full access, Codex starts no sandbox. `external`: somebody else is said to have built one."""
    profile: str | None = None
    """`active_permission_profile.id`, e.g. `:workspace` (0.151+)."""

    @property
    def writable_roots(self) -> tuple[str, ...]:
        """The paths at whose top writing starts to be allowed; `/` alone when everything is."""
        if self.filesystem is Filesystem.UNRESTRICTED:
            return ("/",)
        return tuple(r.path for r in self.rules if r.access == "write" and not r.glob)

    @property
    def has_deny(self) -> bool:
        """Whether paths are hidden from reading: then even an approved escalation stays in a sandbox (openai/codex#29141)."""
        return any(r.access == "deny" for r in self.rules)

    def may_write(self, path: str, tmpdir: str | None = None) -> bool | None:
        """May this absolute path be written under this policy? None: the policy does not say (unknown tags, relative paths, `/dev`).

        Args:
            path: absolute and normalised by the caller as far as symlinks go.
            tmpdir: what `TMPDIR` is for the command, where known.
        """
        if self.filesystem is Filesystem.UNRESTRICTED:
            return True
        if self.filesystem is Filesystem.UNKNOWN or not path.startswith("/"):
            return None
        path = posixpath.normpath(path)
        if any(path == own or path.startswith(own + "/") for own in _OWN):
            return None
        best: tuple[int, bool] | None = None
        for rule in self.rules:
            if not (depth := _covers(rule, path, tmpdir)):
                continue
            # of two entries for the same path the stricter one counts
            candidate = (depth, rule.access == "write")
            if best is None or candidate[0] > best[0] or (candidate[0] == best[0] and best[1] and not candidate[1]):
                best = candidate
        return best is not None and best[1]

    def grants_less_than(self, other: Policy) -> tuple[str, ...]:
        """Roots that may be written under `other` and not under this policy; `$TMPDIR` is left out, nobody knows where it is."""
        return tuple(root for root in other.writable_roots if self.may_write(root) is False)

    def brief(self) -> str:
        """`full`, `read net-`, `ws net-`, `ws net+` ...: the policy in a table cell."""
        name = {"read-only": "read", "workspace": "ws", "unrestricted": "full", "custom": "custom", "unknown": "?"}[self.filesystem]
        net = {"off": " net-", "on": " net+", "mediated": " net~", "unknown": " net?"}[self.network]
        return name if name == "full" and self.network is Network.ON else name + net


def _covers(rule: Rule, path: str, tmpdir: str | None) -> int:
    """How specific the rule is for this path (length of the covering root, at least 1); 0: it does not cover it."""
    root = rule.path
    if root.startswith(TMPDIR):
        if tmpdir is None:
            return 0
        root = tmpdir + root[len(TMPDIR) :]
    if rule.glob:
        return len(path) if _glob(root).fullmatch(path) else 0
    root = posixpath.normpath(root)
    if root in ("/", path) or path.startswith(root + "/"):
        return len(root)
    return 0


def _glob(pattern: str) -> re.Pattern[str]:
    """gitignore-like: `**` crosses directories, `*` and `?` do not."""
    parts = re.split(r"(\*\*/?|\*|\?)", pattern)
    known = {"**": ".*", "**/": "(?:.*/)?", "*": "[^/]*", "?": "[^/]"}
    return re.compile("".join(known.get(p, re.escape(p)) for p in parts))


# ---------------------------------------------------------------- the shapes of the eras


def from_turn(payload: Mapping[str, Any]) -> Policy | None:
    """The policy of a `turn_context` payload or of `thread_settings`; None where it states none.

    `permission_profile` is canonical where there is one: `sandbox_policy` beside it is a lossy copy (0.125-0.169).
    """
    cwd = _text(payload.get("cwd")) or ""
    named = _texts(payload.get("workspace_roots")) or _texts(payload.get("runtime_workspace_roots"))
    workspaces = tuple(dict.fromkeys((cwd, *named)))
    profile, legacy = payload.get("permission_profile"), payload.get("sandbox_policy")
    if isinstance(profile, Mapping) and profile.get("type") in ("managed", "disabled", "external"):
        policy = from_profile(profile, workspaces)
    elif isinstance(legacy, Mapping):
        policy = from_sandbox_policy(legacy, cwd)
    elif isinstance(legacy, str):
        policy = from_sandbox_policy({"type": legacy}, cwd)
    elif profile is not None or payload.get("approval_policy") is not None:
        policy = Policy()
    else:
        return None
    domains = payload.get("network")
    if policy.network is Network.ON and isinstance(domains, Mapping) and policy.enforced_by == "codex":
        policy = msgspec.structs.replace(policy, network=Network.MEDIATED)
    if policy.filesystem is Filesystem.UNRESTRICTED and policy.network is Network.ON and policy.enforced_by == "codex":
        policy = msgspec.structs.replace(policy, enforced_by="nobody")  # nothing is left to enforce, and no sandbox is started
    approval, may_ask = _approval(payload.get("approval_policy"))
    active = payload.get("active_permission_profile")
    return msgspec.structs.replace(
        policy,
        approval=approval,
        may_ask=may_ask,
        reviewer=_text(payload.get("approvals_reviewer")),
        profile=_text(active.get("id")) if isinstance(active, Mapping) else None,
    )


def from_environment_context(text: str) -> tuple[Policy | None, str | None]:
    """Policy and cwd of an `<environment_context>` message (0.20-0.9x, where it is the only place, or the first)."""
    tags = {name: clean_line(value) for name, value in re.findall(r"<(\w+)>([^<]*)</\1>", text)}
    cwd = tags.get("cwd") or _line(text, "Current working directory")
    mode = tags.get("sandbox_mode") or _line(text, "Sandbox mode")
    if not mode:
        return None, cwd
    network = tags.get("network_access") or _line(text, "Network access")
    roots = re.findall(r"<root>([^<]*)</root>", text)
    legacy = {"type": mode, "network_access": network == "enabled", "writable_roots": roots}
    approval = tags.get("approval_policy") or _line(text, "Approval policy")
    return msgspec.structs.replace(from_sandbox_policy(legacy, cwd or ""), approval=approval), cwd


def from_profile(profile: Mapping[str, Any], workspaces: Sequence[str]) -> Policy:
    """The policy of a `permission_profile` object (0.125+); it also stands in the arguments of Codex's sandbox helper (0.128+).

    Args:
        profile: the decoded JSON.
        workspaces: what `project_roots` stands for; the working directory first.
    """
    kind = profile.get("type")
    if kind == "disabled":
        return Policy(Filesystem.UNRESTRICTED, Network.ON, enforced_by="nobody")
    network = {"restricted": Network.OFF, "enabled": Network.ON}.get(str(profile.get("network")), Network.UNKNOWN)
    if kind == "external":
        return Policy(Filesystem.UNRESTRICTED, network, enforced_by="external")
    files = profile.get("file_system")
    if kind != "managed" or not isinstance(files, Mapping):
        return Policy(network=network)
    if files.get("type") == "unrestricted":
        return Policy(Filesystem.UNRESTRICTED, network)
    if files.get("type") != "restricted":
        return Policy(network=network)
    entries = files.get("entries")
    read = [_rules(entry, workspaces) for entry in entries] if isinstance(entries, list) else [None]
    if None in read:
        return Policy(network=network)
    rules = tuple(rule for of_entry in read for rule in of_entry or ())
    return Policy(_classify(rules), network, (*rules, *_protections(rules)))


def _protections(rules: Sequence[Rule]) -> Iterator[Rule]:
    """The read-only tops of writable roots that no rule names: Codex adds them by itself."""
    roots = [rule.path for rule in rules if rule.access == "write" and not rule.glob and rule.path != "/"]
    named = {rule.path for rule in rules}
    listed = {posixpath.basename(path) for path in named if posixpath.dirname(path) in roots}
    names = _PROTECTED[:-1] if listed >= set(_PROTECTED[:-1]) and _PROTECTED[-1] not in listed else _PROTECTED
    for root in roots:
        yield from (Rule(path, "read") for name in names if (path := posixpath.join(root, name)) not in named)


def _rules(entry: Any, workspaces: Sequence[str]) -> list[Rule] | None:
    """The rules of one entry; None where it is not understood. `project_roots` stands for every workspace (paths instead since 0.132)."""
    if not isinstance(entry, Mapping) or not isinstance(path := entry.get("path"), Mapping):
        return None
    if (access := _ACCESS.get(str(entry.get("access")))) is None:
        return None
    if path.get("type") == "glob_pattern":
        return [Rule(_text(path.get("pattern")) or "", access, glob=True)]
    if path.get("type") == "path":
        return [Rule(_text(path.get("path")) or "", access)]
    value = path.get("value")
    if not isinstance(value, Mapping):
        return None
    kind, sub = str(value.get("kind")), _text(value.get("subpath"))
    if kind == "project_roots":
        roots = workspaces
    elif kind == "current_working_directory":
        roots = workspaces[:1]
    elif kind in _SPECIAL:
        roots = (_SPECIAL[kind],)
    else:  # `minimal` is a set of system paths to read; a later kind that is not just read could be anything
        return [] if access == "read" else None
    return [Rule(posixpath.join(root, sub) if sub else root, access) for root in roots]


def _classify(rules: Sequence[Rule]) -> Filesystem:
    if any(r.glob or r.access == "deny" for r in rules):
        return Filesystem.CUSTOM
    writable = {r.path for r in rules if r.access == "write"}
    if "/" in writable:
        return Filesystem.CUSTOM if any(r.access == "read" for r in rules) else Filesystem.UNRESTRICTED
    return Filesystem.WORKSPACE if writable else Filesystem.READ_ONLY


def from_sandbox_policy(policy: Mapping[str, Any], cwd: str) -> Policy:
    """The policy of a `sandbox_policy` object: tagged `mode` in 0.36-0.58, `type` since; in the helper's arguments through 0.125."""
    kind = policy.get("type") or policy.get("mode")
    network = Network.ON if policy.get("network_access") in (True, "enabled") else Network.OFF
    if kind == "danger-full-access":
        return Policy(Filesystem.UNRESTRICTED, Network.ON, enforced_by="nobody")
    if kind == "external-sandbox":
        return Policy(Filesystem.UNRESTRICTED, network, enforced_by="external")
    if kind == "read-only":
        return Policy(Filesystem.READ_ONLY, network, (Rule("/", "read"),))
    if kind != "workspace-write":
        return Policy()
    roots = [cwd, *_texts(policy.get("writable_roots"))]
    if policy.get("exclude_slash_tmp") is not True:
        roots.append(_SLASH_TMP)
    if policy.get("exclude_tmpdir_env_var") is not True:
        roots.append(TMPDIR)
    return Policy(Filesystem.WORKSPACE, network, (Rule("/", "read"), *(Rule(r, "write") for r in dict.fromkeys(roots) if r)))


def _approval(value: Any) -> tuple[str | None, tuple[str, ...]]:
    if isinstance(value, str):
        return clean_line(value), ()
    if isinstance(value, Mapping):
        granular, reject = value.get("granular"), value.get("reject")
        if isinstance(granular, Mapping):
            return "granular", tuple(clean_line(str(k)) for k, v in granular.items() if v is True)
        if isinstance(reject, Mapping):  # 0.102-0.114: the same turned round, true means refuse
            return "granular", tuple(clean_line(str(k)) for k, v in reject.items() if v is False)
    return None, ()


def _line(text: str, label: str) -> str | None:
    """A value of the plain-text form of the context, `Sandbox mode: read-only`."""
    match = re.search(rf"^\s*{label}:\s*(\S.*)$", text, re.MULTILINE)
    return clean_line(match.group(1)) if match else None


def _text(value: Any) -> str | None:
    return clean_line(value) if isinstance(value, str) else None


def _texts(value: Any) -> list[str]:
    return [clean_line(v) for v in value if isinstance(v, str)] if isinstance(value, list) else []
