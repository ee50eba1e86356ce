"""The forms of a remedy: blocks of Codex's `config.toml`, rules, and `-c` options, tried on Codex 0.169.

A dotted key that is appended to `config.toml` would fall into its last table, and Codex would not start. A
block with its own header can be appended, unless the table is there already: then the line belongs into it.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Sequence
from typing import Final

from agentdash.model.denials import PathFacts, Remedy
from agentdash.model.policy import Policy
from agentdash.sandbox.shell import parse
from agentdash.sandbox.shell.syntax import Simple

_WORKSPACE_WRITE: Final = "sandbox_workspace_write"
_BUILT_IN_WORKSPACE: Final = ":workspace"
"""A permission profile of Codex; profiles of the user may extend it, and cannot change it."""
_EXTENDED: Final = "workspace-extended"
"""Name of a profile that extends it."""
_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")
_SHELLS: Final = frozenset(
    ("sh", "bash", "zsh", "dash", "ksh", "fish", "env", "xargs", "sudo", "tmux", "screen", "zellij")
)
"""Programs that run their arguments: a rule for them would allow more than one command. It would with tmux:
`tmux ls ';' new-window COMMAND` begins with `tmux ls`."""


def writable_root(root: str, policy: Policy | None, facts: PathFacts, *, assumed: bool) -> Remedy | None:
    """Return the settings that make one more directory writable; None for a profile with an unusual name.

    Args:
        root: an absolute path.
        policy: the one in force, or None if unknown.
        facts: the working directories, which are no extra roots.
        assumed: whether the directory is not known to exist.
    """
    condition = ", if that directory exists" if assumed else ""
    profile = _profile(policy, facts)
    if profile is None:
        roots = [*_extra_roots(policy, facts), root] if policy else [root]
        return table(
            _WORKSPACE_WRITE,
            {"writable_roots": _array(roots)},
            facts,
            condition=condition,
            adds_to="" if policy else "its writable_roots",
        )
    return _profile_entry(profile, "filesystem", {_text(root): _text("write")}, facts, condition)


def _profile(policy: Policy | None, facts: PathFacts) -> str | None:
    """Return the permission profile in force, by the log or by what was asked for."""
    return facts.profile if policy is None or policy.profile is None else policy.profile


def network_access(policy: Policy | None, facts: PathFacts, *, on: bool = True) -> Remedy | None:
    """Return the settings that turn the network on, or off, and leave files as they are."""
    profile, value = _profile(policy, facts), "true" if on else "false"
    if profile is None:
        return table(_WORKSPACE_WRITE, {"network_access": value}, facts)
    return _profile_entry(profile, "network", {"enabled": value}, facts)


def network_domain(host: str, policy: Policy, facts: PathFacts) -> Remedy | None:
    """Return the settings that let Codex's network proxy connect to one more host."""
    entry = {_text(host): _text("allow")}
    profile = _profile(policy, facts)
    if profile is not None:
        return _profile_entry(profile, "network.domains", entry, facts)
    made = table("features.network_proxy.domains", entry, facts)
    scalar = "where [features] has `network_proxy = true`, it has to be `network_proxy.enabled = true`"
    value = _inline({"enabled": "true", "domains": _inline(entry)})
    return Remedy(
        text=made.text, where=f"{made.where}; {scalar}", once=_codex([f"features.network_proxy={value}"])
    )


def exclude_flags(facts: PathFacts) -> Remedy:
    """Return the settings that remove inherited flags.

    Codex sets a true one again after the filter (0.169), so nothing is hidden.
    """
    return table("shell_environment_policy", {"exclude": _array(["CODEX_SANDBOX*"])}, facts)


def workspace_write(facts: PathFacts) -> Remedy:
    """Return the setting that lets commands write in the working directory."""
    return Remedy(
        text='sandbox_mode = "workspace-write"',
        where=f"{config_file(facts)}, above the first [table], in place of another sandbox_mode; {_RESTART}",
        once="codex -s workspace-write",
    )


def command_rule(script: str, facts: PathFacts) -> Remedy | None:
    """Return the rule that lets Codex run this command outside of its sandbox without a question.

    A rule with the decision `prompt` is no help: once approved, the command still runs inside (0.169).

    Returns:
        None if the script is more than one plain command: Codex matches no rule with a pipe, a
        redirection, an expansion or a second command in it.
    """
    words = _plain_words(script)
    if words is None:
        return None
    return Remedy(
        text=f'prefix_rule(pattern = {_array(words)}, decision = "allow")',
        where=f"{_home(facts)}/rules/default.rules, as a line of its own; it allows this command, also with"
        f" further arguments, and no other; {_RESTART}",
    )


def config_file(facts: PathFacts) -> str:
    """Return the path of Codex's configuration."""
    return f"{_home(facts)}/config.toml"


def table(
    name: str,
    entries: dict[str, str],
    facts: PathFacts,
    *,
    condition: str = "",
    adds_to: str = "",
) -> Remedy:
    """Return entries of one table of `config.toml`.

    Args:
        name: of the table.
        entries: keys and values, as TOML.
        facts: where the file is.
        condition: words behind the place.
        adds_to: what the value has to be added to, where its present value is not known: then there is no
            `once`, since it would replace that.
    """
    lines = "\n".join(f"{key} = {value}" for key, value in entries.items())
    present = (
        f"add the path to {adds_to}" if adds_to else "put the line there, in place of one with the same key"
    )
    return Remedy(
        text=f"[{name}]\n{lines}",
        where=f"{config_file(facts)}, at the end{condition}; if it has a table [{name}] already, {present};"
        f" {_RESTART}",
        once=None if adds_to else _codex([f"{name}.{key}={value}" for key, value in entries.items()]),
    )


def _profile_entry(
    profile: str, part: str, entries: dict[str, str], facts: PathFacts, condition: str = ""
) -> Remedy | None:
    """Return entries of a permission profile (0.138+). In these Codex ignores `[sandbox_workspace_write]`."""
    if profile == _BUILT_IN_WORKSPACE:
        return _extended_profile(part, entries, facts, condition)
    if not _BARE_KEY.fullmatch(profile):
        return None
    made = table(f"permissions.{profile}.{part}", entries, facts, condition=condition)
    options = [f"permissions.{profile}.{part}={_inline(entries)}"]
    return Remedy(text=made.text, where=made.where, once=_codex(options))


def _extended_profile(part: str, entries: dict[str, str], facts: PathFacts, condition: str) -> Remedy:
    """Return a profile that extends Codex's own by these entries."""
    lines = "\n".join(f"{key} = {value}" for key, value in entries.items())
    name = f"permissions.{_EXTENDED}"
    default = f"default_permissions = {_text(_EXTENDED)}"
    extends = f'extends = "{_BUILT_IN_WORKSPACE}"'
    return Remedy(
        text=f"[{name}]\n{extends}\n\n[{name}.{part}]\n{lines}",
        where=f"{config_file(facts)}, at the end{condition}, with `{default}` above the first [table];"
        f" {_RESTART}",
        once=_codex(
            [
                f"default_permissions={_text(_EXTENDED)}",
                f'{name}.extends="{_BUILT_IN_WORKSPACE}"',
                f"{name}.{part}={_inline(entries)}",
            ]
        ),
    )


_TEMPORARY: Final = ("/tmp", "/private/tmp")  # noqa: S108 - of the policy
_RESTART: Final = "then start Codex again"


def _home(facts: PathFacts) -> str:
    home = facts.codex_home
    return "~/.codex" if home is None or home in {f"{user}/.codex" for user in facts.homes} else home


def _codex(options: Sequence[str]) -> str:
    return " ".join(("codex", *(f"-c {shlex.quote(option)}" for option in options)))


def _extra_roots(policy: Policy, facts: PathFacts) -> list[str]:
    """Return the writable roots that were configured: not the working directory, temporary directories, or
    what Codex adds itself."""
    own = (*facts.workspaces, *_TEMPORARY)
    memories = f"{facts.codex_home}/memories" if facts.codex_home else None
    roots = dict.fromkeys(policy.writable_roots)
    return [
        root
        for root in roots
        if root not in own
        and root != memories
        and root.startswith("/")
        and not root.endswith("/.codex/memories")
    ]


def _plain_words(script: str) -> tuple[str, ...] | None:
    """Return the words of a script that is one plain command, or None."""
    parsed = parse(script) if script else None
    if parsed is None or len(parsed.items) != 1:
        return None
    node = parsed.items[0].node
    if not isinstance(node, Simple) or node.assignments or node.redirects:
        return None
    words = tuple(word.text for word in node.words)
    is_literal = all(word.literal for word in node.words)
    if not words or not is_literal or words[0].rpartition("/")[2] in _SHELLS or "…" in script:
        return None
    return words


def _text(value: str) -> str:
    """Return a basic string of TOML and Starlark."""
    return json.dumps(value, ensure_ascii=False)


def _array(values: Iterable[str]) -> str:
    return f"[{', '.join(map(_text, values))}]"


def _inline(entries: dict[str, str]) -> str:
    return f"{{{', '.join(f'{key} = {value}' for key, value in entries.items())}}}"
