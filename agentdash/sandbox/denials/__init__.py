"""Denials: operations that a sandbox refused, read from what commands and tools printed.

`find_denials` is the entry point. Most outputs have no suspicious line: the modules that read such lines are
imported for the first output that has one.

1. `lines` finds the few lines of an output that may report a denial.
2. `detector` reads them, without what a script printed before a message that it captured, and joins what
   belongs together. `file_messages` and `network` know the forms: operation, reason, path or host.
3. `attribution` decides which command of the script (`ran`) can have printed them: by the name that begins
   them, by what the command was given (`ties`), by how it ended, and by what `programs` knows of it.
   A command that ended well has no failure to report, unless the line names what it was given. Text that
   commands show from elsewhere (documents, logs, test runs) is no message; marks tell at once where all of
   an output is such text.
4. `file_denials` and `network` keep what the policy in force explains.
"""

from __future__ import annotations

from typing import Final

from agentdash.model.denials import Certainty, Denial, Operation, What
from agentdash.model.policy import Policy
from agentdash.sandbox.denials.lines import MAX_DENIALS, MAX_QUOTE_CHARACTERS, suspects

__all__ = [
    "MAX_DENIALS",
    "MAX_QUOTE_CHARACTERS",
    "Certainty",
    "Denial",
    "Operation",
    "What",
    "find_denials",
    "may_find_denials",
]

_DIRECTORY: Final = "PWD"
"""In scripts whose words depend on where they ran."""


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
    lines, numbers = suspects(output)
    if not numbers:
        return ()
    # these import fifty patterns: one-shot commands start faster without them
    from agentdash.sandbox.denials.attribution import origin  # noqa: PLC0415
    from agentdash.sandbox.denials.call import Call  # noqa: PLC0415
    from agentdash.sandbox.denials.detector import (  # noqa: PLC0415
        read_denials,
        without_breaks,
        without_labels,
    )
    from agentdash.sandbox.home_paths import home_of  # noqa: PLC0415

    ran = origin(script, cwd, home or home_of(cwd))
    call = Call(
        script=script,
        lines=without_labels(without_breaks(lines, numbers), numbers, ran.commands or ()),
        exit_code=exit_code,
        outcome=outcome,
        policy=policy,
        origin=ran,
        is_command=tool == "command",
        landlock=landlock,
        seatbelt=seatbelt,
        numbers=numbers,
    )
    return read_denials(call, numbers)


def may_find_denials(script: str, output: str) -> bool:
    """Return whether `find_denials` can find any in the output of a command, under any policy, wherever it
    ran, and however it ended. False is certain: all of the output is text that the script shows."""
    lines, numbers = suspects(output)
    if not numbers:
        return False
    from agentdash.sandbox.denials.attribution import origin  # noqa: PLC0415
    from agentdash.sandbox.denials.detector import (  # noqa: PLC0415
        start_failure,
        without_breaks,
        without_labels,
    )

    ran = origin(script, None, None)
    if ran.marks is None or _DIRECTORY in script:
        return True
    lines = without_labels(without_breaks(lines, numbers), numbers, ran.commands or ())
    return lines.may_hold(ran.marks) or start_failure(lines, numbers, None, script) is not None
