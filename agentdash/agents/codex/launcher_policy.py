"""Read the policy that Codex applied to a command from the arguments of the sandbox launcher above it.

| launcher | the policy is in |
|---|---|
| `codex-linux-sandbox` | `--permission-profile` (0.128+) |
| | `--file-system-sandbox-policy` and `--network-sandbox-policy` (0.115+) |
| | `--sandbox-policy` (before) |
| `bwrap` | its mounts, and `--unshare-net` |
| `sandbox-exec` (macOS) | the profile after `-p`, and `-DWRITABLE_ROOT_N=DIR` |
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from agentdash.agents.codex.policy_formats import from_profile, from_sandbox_policy
from agentdash.model.policy import AccessMode, Filesystem, Network, Policy, PolicyRule
from agentdash.model.process import Launcher

_LINUX: Final = "codex-linux-sandbox"
_BWRAP: Final = "bwrap"
_MACOS: Final = "sandbox-exec"
_LAUNCHERS: Final = (_LINUX, _BWRAP, _MACOS, "codex-execve-wrapper")
_BINDS: Final[Mapping[str, AccessMode]] = {
    "--bind": "write",
    "--bind-try": "write",
    "--dev-bind": "write",
    "--dev-bind-try": "write",
    "--ro-bind": "read",
    "--ro-bind-try": "read",
}
"""Options of bubblewrap that mount SOURCE at DESTINATION."""
_WRITABLE_ROOT: Final = re.compile(r"-DWRITABLE_ROOT_\d+(?:_R\w+)?=(/.*)")
_ANY_WRITE: Final = re.compile(r'\(allow file-write\*\s*(?:\(regex #"\^/"\)|\(subpath "/"\)|\))')
_ANY_NETWORK: Final = re.compile(r"\(allow network(?:\*|-outbound)\s*\)")
_json = msgspec.json.Decoder()


def read_launcher(name: str, argv: Sequence[str]) -> Launcher | None:
    """Return the launcher that a process is, with the policy in its arguments, or None.

    Args:
        name: `comm` of the process. It may be anything (`3`), so its program's name counts as well.
    """
    names = (posixpath.basename(argv[0]) if argv else "", name)
    found = next((launcher for launcher in _LAUNCHERS if launcher in names), None)
    return Launcher(found, _policy(found, argv)) if found else None


def _policy(name: str, argv: Sequence[str]) -> Policy | None:
    """Return the policy in a launcher's arguments, or None if it is unreadable (capped, or of a later
    Codex)."""
    try:
        if name == _LINUX:
            return _of_helper(argv)
        if name == _BWRAP:
            return _of_bwrap(argv)
        return _of_seatbelt(argv) if name == _MACOS else None
    except msgspec.DecodeError:
        return None


def _of_helper(argv: Sequence[str]) -> Policy | None:
    options = _options(argv)
    cwd = options.get("--sandbox-policy-cwd") or options.get("--command-cwd") or ""
    if profile := options.get("--permission-profile"):
        return from_profile(_object(profile), (cwd,))
    if files := options.get("--file-system-sandbox-policy"):
        fields = _object(files)
        network = _json.decode(options.get("--network-sandbox-policy") or "null")
        managed = {
            "type": "managed",
            "file_system": {"type": fields.get("kind"), **fields},
            "network": network,
        }
        return from_profile(managed, (cwd,))
    legacy = options.get("--sandbox-policy")
    return from_sandbox_policy(_object(legacy), cwd) if legacy else None


def _of_bwrap(argv: Sequence[str]) -> Policy:
    rules: list[PolicyRule] = []
    network = Network.ON
    for at, option in enumerate(argv):
        if option == "--":
            break
        if option in _BINDS and at + 2 < len(argv):
            rules.append(PolicyRule(argv[at + 2], _BINDS[option]))
        elif option in ("--unshare-net", "--unshare-all"):
            network = Network.OFF
        elif option == "--share-net":
            network = Network.ON
    writable = {rule.path for rule in rules if rule.access == "write"}
    if "/" in writable:
        return Policy(Filesystem.UNRESTRICTED, network)
    return Policy(Filesystem.WORKSPACE if writable else Filesystem.READ_ONLY, network, tuple(rules))


def _of_seatbelt(argv: Sequence[str]) -> Policy | None:
    profile = next((argv[at + 1] for at, option in enumerate(argv[:-1]) if option == "-p"), None)
    if profile is None:
        return None
    network = Network.ON if _ANY_NETWORK.search(profile) else Network.OFF
    if _ANY_WRITE.search(profile):
        return Policy(Filesystem.UNRESTRICTED, network)
    roots = [match[1] for option in argv if (match := _WRITABLE_ROOT.fullmatch(option))]
    rules = (PolicyRule("/", "read"), *(PolicyRule(root, "write") for root in roots))
    return Policy(Filesystem.WORKSPACE if roots else Filesystem.READ_ONLY, network, rules)


def _options(argv: Sequence[str]) -> dict[str, str]:
    """Return long options and their values, `--name value` or `--name=value`, up to `--`."""
    found: dict[str, str] = {}
    for at, word in enumerate(argv):
        if word == "--":
            break
        name, equals, value = word.partition("=")
        if name.startswith("--"):
            found[name] = value if equals else next(iter(argv[at + 1 : at + 2]), "")
    return found


def _object(text: str) -> Mapping[str, Any]:
    """Parse a JSON object; a bare string is its `type` (`"read-only"`)."""
    value = _json.decode(text)
    return value if isinstance(value, dict) else {"type": value}
