"""Denials: operations that a sandbox refused, read from what commands and tools printed.

`find_denials` is the entry point. Most outputs have no suspicious line: the modules that read such lines are
imported for the first output that has one.

1. `lines` finds the few lines of an output that may report a denial.
2. `detector` reads them. `file_messages` and `network` know the forms: operation, reason, path or host.
3. `attribution` decides which command of the script (`commands`) can have printed them, by what `programs`
   knows of it and by what the command was given.
4. Both keep what the policy in force explains; `findings` joins those of one operation.
"""

from __future__ import annotations

import re
from typing import Final

from agentdash.model.denials import Certainty, Denial, Operation, What
from agentdash.model.policy import Policy
from agentdash.sandbox.denials.lines import MAX_DENIALS, MAX_QUOTE_CHARACTERS, suspects

_FAILED: Final = re.compile(r"\A\s*(?:command )?failed in sandbox: \n?")
"""What Codex 0.46 to 0.50 writes before the words of a command that its sandbox refused."""

__all__ = [
    "MAX_DENIALS",
    "MAX_QUOTE_CHARACTERS",
    "Certainty",
    "Denial",
    "Operation",
    "What",
    "find_denials",
]


def find_denials(
    script: str,
    output: str,
    *,
    exit_code: int | None,
    outcome: str,
    policy: Policy | None,
    cwd: str | None,
    home: str | None = None,
    tool: str = "command",
    landlock: bool = True,
    seatbelt: bool = True,
) -> tuple[Denial, ...]:
    """Return the denials that an output proves, in order, without repetitions.

    Args:
        script: what ran, as written; of a tool that is no command its arguments.
        output: what it printed.
        exit_code: its exit code where one is known: evidence, never a condition.
        outcome: how the call ended; `denied` where the agent's CLI itself took it for a denial.
        policy: the policy in force when it ran.
        home: the home directory; taken from the working directory where it is not known.
        tool: `command`, or the name of the MCP tool.
        landlock: whether the sandbox can be Landlock, which refuses with EACCES as file modes do. Others
            refuse with EROFS (bubblewrap) and EPERM (Seatbelt, seccomp) before the modes are looked at.
        seatbelt: whether it can be Seatbelt, which alone refuses files with EPERM.
    """
    if policy is None or policy.enforced_by == "external":
        return ()
    lines, numbers = suspects(_FAILED.sub("", output))
    if not numbers:
        return ()
    # these import fifty patterns: one-shot commands start faster without them
    from agentdash.sandbox.denials.call import Call  # noqa: PLC0415
    from agentdash.sandbox.denials.detector import read_denials  # noqa: PLC0415
    from agentdash.sandbox.home_paths import home_of  # noqa: PLC0415

    call = Call(
        source=script,
        lines=lines,
        numbers=numbers,
        exit_code=exit_code,
        outcome=outcome,
        policy=policy,
        is_command=tool == "command",
        landlock=landlock,
        seatbelt=seatbelt,
        cwd=cwd,
        home=home or home_of(cwd),
    )
    return read_denials(call)
