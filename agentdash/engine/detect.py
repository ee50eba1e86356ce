"""What calls and their outputs show: what was allowed, on which platform, and what the kernel restrains."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from agentdash.model.command_rules import allow
from agentdash.model.observation import Granted
from agentdash.model.thread import Call, Thread
from agentdash.sandbox.word_sets import word_set

if TYPE_CHECKING:
    from agentdash.sandbox.shell import Command

_HOME: Final = re.compile(
    r"^(?:(?:CODEX_)?HOME=|PWD=)?(?:(?P<macos>/Users/)|/home/|/root(?:/|$))", re.MULTILINE
)
_HOMES: Final = ("/Users/", "/home/", "/root")
_OWN_STATUS: Final = "/proc/self/status"
_PRINTED_FACT: Final = re.compile(r"(?:Seccomp|NoNewPrivs):\s*\\?t?\d")
"""A script that holds such a line itself."""
_UNRELATED: Final = word_set("echo env printenv id pwd date sleep cd ls touch mkdir test true")
"""Programs whose output never has such a line."""
_SECCOMP: Final = re.compile(r"^\s*Seccomp:\s+([012])\s*$", re.MULTILINE)
_NO_NEW_PRIVS: Final = re.compile(r"^\s*NoNewPrivs:\s+([01])\s*$", re.MULTILINE)
_GIT_CONNECTS: Final = ("fetch", "pull", "push", "clone", "ls-remote")
_CONNECTS: Final = re.compile(rf"\bgit\b.*\b(?:{'|'.join(_GIT_CONNECTS)})\b|\b(?:curl|wget)\b")

# ---------------------------------------------------------------- what a call was allowed


def granted(thread: Thread, call: Call) -> Granted | None:
    """Return what a call was allowed beyond the policy: by its own request, or perhaps by a rule."""
    if call.escalation is not None:
        return "outside" if call.escalation.kind == "escalated" else "more"
    return "rule" if rule_of(thread, call) else None


def allowances(thread: Thread, call: Call | None) -> dict[str, Any]:
    """Return the fields of an observation that state what its call was allowed; without one, none."""
    if call is None:
        return {}
    return {"granted": granted(thread, call), "rule": rule_of(thread, call), "by_user": call.by_user}


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


# ---------------------------------------------------------------- kernel facts, as a command printed them


class Restraints(NamedTuple):
    """`Seccomp` and `NoNewPrivs` of `/proc/self/status`; None: not printed."""

    seccomp: int | None = None
    no_new_privs: bool | None = None

    @property
    def quote(self) -> str:
        """Return the lines, joined."""
        shown = zip(("Seccomp", "NoNewPrivs"), self, strict=True)
        return " ".join(f"{name}: {int(value)}" for name, value in shown if value is not None)


def restraints(script: str, output: str) -> Restraints:
    """Return the kernel facts that a script printed of its own process: by a `cat` or `grep` of its status
    file, where nothing else in it can have printed such lines, or other ones."""
    if _OWN_STATUS not in script or _PRINTED_FACT.search(script):
        return Restraints()
    # the grammar is imported by the first script that needs it
    from agentdash.sandbox.shell import commands  # noqa: PLC0415

    found = commands(script) or ()
    own = [command for command in found if _shows_own_status(command)]
    if not own or any(each.position or (each not in own and each.name not in _UNRELATED) for each in found):
        return Restraints()
    seccomp, privs = set(_SECCOMP.findall(output)), set(_NO_NEW_PRIVS.findall(output))
    return Restraints(
        int(seccomp.pop()) if len(seccomp) == 1 else None, privs.pop() == "1" if len(privs) == 1 else None
    )


def _shows_own_status(command: Command) -> bool:
    operands = [word.raw for word in command.argv[1:] if not word.raw.startswith("-")]
    files = operands[1:] if command.name == "grep" else operands
    return command.name in ("cat", "grep") and files == [_OWN_STATUS] and not command.redirects
