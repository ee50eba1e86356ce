"""Recognize the sandbox launchers of all worker CLIs, with the policy that they apply.

Besides those of Codex (`codex/policy_formats.py`) there is Anthropic's sandbox runtime (Claude Code, `srt`
and others): a shell that runs `bwrap`, and inside the sandbox a shell that starts proxies and then the
command by `apply-seccomp`. None of these is the command itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from agentdash.agents.codex.policy_formats import bwrap_policy
from agentdash.agents.codex.policy_formats import read_launcher as read_codex_launcher
from agentdash.model.policy import TMPDIR, Filesystem, Network, Policy
from agentdash.model.process import Launcher

RUNTIME: Final = "sandbox-runtime"
"""Name of the launcher that the set-up processes of Anthropic's sandbox runtime are."""
_BWRAP: Final = "bwrap"
_ARGUMENT_FILE: Final = "--args"
"""The option by which bubblewrap reads its options from a descriptor."""
_SHELLS: Final = frozenset(("sh", "bash", "zsh", "dash"))
_STARTS_BWRAP: Final = re.compile(r"(?:^|[\s'\"/;&|(])bwrap (?:--[a-z-]+ |-[a-z] )")
"""A command line that runs bubblewrap, in the text of a shell: 2.1.197 to 2.1.330."""
_INNER_SETUP: Final = re.compile(r"apply-seccomp|\bsocat TCP[46]?-LISTEN:\d+,")
"""What the shell inside the sandbox does before the command (Linux)."""
_APPLY_SECCOMP: Final = re.compile(r"(?:^|/)apply-seccomp$|^/proc/self/fd/\d+$|^/dev/fd/\d+$")
_SANDBOX_EXEC: Final = re.compile(r"(?:^|[\s'\"/;&|(])sandbox-exec -p ")


def read_launcher(name: str, argv: Sequence[str]) -> Launcher | None:
    """Return the launcher that a process is, or None.

    Args:
        name: `comm` of the process. It may be anything (`3`), so its program's name counts as well.
    """
    found = read_codex_launcher(name, argv)
    if found is not None and found.name == _BWRAP and _ARGUMENT_FILE in argv:
        return Launcher(_BWRAP)  # Gemini CLI: its mounts are in a file that is gone
    if found is not None and found.name == _BWRAP and "SANDBOX_RUNTIME" in argv:
        return Launcher(_BWRAP, _runtime_policy(argv))
    return found or (Launcher(RUNTIME) if _is_setup(name, argv) else None)


def _runtime_policy(argv: Sequence[str]) -> Policy | None:
    """Return the policy in the arguments that the sandbox runtime gives to bubblewrap; None where they were
    capped.

    A network namespace with a proxy on a socket that is bound into it is mediated.
    """
    if "--" not in argv:
        return None
    found = bwrap_policy(argv)
    words = zip(argv, argv[1:], argv[2:], strict=False)
    variables = {name: value for option, name, value in words if option == "--setenv"}
    tmpdir = variables.get("TMPDIR")
    own = (
        rule for rule in found.rules if not rule.path.endswith(".sock") and not is_always_listed(rule.path)
    )
    rules = tuple(replace(rule, path=TMPDIR) if rule.path == tmpdir else rule for rule in own)
    is_mediated = found.network is Network.OFF and "HTTP_PROXY" in variables
    filesystem = found.filesystem
    if filesystem is Filesystem.WORKSPACE and all(rule.access == "read" for rule in rules):
        filesystem = Filesystem.READ_ONLY
    return Policy(filesystem, Network.MEDIATED if is_mediated else found.network, rules, enforced_by="agent")


def _is_setup(name: str, argv: Sequence[str]) -> bool:
    if not argv:
        return False
    program = argv[0].rpartition("/")[2]
    if name == "apply-seccomp" or _APPLY_SECCOMP.search(argv[0]):
        return True
    if program == "socat":
        return any("claude-" in arg or "srt-" in arg for arg in argv[1:])
    if program not in _SHELLS:
        return False
    return any(_STARTS_BWRAP.search(a) or _INNER_SETUP.search(a) or _SANDBOX_EXEC.search(a) for a in argv[1:])


_ALWAYS_LISTED: Final = re.compile(r"/dev/.*|(?:/private)?/tmp/claude|.*/\.npm/_logs|.*/\.claude/debug")


def is_always_listed(path: str) -> bool:
    """Return whether the runtime lets every sandbox write a path: it may not exist, and is then not writable,
    which is no difference to a policy."""
    return _ALWAYS_LISTED.fullmatch(path) is not None
