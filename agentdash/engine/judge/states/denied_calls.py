"""Decide whether a denial stopped a call, or the call got on in spite of it."""

from __future__ import annotations

from agentdash.model.denials import Denial
from agentdash.model.thread import Call, Thread


def stopping_denial(thread: Thread, call: Call) -> Denial | None:
    """Return the denial that stopped a call; None where it had none, or ended well in spite of it.

    Under full access the same words are those of a firewall, or of file modes.

    An exit code of 0 means that the program handled the denial itself, unless another command of the script
    set the code: `| tail`, `|| true`, `; echo rc=$?`. What the program itself goes on without stops nothing.
    """
    denial = call.denial
    if denial is None or denial.what == "other":
        return None
    policy = thread.policy_of(call)
    if policy is not None and policy.is_full_access:
        return None
    if call.exit_code == 0 and call.outcome != "denied":
        return None if denial.is_aside or not _hides_exit_code(call.script) else denial
    return denial


def _hides_exit_code(script: str) -> bool:
    """Return whether the script's exit code need not be that of the command that was denied."""
    # one-shot commands start faster without the grammar
    from agentdash.sandbox.shell import commands  # noqa: PLC0415

    found = commands(script)
    return found is not None and len(found) > 1
