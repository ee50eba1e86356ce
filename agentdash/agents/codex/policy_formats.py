"""Parse Codex's policies of all versions into one shape.

Sources: `turn_context` and `thread_settings_applied` (`permission_profile` since 0.125, `sandbox_policy`
before and beside it); in files of 2025 the `<environment_context>` message; the arguments of the sandbox
helper.
"""

from __future__ import annotations

import contextlib
import json
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

from agentdash.model.decoders import JsonDecoder
from agentdash.model.policy import TMPDIR, AccessMode, Filesystem, Grant, Network, Policy, PolicyRule
from agentdash.model.process import Launcher
from agentdash.model.sanitize import clean_line

_SLASH_TMP: Final = "/tmp"  # noqa: S108 - a name in a policy, not a file to write
_ACCESS_MODES: Final[dict[str, AccessMode]] = {
    "read": "read",
    "write": "write",
    **dict.fromkeys(("deny", "none"), "deny"),
}
"""`none` until 0.130."""
_SPECIAL_PATHS: Final = {"root": "/", "slash_tmp": _SLASH_TMP, "tmpdir": TMPDIR}
_PROTECTED: Final = (".git", ".agents", ".codex", ".aws")
"""Read-only at the top of every writable root, even if the policy does not list them. Through 0.150 a policy
lists the first three, and the last is not protected."""


def from_turn(payload: Mapping[str, Any]) -> Policy | None:
    """Parse the policy of a `turn_context` payload or of `thread_settings`, or None.

    `permission_profile` is canonical where there is one: `sandbox_policy` beside it is a lossy copy
    (0.125-0.169).
    """
    cwd = _text(payload.get("cwd")) or ""
    named = _texts(payload.get("workspace_roots")) or _texts(payload.get("runtime_workspace_roots"))
    workspaces = tuple(dict.fromkeys((cwd, *named)))
    profile, legacy = payload.get("permission_profile"), payload.get("sandbox_policy")
    if isinstance(profile, Mapping) and profile.get("type") in ("managed", "disabled", "external"):
        policy = from_profile(profile, workspaces)
    elif isinstance(legacy, Mapping):
        policy = from_sandbox_policy(legacy, cwd)
    elif profile is not None or payload.get("approval_policy") is not None:
        policy = Policy()
    else:
        return None
    network, enforced_by = policy.network, policy.enforced_by
    if network is Network.ON and enforced_by == "codex":
        if isinstance(payload.get("network"), Mapping):  # of allowed domains
            network = Network.MEDIATED
        elif policy.filesystem is Filesystem.UNRESTRICTED:  # nothing to enforce: Codex starts no sandbox
            enforced_by = "nobody"
    active = payload.get("active_permission_profile")
    return msgspec.structs.replace(
        policy,
        network=network,
        enforced_by=enforced_by,
        approval=_approval(payload.get("approval_policy")),
        reviewer=_text(payload.get("approvals_reviewer")),
        profile=_text(active.get("id")) if isinstance(active, Mapping) else None,
    )


def from_environment_context(text: str) -> tuple[Policy | None, str | None, str | None]:
    """Parse policy and cwd of an `<environment_context>` message (0.20-0.9x: the only place, or the
    first), and the name of the user's shell (0.38 to 0.169)."""
    tags = {name: clean_line(value) for name, value in re.findall(r"<(\w+)>([^<]*)</\1>", text)}
    cwd = tags.get("cwd") or _line(text, "Current working directory")
    mode = tags.get("sandbox_mode") or _line(text, "Sandbox mode")
    if not mode:
        return None, cwd, tags.get("shell")
    network = tags.get("network_access") or _line(text, "Network access")
    roots = re.findall(r"<root>([^<]*)</root>", text)
    legacy = {"type": mode, "network_access": network == "enabled", "writable_roots": roots}
    approval = tags.get("approval_policy") or _line(text, "Approval policy")
    policy = msgspec.structs.replace(from_sandbox_policy(legacy, cwd or ""), approval=approval)
    return policy, cwd, tags.get("shell")


def from_profile(profile: Mapping[str, Any], workspaces: Sequence[str]) -> Policy:
    """Parse a `permission_profile` object (0.125+), also found in the arguments of the sandbox helper
    (0.128+).

    Args:
        profile: the decoded JSON.
        workspaces: the directories of `project_roots`; the working directory first.
    """
    kind, files = profile.get("type"), profile.get("file_system")
    if kind == "disabled":
        return Policy(Filesystem.UNRESTRICTED, Network.ON, enforced_by="nobody")
    network = {"restricted": Network.OFF, "enabled": Network.ON}.get(
        str(profile.get("network")), Network.UNKNOWN
    )
    if kind == "external":
        return Policy(Filesystem.UNRESTRICTED, network, enforced_by="external")
    match files if kind == "managed" else None:
        case {"type": "unrestricted"}:
            return Policy(Filesystem.UNRESTRICTED, network)
        case {"type": "restricted", "entries": list(entries)}:
            read = [_rules(entry, workspaces) for entry in entries]
        case _:
            read = [None]
    if None in read:
        return Policy(network=network)
    # 0.169 repeats entries of protected paths at the first turn of a thread that began with /review
    rules = tuple(dict.fromkeys(rule for of_entry in read for rule in of_entry or ()))
    return Policy(classify(rules), network, (*rules, *_protections(rules)))


def _protections(rules: Sequence[PolicyRule]) -> Iterator[PolicyRule]:
    """Yield the read-only paths that Codex adds to writable roots by itself."""
    roots = [rule.path for rule in rules if rule.access == "write" and not rule.glob and rule.path != "/"]
    named = {rule.path for rule in rules}
    listed = {posixpath.basename(path) for path in named if posixpath.dirname(path) in roots}
    names = _PROTECTED[:-1] if listed >= set(_PROTECTED[:-1]) and _PROTECTED[-1] not in listed else _PROTECTED
    for root in roots:
        yield from (
            PolicyRule(path, "read") for name in names if (path := posixpath.join(root, name)) not in named
        )


def _rules(entry: Any, workspaces: Sequence[str]) -> list[PolicyRule] | None:
    """Parse one entry, or return None if it is unknown. `project_roots` means every workspace (paths instead
    since 0.132)."""
    access = _ACCESS_MODES.get(str(entry.get("access"))) if isinstance(entry, Mapping) else None
    if access is None:
        return None
    match entry.get("path"):
        case {"type": "glob_pattern", "pattern": str(pattern)}:
            return [PolicyRule(clean_line(pattern), access, glob=True)]
        case {"type": "path", "path": str(path)}:
            return [PolicyRule(clean_line(path), access)]
        case {"value": {"kind": "project_roots", **value}}:
            roots = workspaces
        case {"value": {"kind": "current_working_directory", **value}}:
            roots = workspaces[:1]
        case {"value": {"kind": str(kind), **value}} if kind in _SPECIAL_PATHS:
            roots = (_SPECIAL_PATHS[kind],)
        case {
            "value": {}
        }:  # `minimal`: system paths to read; a later kind that is not just read could be anything
            return [] if access == "read" else None
        case _:
            return None
    sub = _text(value.get("subpath"))
    return [PolicyRule(posixpath.join(root, sub) if sub else root, access) for root in roots]


def parse_grant(output: str) -> Grant | None:
    """Parse the output of `request_permissions`: what was granted of what was asked for; None: nothing.

    `{"permissions": {"network": {"enabled": true}, "file_system": {"write": [...]}}, "scope": "turn"}`, with
    null in the place of a part that was not granted, or `entries` of `{path, access}` (0.126 to 0.171).
    """
    try:
        granted = _grant.decode(output)
    except (msgspec.DecodeError, RecursionError):
        return None
    files = granted.permissions.file_system or {}
    lists: list[tuple[AccessMode, Any]] = [("read", files.get("read")), ("write", files.get("write"))]
    rules = [PolicyRule(path, access) for access, paths in lists for path in _texts(paths)]
    entries = files.get("entries")
    for entry in entries if isinstance(entries, list) else ():
        rules += _rules(entry, ()) or ()
    network = (granted.permissions.network or {}).get("enabled") is True
    return Grant(granted.scope, network=network, rules=tuple(rules)) if network or rules else None


class _Permissions(msgspec.Struct):
    network: dict[str, Any] | None = None
    file_system: dict[str, Any] | None = None


class _Granted(msgspec.Struct):
    permissions: _Permissions
    scope: Literal["turn", "session"] = "turn"


_grant: Final = JsonDecoder(_Granted)


def classify(rules: Sequence[PolicyRule]) -> Filesystem:
    """Return how much of the disk these rules let be written."""
    if any(r.glob or r.access == "deny" for r in rules):
        return Filesystem.CUSTOM
    writable = {r.path for r in rules if r.access == "write"}
    if "/" in writable:
        return Filesystem.CUSTOM if any(r.access == "read" for r in rules) else Filesystem.UNRESTRICTED
    return Filesystem.WORKSPACE if writable else Filesystem.READ_ONLY


def from_sandbox_policy(policy: Mapping[str, Any], cwd: str) -> Policy:
    """Parse a `sandbox_policy` object: tagged `mode` in 0.36-0.58, `type` since; in the helper's arguments
    through 0.125."""
    kind = policy.get("type") or policy.get("mode")
    network = Network.ON if policy.get("network_access") in (True, "enabled") else Network.OFF
    if kind == "danger-full-access":
        return Policy(Filesystem.UNRESTRICTED, Network.ON, enforced_by="nobody")
    if kind == "external-sandbox":
        return Policy(Filesystem.UNRESTRICTED, network, enforced_by="external")
    if kind == "read-only":
        return Policy(Filesystem.READ_ONLY, network, (PolicyRule("/", "read"),))
    if kind != "workspace-write":
        return Policy()
    roots = [cwd, *_texts(policy.get("writable_roots"))]
    excluded = (policy.get("exclude_slash_tmp"), policy.get("exclude_tmpdir_env_var"))
    roots += [root for root, is_out in zip((_SLASH_TMP, TMPDIR), excluded, strict=True) if is_out is not True]
    writable = (PolicyRule(root, "write") for root in dict.fromkeys(roots) if root)
    return Policy(Filesystem.WORKSPACE, network, (PolicyRule("/", "read"), *writable))


def _approval(value: Any) -> str | None:
    if isinstance(value, str):
        return clean_line(value)
    return "granular" if isinstance(value, Mapping) and "granular" in value else None


def _line(text: str, label: str) -> str | None:
    """Return a value of the plain-text form of the context, `Sandbox mode: read-only`."""
    match = re.search(rf"^\s*{label}:\s*(\S.*)$", text, re.MULTILINE)
    return clean_line(match.group(1)) if match else None


def _text(value: Any) -> str | None:
    return clean_line(value) if isinstance(value, str) else None


def _texts(value: Any) -> list[str]:
    return [clean_line(v) for v in value if isinstance(v, str)] if isinstance(value, list) else []


# ---------------------------------------------------------------- arguments of the sandbox launcher
#
# | launcher | the policy is in |
# |---|---|
# | `codex-linux-sandbox` | `--permission-profile` (0.128+) |
# | | `--file-system-sandbox-policy` and `--network-sandbox-policy` (0.115+) |
# | | `--sandbox-policy` (before) |
# | `bwrap` | its mounts, and `--unshare-net` |
# | `sandbox-exec` (macOS) | the profile after `-p`, and `-DWRITABLE_ROOT_N=DIR` |


_LINUX: Final = "codex-linux-sandbox"
_BWRAP: Final = "bwrap"
_MACOS: Final = "sandbox-exec"
_LAUNCHERS: Final = (_LINUX, _BWRAP, _MACOS, "codex-execve-wrapper")
_BINDS: Final = re.compile(r"--(?:dev-)?(?P<read>ro-)?bind(?:-try)?")
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


_PRINTED: Final = re.compile(
    r"^\s*(?:\S+\s+)?1\s.*?(?P<line>(?:/\S*/)?(?:bwrap|codex-linux-sandbox) .+)$", re.MULTILINE
)


def printed_launcher(script: str, output: str) -> Launcher | None:
    """Return the launcher of a command that has printed it, or None: process 1 of its own namespace, as `ps`
    shows that. The arguments end with the command.

    Args:
        script: of the command.
        output: what it printed.
    """
    own = " ".join(script.split())
    quoted = own.replace("'", """'"'"'""")  # the user's shell is started first, and is given the script so
    for match in _PRINTED.finditer(output):
        line = " ".join(match["line"].split())
        if own and line.rstrip("'").endswith((f" {own}".rstrip("'"), f" '{quoted}".rstrip("'"))):
            argv = list(_words(line))
            return read_launcher(argv[0], argv)
    return None


def _words(line: str) -> Iterator[str]:
    """Yield the arguments in a line of `ps`, which has no quotes: a JSON object is one."""
    at = 0
    while at < len(line):
        end = line.find(" ", at)
        if line[at] == "{":
            with contextlib.suppress(json.JSONDecodeError):
                _, end = json.JSONDecoder().raw_decode(line, at)
        yield line[at:] if end < 0 else line[at:end]
        at = len(line) if end < 0 else end + 1


def _policy(name: str, argv: Sequence[str]) -> Policy | None:
    """Return the policy in a launcher's arguments, or None if it is unreadable (capped, or of a later
    Codex)."""
    readers = {_LINUX: _of_helper, _BWRAP: bwrap_policy, _MACOS: _of_seatbelt}
    try:
        return readers[name](argv) if name in readers else None
    except msgspec.DecodeError:
        return None


def _of_helper(argv: Sequence[str]) -> Policy | None:
    options = _options(argv)
    cwd = options.get("--sandbox-policy-cwd") or options.get("--command-cwd") or ""
    if profile := options.get("--permission-profile"):
        return from_profile(_object(profile), (cwd,))
    if text := options.get("--file-system-sandbox-policy"):
        files = _object(text)
        files = {"type": files.get("kind"), **files}
        network = _json.decode(options.get("--network-sandbox-policy") or "null")
        return from_profile({"type": "managed", "file_system": files, "network": network}, (cwd,))
    legacy = options.get("--sandbox-policy")
    return from_sandbox_policy(_object(legacy), cwd) if legacy else None


def bwrap_policy(argv: Sequence[str]) -> Policy:
    """Return the policy in the mounts of bubblewrap."""
    rules: list[PolicyRule] = []
    network = Network.ON
    for at, option in enumerate(argv):
        if option == "--":
            break
        if (bind := _BINDS.fullmatch(option)) and at + 2 < len(argv):
            rules.append(PolicyRule(argv[at + 2], "read" if bind["read"] else "write"))
        elif option in ("--unshare-net", "--unshare-all", "--share-net"):
            network = Network.ON if option == "--share-net" else Network.OFF
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
