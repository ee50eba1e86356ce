"""The short fact of a worker: what it needs, with its object whole."""

from agentdash.agents.screen_reader import read_screen
from agentdash.engine.judge.states import facts
from agentdash.model import events as e
from agentdash.model.fact import FactKind, ObjectForm
from agentdash.model.pane import PaneKey
from tests.unit.captures import FOLDERS, Capture, captures


def readings() -> list[tuple[Capture, e.ScreenRead]]:
    """Return the captured screens of all worker CLIs, as they are read."""
    found = []
    for folder in FOLDERS:
        agent = folder.rpartition("-")[0]
        for capture in captures(folder).values():
            reading = read_screen(agent, capture.lines)
            more = {name: getattr(reading, name) for name in ("state", "rule", "text", "object")}
            key = PaneKey("default", "%1")
            found.append((capture, e.ScreenRead(at=1.0, key=key, agent=agent, **more)))
    return found


READ = readings()


def squeezed(text: str) -> str:
    return "".join(text.split())


def test_objects_of_prompts_are_on_the_screen() -> None:
    prompts = [(capture.text, each) for capture, each in READ if each.state == "waiting-approval"]
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
    questions = [facts.shown(each) for _, each in READ if each.state == "waiting-input"]
    assert {fact.kind for fact in questions} == {FactKind.ASK, FactKind.IDLE}
    asked = [fact.object for fact in questions if fact.kind is FactKind.ASK]
    assert "Which database should I use?" in asked
    assert not [each for each in asked if each[:1] in "☐●■△"]
