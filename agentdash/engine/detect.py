"""What calls and their outputs show: what was allowed, and on which platform."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, Literal

from agentdash.model.command_rules import allow
from agentdash.model.observation import Granted
from agentdash.model.thread import Call, Thread

_HOME: Final = re.compile(
    r"^(?:(?:CODEX_)?HOME=|PWD=)?(?:(?P<macos>/Users/)|/home/|/root(?:/|$))", re.MULTILINE
)
_HOMES: Final = ("/Users/", "/home/", "/root")
_GIT_CONNECTS: Final = ("fetch", "pull", "push", "clone", "ls-remote")
_CONNECTS: Final = re.compile(rf"\bgit\b.*\b(?:{'|'.join(_GIT_CONNECTS)})\b|\b(?:curl|wget)\b")

# ---------------------------------------------------------------- what a call was allowed


def granted(thread: Thread, call: Call) -> Granted | None:
    """Return what a call was allowed beyond the policy: by its own request, or perhaps by a rule."""
    if call.escalation is not None:
        return "outside" if call.escalation.kind == "escalated" else "more"
    return "rule" if rule_of(thread, call) else None


def rule_of(thread: Thread, call: Call) -> str:
    """Return the rule that may have let a call run outside the sandbox: `FILE:LINE`, or the `prefix_rule`
    that an earlier call asked for. Empty: none, also where a policy hides paths from reading, which keeps all
    commands inside (0.171)."""
    if call.escalation is not None or call.kind != "command":
        return ""
    policy = thread.policy_of(call)
    if policy is not None and (not policy.has_agent_sandbox or policy.has_deny):
        return ""
    script = call.script or call.text
    found = (place for words, place in _proposed(thread, call) if allow(words, place).letting_out(script))
    return call.let_out_by or next(found, "")


def _proposed(thread: Thread, call: Call) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the prefixes that escalations before this call asked for, and were not refused."""
    for earlier in thread.calls:
        wish = earlier.escalation
        if (
            wish
            and wish.prefix_rule
            and earlier.at < call.at
            and not (earlier.outcome or "").startswith("refused")
        ):
            yield wish.prefix_rule, f"the prefix_rule of call {earlier.id}"


# ---------------------------------------------------------------- the platform of a thread


def platform(text: str) -> Literal["linux", "darwin"] | None:
    """Return the platform that a working directory, or an output with `HOME` or `CODEX_HOME`, belongs to."""
    if not any(place in text for place in _HOMES):  # a hundred times as fast, and true of most outputs
        return None
    match = _HOME.search(text)
    if not match:
        return None
    return "darwin" if match["macos"] else "linux"


def may_connect(script: str) -> bool:
    """Return whether a script may show by its output that it reached a host; False is certain."""
    return _CONNECTS.search(script) is not None
