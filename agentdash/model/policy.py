"""Sandbox policies: which paths may be written, and whether the network is on."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from enum import StrEnum
from typing import Final, Literal

import msgspec

SANDBOX_MODES: Final = ("read-only", "workspace-write", "danger-full-access")
"""Codex's names of policies (`--sandbox`)."""


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
    """The network policy; only `on` gives a command the host's network."""

    OFF = "off"
    ON = "on"
    MEDIATED = "mediated"
    """On, but through the CLI's own proxy and its list of domains."""
    UNKNOWN = "unknown"


AccessMode = Literal["read", "write", "deny"]
TMPDIR: Final = "$TMPDIR"
"""Stands for the directory that a command's own `TMPDIR` names."""
_SANDBOX_PATHS: Final = ("/dev", "/proc", "/sys")
"""Paths that every sandbox has for itself: no policy decides about them."""


class PolicyRule(msgspec.Struct, frozen=True, omit_defaults=True):
    """One entry of a policy: the most specific that covers a path decides."""

    path: str
    """Absolute, or `$TMPDIR`[/...], or, if `glob`, a pattern."""
    access: AccessMode
    glob: bool = False


class Policy(msgspec.Struct, frozen=True, omit_defaults=True):
    """A policy in force."""

    filesystem: Filesystem = Filesystem.UNKNOWN
    network: Network = Network.UNKNOWN
    rules: tuple[PolicyRule, ...] = ()
    """Empty for unrestricted and unknown policies."""
    approval: str | None = None
    """`never`, `on-request`, `untrusted`, `on-failure`, `granular`."""
    reviewer: str | None = None
    """`approvals_reviewer`: the user, or an automatic reviewer (0.145+)."""
    enforced_by: Literal["codex", "nobody", "external", "agent"] = "codex"
    """`agent`: another worker CLI than Codex starts the sandbox. `nobody`: full access, no sandbox is
    started. `external`: another sandbox is stated to exist already."""
    profile: str | None = None
    """`active_permission_profile.id`, e.g. `:workspace` (0.151+)."""

    @property
    def has_agent_sandbox(self) -> bool:
        """Whether the agent is to build a sandbox for its commands."""
        return self.enforced_by in ("codex", "agent")

    @property
    def is_full_access(self) -> bool:
        """Whether no sandbox at all is to be built."""
        return self.enforced_by == "nobody"

    @property
    def is_recorded(self) -> bool:
        """Whether the session file states it: Claude Code before 2.1.330 states its approval alone."""
        is_unknown = self.filesystem is Filesystem.UNKNOWN and self.network is Network.UNKNOWN
        return not (is_unknown and self.enforced_by == "agent")

    @property
    def restricts_files(self) -> bool:
        """Whether the agent's sandbox is to keep files from being written."""
        open_or_unknown = (Filesystem.UNRESTRICTED, Filesystem.UNKNOWN)
        return self.has_agent_sandbox and self.filesystem not in open_or_unknown

    @property
    def writable_roots(self) -> tuple[str, ...]:
        """Return the paths below which writing is allowed; `/` alone where everything is."""
        if self.filesystem is Filesystem.UNRESTRICTED:
            return ("/",)
        return tuple(dict.fromkeys(r.path for r in self.rules if r.access == "write" and not r.glob))

    @property
    def has_deny(self) -> bool:
        """Return whether paths are hidden from reading: then even an approved escalation stays in a sandbox
        (openai/codex#29141)."""
        return any(r.access == "deny" for r in self.rules)

    def may_write(self, path: str, tmpdir: str | None = None) -> bool | None:
        """Return whether this absolute path may be written; None: the policy does not decide it (unknown
        tags, relative paths, `/dev`).

        Args:
            path: absolute and normalised by the caller as far as symlinks go.
            tmpdir: what `TMPDIR` is for the command, where known.
        """
        if self.filesystem is Filesystem.UNRESTRICTED:
            return True
        if self.filesystem is Filesystem.UNKNOWN or not path.startswith("/"):
            return None
        path = posixpath.normpath(path)
        if any(path == own or path.startswith(own + "/") for own in _SANDBOX_PATHS):
            return None
        covering = [(depth, rule) for rule in self.rules if (depth := _covered_depth(rule, path, tmpdir))]
        deepest = max((depth for depth, _ in covering), default=0)
        decisive = [rule for depth, rule in covering if depth == deepest]
        # of several entries for the same path the strictest one decides
        return bool(decisive) and all(rule.access == "write" for rule in decisive)

    def grants_less_than(self, other: Policy) -> tuple[str, ...]:
        """Return the roots that may be written under `other` and not under this policy, except
        `$TMPDIR`, whose place is not known."""
        return tuple(root for root in other.writable_roots if self.may_write(root) is False)

    def brief(self) -> str:
        """Return the policy in plain words: `full access`, `workspace, no network`."""
        if self.filesystem is Filesystem.UNRESTRICTED and self.network is Network.ON:
            return "full access"
        if not self.is_recorded:
            return "not recorded"
        name = {
            "read-only": "read-only",
            "workspace": "workspace",
            "unrestricted": "all files",
            "custom": "custom files",
            "unknown": "files unknown",
        }[self.filesystem]
        network = {
            "off": "no network",
            "on": "network on",
            "mediated": "network via proxy",
            "unknown": "network unknown",
        }[self.network]
        return f"{name}, {network}"


class Grant(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a person granted on request, for a turn or for as long as the process of the thread lives."""

    scope: Literal["turn", "session"]
    network: bool = False
    rules: tuple[PolicyRule, ...] = ()
    earlier: bool = False
    """Whether its turn is over: the thread may have been resumed since, and another process has no grants."""


def with_grants(policy: Policy, grants: Sequence[Grant]) -> Policy:
    """Return a policy with what was granted beyond it."""
    if not policy.has_agent_sandbox or policy.filesystem is Filesystem.UNKNOWN:
        return policy
    network, filesystem = policy.network, policy.filesystem
    opened = [grant for grant in grants if grant.network]
    if opened and network is Network.OFF:
        network = Network.UNKNOWN if all(grant.earlier for grant in opened) else Network.ON
    rules = dict.fromkeys(rule for grant in grants for rule in grant.rules)
    paths = {rule.path for rule in rules if rule.access == "write"}
    kept = [rule for rule in policy.rules if rule.path not in paths]
    if paths and filesystem is Filesystem.READ_ONLY:
        filesystem = Filesystem.WORKSPACE
    return msgspec.structs.replace(
        policy,
        network=network,
        filesystem=filesystem,
        rules=tuple(dict.fromkeys((*kept, *rules))) if rules else policy.rules,
    )


def _covered_depth(rule: PolicyRule, path: str, tmpdir: str | None) -> int:
    """Return how specific the rule is for this path: the length of the covering root, at least 1; 0: it does
    not cover it."""
    root = rule.path
    if root.startswith(TMPDIR):
        if tmpdir is None:
            return 0
        root = tmpdir + root[len(TMPDIR) :]
    if rule.glob:
        return len(path) if _compile_glob(root).fullmatch(path) else 0
    root = posixpath.normpath(root)
    if root in ("/", path) or path.startswith(root + "/"):
        return len(root)
    return 0


def _compile_glob(pattern: str) -> re.Pattern[str]:
    """Compile a gitignore-like pattern: `**` crosses directories, `*` and `?` do not."""
    parts = re.split(r"(\*\*/?|\*|\?)", pattern)
    wildcards = {"**": ".*", "**/": "(?:.*/)?", "*": "[^/]*", "?": "[^/]"}
    return re.compile("".join(wildcards.get(part, re.escape(part)) for part in parts))
