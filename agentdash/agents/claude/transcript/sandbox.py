"""The sandbox as it is described to the model: attachments `sandbox_instructions` (2.1.330)."""

from __future__ import annotations

import posixpath
import re
from typing import Final

import msgspec

from agentdash.agents.launchers import is_always_listed
from agentdash.model.decoders import JsonDecoder
from agentdash.model.policy import TMPDIR, Filesystem, Network, Policy, PolicyRule

_FILESYSTEM: Final = re.compile(r"^Filesystem: (\{.*\})[ \t]*$", re.MULTILINE)
_LEFT_OUT: Final = "... and "
"""Begins the last entry of a list that was cut: `... and 100 more (truncated for prompt size)`."""
_MAX_RULES: Final = 400
NO_SANDBOX: Final = Policy(Filesystem.UNRESTRICTED, Network.ON, enforced_by="nobody")
"""No sandbox is described to the model: none is switched on, or it could not be started."""


class _Reading(msgspec.Struct, rename="camel"):
    deny_only: list[str] = []


class _Writing(msgspec.Struct, rename="camel"):
    allow_only: list[str] | None = None
    deny_within_allow: list[str] = []


class _Filesystem(msgspec.Struct):
    read: _Reading = msgspec.field(default_factory=_Reading)
    write: _Writing = msgspec.field(default_factory=_Writing)


_decoder: Final = JsonDecoder(_Filesystem)


def described_policy(content: str, cwd: str | None) -> Policy:
    """Return the policy that `sandbox_instructions` describe; `NO_SANDBOX` where they are empty.

    Commands reach the network through Claude Code's own proxy alone. What cannot be read is unknown.

    Args:
        content: of the attachment.
        cwd: the session's working directory, `.` in the lists.
    """
    if not content.strip():
        return NO_SANDBOX
    unknown = Policy(enforced_by="agent")
    if (found := _FILESYSTEM.search(content)) is None:
        return unknown
    try:
        files = _decoder.decode(found[1])
    except (msgspec.DecodeError, RecursionError):
        return unknown
    allowed = files.write.allow_only
    if allowed is None or any(path.startswith(_LEFT_OUT) for path in allowed):
        return unknown
    rules = [PolicyRule("/", "read")]
    rules += [_rule(path, "write", cwd) for path in allowed if not is_always_listed(path)]
    rules += [_rule(path, "read", cwd) for path in _named(files.write.deny_within_allow)]
    rules += [_rule(path, "deny", cwd) for path in _named(files.read.deny_only)]
    return Policy(
        filesystem=Filesystem.WORKSPACE,
        network=Network.MEDIATED,
        rules=tuple(rules[:_MAX_RULES]),
        enforced_by="agent",
    )


def _named(paths: list[str]) -> list[str]:
    return [path for path in paths if not path.startswith(_LEFT_OUT)]


def _rule(path: str, access: str, cwd: str | None) -> PolicyRule:
    if path == "." or path.startswith("./"):
        path = posixpath.normpath(posixpath.join(cwd or "/nowhere", path))
    is_pattern = any(character in path for character in "*?[") and not path.startswith(TMPDIR)
    return PolicyRule(path=path, access=access, glob=is_pattern)  # type: ignore[arg-type]
