"""The state of a Codex thread: one authority for each fact; the first rule that applies decides.

Each rule has a name, which its evidence carries. Other sources are attached as corroboration
(`corroboration`): they agree with the conclusion or contradict it, and never decide. Where no rule applies,
the state is `unknown`; where what should be observable is not, `unreachable`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

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
from agentdash.model.states import State
from agentdash.model.worker import Assessment

PRECEDENCE: Final[tuple[Callable[[ThreadFacts], Assessment | None], ...]] = (
    # what stops it, or makes it wait
    ongoing.unreadable_rollout,
    ongoing.waiting_by_feed,
    ongoing.approval_of_sub_agent,
    session_status.waiting_by_session_file,
    ongoing.open_question_or_permission,
    ongoing.prompt_or_end_on_screen,
    ongoing.escalation_without_process,
    ongoing.half_visible_menu,
    ended.requests_without_answer,
    # what is going on
    ongoing.owner_gone,
    session_status.beyond_the_record,
    session_status.resting_by_session_file,
    ongoing.turn_open,
    # how it ended
    ended.stopped_while_failing,
    ended.turn_aborted,
    ended.turn_failed,
    ended.last_attempt_denied,
    ended.turn_complete,
    ended.last_message,
    ended.no_turn_yet,
)
"""The rules in order of precedence: the first one that applies decides the state."""


def judge_thread(facts: ThreadFacts) -> Assessment:
    """Return the state of a Codex thread, with the evidence for and against it."""
    return attach_corroboration(conclude_thread(facts), _corroboration(facts))


def conclude_thread(facts: ThreadFacts) -> Assessment:
    """Return the state of a Codex thread, with the evidence of the authority alone: half of the cost."""
    concluded = (rule(facts) for rule in PRECEDENCE)
    found = next((assessment for assessment in concluded if assessment is not None), None)
    return found or Assessment(State.UNKNOWN, None, "the rollout does not decide it")


def _corroboration(facts: ThreadFacts) -> Iterator[Corroboration]:
    yield from screen_corroborates(facts.reading)
    yield from feed_corroborates(facts.pushed)
    yield from session_corroborates(facts.session)
    yield from commands_corroborate(facts.commands)
    yield from output_corroborates(facts.thread)
