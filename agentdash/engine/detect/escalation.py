"""Which commands were allowed more than the policy grants."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from agentdash.model.observation import Granted
from agentdash.model.thread import Call, Thread


def granted(thread: Thread, call: Call) -> Granted | None:
    """Return what a call was allowed beyond the policy: by its own request, or by a rule of an earlier one
    (`prefix_rule`).

    Rules that the user wrote into `rules/*.rules` are not known here.
    """
    if call.escalation is not None:
        return "outside" if call.escalation.kind == "escalated" else "more"
    if not (rules := list(_rules(thread, call))):  # as good as always: and splitting a command is slow
        return None
    words = _words(call.text)
    return "outside" if any(words[: len(rule)] == rule for rule in rules) else None


def _rules(thread: Thread, call: Call) -> Iterator[list[str]]:
    """Prefixes that were allowed before this call."""
    for earlier in thread.calls:
        wish = earlier.escalation
        if (
            wish
            and wish.prefix_rule
            and earlier.at < call.at
            and not (earlier.outcome or "").startswith("refused")
        ):
            yield list(wish.prefix_rule)


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:  # an open quote: not a plain command line
        return command.split()
