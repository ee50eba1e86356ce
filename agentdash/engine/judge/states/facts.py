"""The short facts that assessments state, with their objects whole; assessments by one piece of evidence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Literal

from agentdash.model.denials import Denial, may_not
from agentdash.model.events import ScreenRead, SourceSeen
from agentdash.model.evidence import Evidence, EvidenceSource
from agentdash.model.fact import Fact, FactKind, ObjectForm
from agentdash.model.fleet import ProviderTrouble
from agentdash.model.process import AwaitedInput
from agentdash.model.sanitize import clean_line
from agentdash.model.states import State
from agentdash.model.thread import Call
from agentdash.model.worker import Assessment

_MAX_WHY_CHARS: Final = 80
_MAX_MESSAGE_CHARS: Final = 300
"""Of a final answer; other objects are whole."""
_REASONS: Final = re.compile(
    r"read-only file system|operation not permitted|permission denied|could not resolve host"
    r"|temporary failure in name resolution|network is unreachable|connection refused"
    r"|unable to open database file|readonly database",
    re.IGNORECASE,
)
"""The part of a denial's quote that names the reason, in the words of the C library, curl and SQLite."""
_COMMAND_RULE: Final = ".approval-command"
_EDIT_RULE: Final = ".approval-edit"
"""Ends of the ids of screen rules (`agents/*.toml`) whose `show` quotes a command, or a file."""
_LEADING_SIGNS: Final = re.compile(r"^(?:[^\w\s/~.$\"'`(\[{<-]+\s*)+|^Question \d+/\d+\s*(?:\([^)]*\)\s*)?")
"""Marks that worker CLIs draw before a text: `☐`, `●`, `■`, `△`, `→`, `Question 1/1 (1 unanswered)`."""
RECOVERY_S: Final = 3.0
"""Time for which a screen must show work before its trouble with the provider counts as over: between two
retries some CLIs draw a working screen for a moment."""
IDLE: Final = Fact(FactKind.IDLE, "has no task yet")
WORKS: Final = Fact(FactKind.WORK, "works")
FINISHED: Final = Fact(FactKind.DONE, "finished")
STOPPED: Final = Fact(FactKind.STOPPED, "interrupted")
_SHOWN: Final = {State.RUNNING: WORKS, State.COMPLETED: FINISHED, State.INTERRUPTED: STOPPED}
_SHOWN_WITH_WORDS: Final = {
    State.FAILED_PROVIDER: (FactKind.PROVIDER, "provider failed:"),
    State.BLOCKED_SANDBOX: (FactKind.DENIED, "denied"),
    State.FAILED_PERMISSION: (FactKind.REFUSED, "refused"),
    State.UNKNOWN: (FactKind.UNCLEAR, "screen not understood"),
}


def wants(call: Call | None, *, on_screen: ScreenRead | None = None) -> Fact:
    """Return what an approval is asked for: by the open call, or else by the screen."""
    if call is None:
        return _approval(on_screen) if on_screen else Fact(FactKind.APPROVE, "wants an approval")
    text = clean_line(call.text)
    if call.kind == "patch":
        return Fact(FactKind.EDIT, "wants to edit", text, ObjectForm.PATH)
    if call.kind == "permission":
        return Fact(FactKind.APPROVE, "wants permissions", text)
    if call.escalation is not None:
        why = clean_line(call.escalation.reason or "", _MAX_WHY_CHARS)
        return Fact(FactKind.LEAVE, "wants to leave the sandbox for", text, ObjectForm.COMMAND, why)
    if call.kind == "other":
        return Fact(FactKind.APPROVE, f"wants to call {call.tool}", text)
    return Fact(FactKind.RUN, "wants to run", text, ObjectForm.COMMAND)


def _approval(reading: ScreenRead) -> Fact:
    """Return what a prompt on the screen asks for."""
    rule, quoted = reading.rule or "", reading.object
    text = clean_line(_LEADING_SIGNS.sub("", quoted).removeprefix("$ "))
    if quoted and (rule.endswith(_COMMAND_RULE) or quoted.startswith("$ ")):
        return Fact(FactKind.RUN, "wants to run", text, ObjectForm.COMMAND)
    if quoted and rule.endswith(_EDIT_RULE):
        form = ObjectForm.PATH if text.startswith(("/", "~", ".")) else ObjectForm.TEXT
        return Fact(FactKind.EDIT, "wants to edit", text, form)
    return Fact(FactKind.APPROVE, "wants approval", text or clean_line(_LEADING_SIGNS.sub("", reading.text)))


def asks(question: str) -> Fact:
    """Return a question."""
    return Fact(FactKind.ASK, "asks", clean_line(_LEADING_SIGNS.sub("", question)))


def awaits_input(kind: AwaitedInput, argv: Sequence[str]) -> Fact:
    """Return that it waits for the end of its standard input, and what helps."""
    remedy = "write its task there, and close it" if "-" in argv else "start it with < /dev/null"
    remedy = "ctrl+d ends it" if kind == "terminal" else remedy
    return Fact(FactKind.ASK, "waits for the end of its standard input,", f"a {kind}", why=remedy)


def shown(reading: ScreenRead) -> Fact:
    """Return what a screen shows, by the state that its rule names."""
    state, words = State(reading.state or State.UNKNOWN), clean_line(_LEADING_SIGNS.sub("", reading.text))
    if state is State.WAITING_APPROVAL:
        return _approval(reading)
    if state is State.WAITING_INPUT:
        return IDLE if reading.is_at_prompt else asks(reading.object or reading.text)
    if state is State.RUNNING and reading.is_retrying:
        return retries(words)
    if state is State.RUNNING and reading.object:  # the words mark it as the screen's, which may have cut it
        return Fact(FactKind.WORK, "shows", clean_line(reading.object), ObjectForm.COMMAND)
    kind, what = _SHOWN_WITH_WORDS.get(state, _SHOWN_WITH_WORDS[State.UNKNOWN])
    return _SHOWN.get(state) or Fact(kind, what, words)


def denied(denial: Denial, command: str) -> Fact:
    """Return a denial; without a known target, the command is the object."""
    what = may_not(denial.operation) if denial.is_certain else f"probably {may_not(denial.operation)}"
    reason = _REASONS.search(denial.quote)
    why = reason[0].lower() if reason else ""
    if denial.target is None:
        form = ObjectForm.COMMAND if command else ObjectForm.TEXT
        return Fact(FactKind.DENIED, "denied:", clean_line(command or denial.quote), form, why)
    form = ObjectForm.HOST if denial.what == "network" else ObjectForm.TEXT
    if denial.what == "filesystem" or denial.target.startswith("/"):
        form = ObjectForm.PATH
    return Fact(FactKind.DENIED, what, clean_line(denial.target), form, why)


def provider(error: str) -> Fact:
    """Return an error of the model or its provider, at which it has given up."""
    return Fact(FactKind.PROVIDER, "provider failed:", clean_line(error))


def retries(error: str) -> Fact:
    """Return an error of the model or its provider, after which it tries again."""
    return Fact(FactKind.PROVIDER, "provider fails, retrying:", clean_line(error))


def works(call: Call | None, message: str) -> Fact:
    """Return what it works on: the newest open call, or else what the model said last in this turn."""
    if call is None:
        said = clean_line(message, _MAX_MESSAGE_CHARS)
        return Fact(FactKind.WORK, "", said) if said else Fact(FactKind.WORK, "thinking")
    if call.kind == "wait":
        return Fact(FactKind.WORK, "waits for its children")
    if call.kind == "command":
        return Fact(FactKind.WORK, "runs", clean_line(call.text), ObjectForm.COMMAND)
    return Fact(FactKind.WORK, f"runs {call.shown_tool}", clean_line(call.text))


def done(message: str) -> Fact:
    """Return the answer that it finished with."""
    return Fact(FactKind.DONE, "", clean_line(message, _MAX_MESSAGE_CHARS)) if message else FINISHED


def stopped(why: str, message: str) -> Fact:
    """Return that it was interrupted, and by what or in what."""
    said, why = clean_line(message, _MAX_MESSAGE_CHARS), clean_line(why, _MAX_WHY_CHARS)
    return Fact(FactKind.STOPPED, "interrupted", said, why=why)


def crashed(call: Call | None, prompt: str, *, has_run: bool = True) -> Fact:
    """Return that its process ended in the middle of a turn: in an open call, which is known to have run or
    may only have been asked for, or after a prompt."""
    if call is None or not call.text:
        return Fact(FactKind.CRASHED, "ended before it answered", clean_line(prompt))
    form = ObjectForm.COMMAND if call.kind == "command" else ObjectForm.TEXT
    what = "ended in the middle of" if has_run else "ended; it had asked for"
    return Fact(FactKind.CRASHED, what, clean_line(call.text), form)


def ended(how: str, *, in_a_turn: bool) -> Fact:
    """Return how the process in a pane ended."""
    if in_a_turn:
        return Fact(FactKind.CRASHED, "ended in the middle of its work:", clean_line(how))
    return Fact(FactKind.QUIT, "ended:", clean_line(how))


def unclear(what: str, object_: str = "", *, why: str = "") -> Fact:
    """Return what cannot be observed or decided; the object is a path if it begins like one."""
    form = ObjectForm.PATH if object_.startswith("/") else ObjectForm.TEXT
    return Fact(FactKind.UNCLEAR, what, clean_line(object_), form, clean_line(why, _MAX_WHY_CHARS))


# ---------------------------------------------------------------- assessments


Said = Literal["busy", "waiting", "idle", "open"]
"""What a worker CLI states itself: the status in its session file, or a turn that is open in its record."""
_ADDED_BY_SCREEN: Final[dict[Said, tuple[State, ...]]] = {
    "busy": (State.RUNNING,),
    "waiting": (State.WAITING_APPROVAL, State.WAITING_INPUT),
    "idle": (
        State.COMPLETED,
        State.WAITING_INPUT,
        State.INTERRUPTED,
        State.FAILED_PROVIDER,
        State.BLOCKED_SANDBOX,
    ),
    "open": (State.RUNNING, State.WAITING_APPROVAL, State.WAITING_INPUT),
}
"""States of a screen that only say more about what the CLI states."""


def is_heard(reading: ScreenRead, said: Said) -> bool:
    """Return whether a screen says more about what the CLI states itself; a contradiction does not count.

    So no screen ends a turn that the CLI's status or its record says is open.
    """
    if said == "open" and reading.is_at_prompt:
        return False
    return reading.state in _ADDED_BY_SCREEN[said]


def conclude(
    state: State,
    since: float | None,
    rule: str,
    why: str,
    source: EvidenceSource = EvidenceSource.ROLLOUT,
    text: str | None = None,
    fact: Fact | None = None,
) -> Assessment:
    """Return a state that rests on one piece of evidence: a line of the log, unless given otherwise, with the
    reason as its text."""
    return Assessment(state, since, why, (Evidence(source, since or 0.0, rule, text or why),), fact)


def server_gone(server: SourceSeen) -> Assessment:
    """Return `unreachable`, of a worker in a pane whose tmux server does not answer."""
    what, source = "its tmux server does not answer:", EvidenceSource.TMUX
    why, fact = f"{what} {server.detail}", unclear(what, server.detail)
    return conclude(State.UNREACHABLE, server.at, "server-gone", why, source, server.detail, fact)


def asks_in_text(
    question: str, since: float | None, source: EvidenceSource = EvidenceSource.ROLLOUT
) -> Assessment:
    """Return `waiting-input`, of a worker whose last message ends with a question."""
    fact = asks(question)
    why = f"asks: {fact.object}"
    return conclude(State.WAITING_INPUT, since, "asks-in-text", why, source, question, fact)


def trouble_evidence(trouble: ProviderTrouble) -> Evidence:
    """Return trouble with a provider as evidence."""
    return Evidence(trouble.source, trouble.at, "request-failed", trouble.text)


def stopped_while_failing(trouble: ProviderTrouble, since: float | None, *before: Evidence) -> Assessment:
    """Return `failed-provider`, of a worker that was stopped while its requests failed."""
    why, evidence = f"stopped while its provider failed: {trouble.text}", (*before, trouble_evidence(trouble))
    return Assessment(State.FAILED_PROVIDER, since, why, evidence, provider(trouble.text))


def assess_screen(reading: ScreenRead) -> Assessment:
    """Return the state that the screen rules of the worker CLI have read."""
    part = " (part of it is out of sight)" if reading.partial else ""
    hidden = " (behind a view that hides its prompt)" if reading.frozen else ""
    why = f"its screen shows {reading.text}{part}{hidden}"
    state, evidence = State(reading.state or State.UNKNOWN), screen_evidence(reading)
    return Assessment(state, reading.at, why, (evidence,), shown(reading))


def assess_half_menu(reading: ScreenRead, where: str) -> Assessment:
    """Return `unknown`: it may be waiting, but half of the menu does not fit into the pane."""
    why = f"may be waiting: part of a menu is out of sight in {where}: {reading.text}"
    fact = unclear(f"may be waiting, part of a menu is out of sight in {where}:", reading.text)
    return Assessment(State.UNKNOWN, reading.at, why, (screen_evidence(reading),), fact)


def screen_evidence(reading: ScreenRead) -> Evidence:
    """Return a screen reading as evidence."""
    return Evidence(reading.source, reading.at, reading.rule or "", reading.text)
