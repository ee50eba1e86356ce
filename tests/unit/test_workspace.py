"""One pane, many threads: a Codex TUI with side chats in a column of its own (0.171, `ctrl-x s`)."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agentdash.agents.codex.rollout.lineage import thread_started
from agentdash.agents.codex.rollout.records import SessionMeta
from agentdash.agents.screen_reader import read_screen
from agentdash.model import events as e
from agentdash.model.pane import columns
from agentdash.model.states import State
from agentdash.model.thread import Thread
from agentdash.model.worker import Worker
from tests.unit.story import CWD, PANE, T, begun, in_pane, process, snapshot_after

SIDE = "01a2198d-4f3a-7961-be94-5d14ebb9a9e3"
DAEMON = ("codex", "app-server", "--listen", "unix://", "--managed-daemon")
SCREENS = Path(__file__).parents[1] / "data" / "panes" / "codex-0.171.0.txt"


def capture(name: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    for block in SCREENS.read_text("utf-8").split("\f"):
        head, _, rows = block.partition("\n")
        if head and json.loads(head)["name"] == name:
            return json.loads(head), tuple(rows.split("\n"))
    raise KeyError(name)


def said(thread: str, text: str, at: float) -> e.Event:
    return e.MessageLogged(thread=thread, at=at, line=4, role="user", text=text)


def asks(thread: str, at: float) -> list[e.Event]:
    """An open turn with a command that waits, known by no feed."""
    call = e.CallStarted(
        thread=thread, at=at, line=9, call="c1", tool="exec_command", kind="command", text="touch x"
    )
    return [e.TurnStarted(thread=thread, at=at, line=8), call]


def workers(
    name: str, *, owner: int = 50, side: str = "[[side]] go side", chat: bool = True
) -> dict[str, Worker]:
    """Return the workers of a pane with a screen as captured, in which both threads have an open call."""
    about, rows = capture(name)
    reading = read_screen(
        "codex", rows, title=about["title"], cursor_visible=about["cursor"], width=140, height=40
    )
    fields = msgspec.structs.asdict(reading)
    forked = e.ThreadStarted(
        thread=SIDE, at=101.0, line=1, cwd=CWD, version="0.171.0", originator="codex-tui", forked_from=T,
        side_chat=chat,
    )  # fmt: skip
    main = [each for each in begun() if not isinstance(each, e.MessageLogged)]
    story = [
        *main,
        said(T, "[[hello]] first main prompt", 100.5),
        forked,
        said(SIDE, side, 102.0),
        *asks(T, 103.0),
        *asks(SIDE, 103.0),
        *in_pane("codex", started=95.0, cwd=CWD, argv=("codex",)),
        e.PaneDrawn(at=105.0, key=PANE, screen=rows),
        process(50, 11, started=96.0, argv=DAEMON),
        e.ProcessesCounted(at=106.0),
        e.ScreenRead(at=107.0, key=PANE, agent="codex", **fields),
        e.LocksSeen(at=110.0, holders={T: owner, SIDE: owner}),
        e.ProcessesCounted(at=110.0),
    ]
    return {each.id: each for each in snapshot_after(*story).workers}


@pytest.mark.parametrize("owner", [50, 11], ids=["daemon", "embedded"])
@pytest.mark.parametrize(
    ("name", "asking"),
    [
        ("split-approval-in-side", SIDE),
        ("split-approval-in-main", T),
        ("split-main-runs", None),
        ("split-side-idle-while-main-asks", None),  # its dialog is not drawn: only feed and record know it
    ],
)
def test_each_thread_has_the_pane_and_one_of_them_its_screen(
    name: str, asking: str | None, owner: int
) -> None:
    found = workers(name, owner=owner)
    assert {each.id: each.pane is not None for each in found.values()} == {T: True, SIDE: True}
    waiting = [each.id for each in found.values() if each.state is State.WAITING_APPROVAL]
    assert waiting == ([asking] if asking else [])
    front = SIDE if name in ("split-approval-in-side", "split-side-idle-while-main-asks") else T
    assert {each.id: each.part for each in found.values()} == {
        T: f"main conversation, {'in front' if front == T else 'not in front'}",
        SIDE: f"side chat, {'in front' if front == SIDE else 'not in front'}",
    }


def test_a_side_chat_without_a_prompt_has_the_name_of_its_origin() -> None:
    """Both columns show it, so that the dialog of one of them is nobody's by the screen."""
    found = workers("split-approval-in-main", side="[[hello]] first main prompt")
    assert [each.pane is not None for each in found.values()] == [True, True]


@pytest.mark.parametrize(("source", "is_side"), [("tui_side_chat", True), ("user", False), (None, False)])
def test_the_record_says_what_a_side_chat_is(source: str | None, is_side: bool) -> None:
    meta = SessionMeta(id=SIDE, forked_from_id=T, thread_source=source)
    assert thread_started(SIDE, meta, 1.0, 1).side_chat is is_side


@pytest.mark.parametrize(
    ("rows", "number"),
    [
        ([f"{'左':<29}│ right", *[f"{'left':<30}│ right"] * 5], 2),  # a wide character has two cells
        ([*[f"{'left':<30}│ right"] * 4, "a popup that covers the line", f"{'left':<30}│"], 2),
        ([f"{'left':<30}│ right", *[f"{'left':<30}│ right"] * 5, "", ""], 2),
        (["┌──────┐", *[f"│{'x':<40}│"] * 6, "└──────┘"], 1),  # a box
        ([*[f"{'a':<30}│ b"] * 6, "› Ask Codex"], 1),  # a table above the prompt
        ([f"{'a':<30}│ b", "prose", "prose", f"{'c':<30}│ d"], 1),
        ([], 1),
    ],
)
def test_screens_are_cut_at_a_line_from_top_to_bottom(rows: list[str], number: int) -> None:
    cut = columns(tuple(rows))
    assert len(cut) == number
    assert number == 1 or cut[1][0].strip() == "right"


@pytest.mark.parametrize(
    ("title", "is_its"),
    [
        ("fix the tests", True),
        ("fix the t...", True),
        ("fix", False),
        ("...", False),
        ("", False),
    ],
)
def test_a_title_names_a_thread(title: str, is_its: bool) -> None:
    assert Thread(T, prompt="fix  the\ntests").is_titled(title) is is_its
