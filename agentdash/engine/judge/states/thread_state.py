"""The state of a Codex thread: one authority for each fact; the first rule that applies decides.

Each rule has a name, which its evidence carries. Other sources are attached as corroboration
(`corroboration`): they agree with the conclusion or contradict it, and never decide. Where no rule applies,
the state is `unknown`; where what should be observable is not, `unreachable`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from agentdash.engine.judge.states import session_status
from agentdash.engine.judge.states import thread_ended as ended
from agentdash.engine.judge.states import thread_open as ongoing
from agentdash.engine.judge.states.corroboration import (
    Corroboration,
    attach_corroboration,
    commands_corroborate,
    feed_corroborates,
    output_corroborates,
    screen_corroborates,
    session_corroborates,
)
from agentdash.engine.judge.states.thread_facts import ThreadFacts
from agentdash.model.evidence import EvidenceSource
from agentdash.model.states import State
from agentdash.model.worker import Assessment


class StateRule(NamedTuple):
    """One row of the precedence table."""

    authority: EvidenceSource
    decides: str
    """The fact that it decides."""
    apply: Callable[[ThreadFacts], Assessment | None]


PRECEDENCE: Final = (
    # what stops it, or makes it wait
    StateRule(EvidenceSource.ROLLOUT, "the rollout cannot be read", ongoing.unreadable_rollout),
    StateRule(
        EvidenceSource.CODEX_FEED,
        "it waits for an approval or an answer (0.160+, not for exec)",
        ongoing.waiting_by_feed,
    ),
    StateRule(
        EvidenceSource.SESSION_FILE,
        "it waits for an approval or an answer (Claude Code)",
        session_status.waiting_by_session_file,
    ),
    StateRule(
        EvidenceSource.ROLLOUT, "a question or permission tool is open", ongoing.open_question_or_permission
    ),
    StateRule(
        EvidenceSource.SCREEN,
        "prompts that write nothing; trouble with the provider during retries",
        ongoing.prompt_or_trouble_on_screen,
    ),
    StateRule(
        EvidenceSource.CODEX_LOG,
        "trouble with the provider, where no screen shows it",
        ongoing.request_failures_in_log,
    ),
    StateRule(
        EvidenceSource.PROCESS,
        "an escalated command has no process: it waits for an approval",
        ongoing.escalation_without_process,
    ),
    StateRule(EvidenceSource.SCREEN, "half of a menu is visible: not decidable", ongoing.half_visible_menu),
    StateRule(
        EvidenceSource.ROLLOUT,
        "requests without an answer (through 0.142, which records no errors)",
        ended.requests_without_answer,
    ),
    # what is going on
    StateRule(EvidenceSource.PROCESS, "its owner is gone while its turn is open", ongoing.owner_gone),
    StateRule(
        EvidenceSource.SESSION_FILE,
        "it works, or rests, where its log is behind (Claude Code)",
        session_status.beyond_the_log,
    ),
    StateRule(EvidenceSource.ROLLOUT, "its turn is open", ongoing.turn_open),
    # how it ended
    StateRule(EvidenceSource.SCREEN, "it was stopped while its provider failed", ended.stopped_while_failing),
    StateRule(EvidenceSource.ROLLOUT, "its turn was aborted", ended.turn_aborted),
    StateRule(EvidenceSource.ROLLOUT, "its turn failed", ended.turn_failed),
    StateRule(EvidenceSource.OUTPUT, "its last attempt was denied or refused", ended.last_attempt_denied),
    StateRule(EvidenceSource.ROLLOUT, "its turn is complete", ended.turn_complete),
    StateRule(
        EvidenceSource.ROLLOUT,
        "the last message, in files without turn marks (through 0.98)",
        ended.last_message,
    ),
    StateRule(EvidenceSource.ROLLOUT, "it has had no turn yet", ended.no_turn_yet),
)
"""The one authority for each fact, in order of precedence: the first rule that applies decides the state."""


def judge_thread(facts: ThreadFacts) -> Assessment:
    """Return the state of a Codex thread, with the evidence for and against it."""
    for rule in PRECEDENCE:
        if (assessment := rule.apply(facts)) is not None:
            return attach_corroboration(assessment, _corroboration(facts))
    return Assessment(State.UNKNOWN, None, "the rollout does not decide it")


def _corroboration(facts: ThreadFacts) -> Iterator[Corroboration]:
    yield from screen_corroborates(facts.reading)
    yield from feed_corroborates(facts.pushed)
    yield from session_corroborates(facts.session)
    yield from commands_corroborate(facts.commands)
    yield from output_corroborates(facts.thread)
