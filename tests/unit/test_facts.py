"""The short fact of a worker: what it needs, with its object whole."""

from __future__ import annotations

from agentdash.agents.screen_reader import read_screen
from agentdash.engine.judge.states import facts
from agentdash.model import events as e
from agentdash.model.fact import FactKind, ObjectForm
from agentdash.model.pane import PaneKey
from agentdash.model.states import State
from tests.unit.captures import FOLDERS, Capture, captures

CAPTURES = [
    (folder.rpartition("-")[0], capture) for folder in FOLDERS for capture in captures(folder).values()
]


def read(agent: str, capture: Capture) -> e.ScreenRead:
    reading = read_screen(agent, capture.lines)
    return e.ScreenRead(
        at=1.0,
        key=PaneKey("default", "%1"),
        agent=agent,
        state=reading.state,
        rule=reading.rule,
        text=reading.text,
        object=reading.object,
    )


def squeezed(text: str) -> str:
    return "".join(text.split())


def test_objects_of_prompts_are_on_the_screen() -> None:
    prompts = [
        (capture.text, reading)
        for agent, capture in CAPTURES
        if (reading := read(agent, capture)).state == "waiting-approval"
    ]
    assert len(prompts) > 30
    for text, reading in prompts:
        fact = facts.shown(reading)
        assert fact.kind in (FactKind.RUN, FactKind.EDIT, FactKind.APPROVE)
        assert fact.object, text
        screen = squeezed(text)
        assert all(squeezed(word) in screen for word in fact.object.split()), text
    commands = [fact for _, reading in prompts if (fact := facts.shown(reading)).kind is FactKind.RUN]
    assert sum("touch shell-ran.txt" in fact.object for fact in commands) > 10
    assert {fact.form for fact in commands} == {ObjectForm.COMMAND}


def test_questions_lose_the_marks_around_them() -> None:
    questions = [
        facts.shown(reading)
        for agent, capture in CAPTURES
        if (reading := read(agent, capture)).state == State.WAITING_INPUT
    ]
    asked = [fact for fact in questions if fact.kind is FactKind.ASK]
    assert asked
    assert {fact.kind for fact in questions} == {FactKind.ASK, FactKind.IDLE}
    assert any(fact.object == "Which database should I use?" for fact in asked)
    assert not [fact for fact in asked if fact.object[:1] in "☐●■△"]
