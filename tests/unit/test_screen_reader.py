"""Screen rules against real screens of worker CLIs, and against screens that resemble them."""

import re
import tomllib
from collections import Counter
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rich.console import Console

from agentdash.agents.registry import adapters, tables
from agentdash.agents.screen_reader import NO_READING, ScreenReading, read_screen, rules_of
from agentdash.model.states import State
from agentdash.report.explain import print_screen
from tests.unit.captures import FOLDERS, PANES, captures

RULES = {agent: rules for agent in adapters() if (rules := rules_of(agent)) is not None}
NEEDS_YOU = ("waiting-", "failed-", "blocked-")


def screen(folder: str, name: str) -> list[str]:
    return captures(folder)[name].lines


def read(folder: str, name: str, agent: str | None = None, **other: Any) -> ScreenReading:
    pane = captures(folder)[name].facts
    known = {"title": pane["title"], "cursor_visible": pane["cursor"], **other}
    return read_screen(agent or pane.get("agent") or folder.partition("-")[0], screen(folder, name), **known)


def word(reading: ScreenReading) -> str:
    """Return a reading in the notation of `golden.toml`."""
    if reading.rule is None:
        return "nothing"
    state = "frozen" if reading.frozen else (reading.state or "") + " partial" * reading.partial
    return f"{state} {reading.rule}".strip()


# ---------------------------------------------------------------- real screens


@pytest.mark.parametrize("folder", FOLDERS)
def test_state_and_rule_of_real_screens(folder: str) -> None:
    golden: dict[str, list[str]] = tomllib.loads((PANES / "golden.toml").read_text("utf-8"))[folder]
    expected = {name: said for said, names in golden.items() for name in names}
    assert len(expected) == sum(map(len, golden.values()))
    assert {name: word(read(folder, name)) for name in captures(folder)} == expected


def test_every_tested_version_has_captures_and_every_capture_a_tested_version() -> None:
    tested = {f"{agent}-{version}" for agent, rules in RULES.items() for version in rules.tested}
    assert tested == set(FOLDERS)


def test_every_rule_of_a_tested_agent_reads_some_capture() -> None:
    golden = tomllib.loads((PANES / "golden.toml").read_text("utf-8"))
    used = {said.split()[-1] for folder in golden.values() for said in folder}
    known = [rule for rules in RULES.values() for rule in rules.rules]
    rules = {rule.id for rule in known if rule.tested and not rule.id.startswith("any.")}
    # the first three come after more specific rules, the others need screens that no scripted model produced
    spare = {
        "codex.title-action",
        "claude.spinner",
        "claude.title-spinner",
        "gemini.title-action",
        "gemini.title-working",
    }
    spare |= {"codex.approval", "codex.answered-untitled", "qwen.approval", "qwen.confirmation"}
    spare |= {f"{agent}.{rule}" for agent in RULES for rule in ("sent", "idle")}
    for agent in adapters():  # a fork has the rules of its origin, tried there
        of_origin = (rule for rule in used if rule.startswith(f"{origin_of(agent)}."))
        used |= {f"{agent}.{rule.partition('.')[2]}" for rule in of_origin}
    assert rules - used <= spare


@pytest.mark.parametrize(
    ("folder", "name"), [("codex-0.169.0", "streaming-lines-1"), ("codex-0.132.0", "finished")]
)
def test_codex_streaming_needs_the_title(folder: str, name: str) -> None:
    assert read(folder, name, title="") == NO_READING


def test_codex_to_0_98_needs_no_title() -> None:
    assert read("codex-0.98.0", "finished", title="").rule == "codex.answered-untitled"
    assert read("codex-0.98.0", "working-1", title="").state == "running"


def test_title_decides_where_the_dialog_does_not_fit() -> None:
    lines = screen("codex-0.169.0", "approve-command")
    options = lines[lines.index("› 1. Yes, proceed (y)") :]
    reading = read_screen("codex", options, title="[ ! ] Action Required | ws")
    assert (reading.state, reading.rule, reading.partial) == ("waiting-approval", "codex.title-action", True)


def test_question_is_quoted() -> None:
    assert read("codex-0.169.0", "approve-command").text == (
        "Would you like to run the following command? · $ touch shell-ran.txt; sleep 12; echo shell-finished"
    )
    assert read("opencode-1.18.33", "approve-edit").text == "△ Permission required · → Edit notes.txt"
    assert read("claude-2.1.197", "question").text == "☐ Database Which database should I use?"
    assert read("gemini-0.61.0", "error-401-early").text.startswith('✕ [API Error: {"error":{"code":401')


@pytest.mark.parametrize("folder", FOLDERS)
def test_reading_is_independent_of_the_position(folder: str) -> None:
    """Main-screen programs start anywhere, alternate-screen ones leave room; only copy mode and pagers use
    the top."""
    agent = folder.partition("-")[0]
    for name, (_, pane) in captures(folder).items():
        lines, known = screen(folder, name), {"title": pane["title"], "cursor_visible": pane["cursor"]}
        reading = read(folder, name)
        assert read_screen(agent, [*lines, "", "", ""], **known) == reading
        if str(reading.state).startswith("waiting-approval"):
            assert read_screen(agent, ["$ make", "done", *lines], **known).state == reading.state


def test_pane_size_bounds_the_screen() -> None:
    lines = screen("codex-0.169.0", "approve-command")
    known: dict[str, Any] = {"title": "", "cursor_visible": False}
    assert read_screen("codex", lines, **known, width=100, height=30) == read_screen("codex", lines, **known)
    cut = read_screen("codex", lines, **known, width=100, height=5)
    assert cut.text.startswith("options without the question")


# ---------------------------------------------------------------- lookalikes


@pytest.mark.parametrize("name", sorted(captures("negative")))
def test_lookalikes_do_not_need_attention(name: str) -> None:
    own = captures("negative")[name].facts["agent"]
    states = {(own, read("negative", name).state)}
    if not name.startswith("wrong-agent"):
        states |= {(agent, read("negative", name, agent).state) for agent in RULES if agent != own}
    assert not {(agent, state) for agent, state in states if state and state.startswith(NEEDS_YOU)}


def origin_of(agent: str) -> str | None:
    """Return the CLI whose fork a CLI is."""
    name: str | None = adapters()[agent].tables.get("screen", {}).get("like")
    return name


@pytest.mark.slow
def test_rules_of_other_agents_do_not_match() -> None:
    wrong = {
        (agent, folder, name, reading.rule)
        for folder in FOLDERS
        for name in captures(folder)
        for agent in RULES
        if not folder.startswith((agent, origin_of(agent) or agent))
        and origin_of(folder.partition("-")[0]) != agent
        and (reading := read(folder, name, agent, title="")).state
        and str(reading.state).startswith(("waiting-approval", "failed-", "blocked-"))
    }
    assert not wrong


@pytest.mark.parametrize(
    "half", [name for name in captures("negative") if re.match(r"half-(?:question|options|cut)", name)]
)
def test_half_a_menu_is_partial(half: str) -> None:
    reading = read("negative", half)
    assert reading.partial
    is_question = "question" in half or "bottom" in half
    said = "question without the options" if is_question else "options without the question"
    assert reading.text.startswith(said)


@pytest.mark.parametrize("folder", ["opencode-1.18.33", "kilo-7.7.7"])
def test_an_empty_input_box_is_no_question_where_its_end_is_out_of_sight(folder: str) -> None:
    starts = [name for name in captures(folder) if "Ask anything" in "\n".join(screen(folder, name))]
    assert starts
    for name in starts:
        lines = screen(folder, name)
        for height in range(1, len(lines)):
            reading = read_screen(folder.partition("-")[0], lines[:height])
            assert (reading.partial, reading.state) == (False, reading.rule and "waiting-input"), height


@pytest.mark.parametrize(
    "view",
    [name for name in captures("negative") if re.match(r"pager|editor|transcript|copy-mode|.*-picker", name)],
)
def test_views_freeze_the_reading(view: str) -> None:
    reading = read("negative", view)
    assert reading.frozen
    assert reading.state is None


# ---------------------------------------------------------------- any text

_MARKS = "›❯●▌┃│╭╰─▄▀╹▣△■✕✦ℹ✻⎿⠋> \n1.?:[](){}abcYesNo…·•"
_TEXTS = st.lists(st.one_of(st.text(max_size=120), st.text(_MARKS, max_size=120)), max_size=60)


@settings(max_examples=120)
@given(
    lines=_TEXTS,
    title=st.text(max_size=40),
    cursor=st.sampled_from((None, True, False)),
    size=st.integers(0, 200),
)
@example(lines=[" " * 300] * 200, title="", cursor=None, size=0)
@example(lines=["│" + " " * 98 + "│"] * 60, title="", cursor=False, size=100)
@example(lines=["    ▣  Build · Fake · Model  " + " " * 60 + "x", ""] * 60, title="OC", cursor=True, size=0)
@example(lines=["  ┃", "  ┃ " + "word " * 20, ""] * 60 + ["  ╹▀▀▀▀▀▀▀"], title="", cursor=None, size=0)
@example(
    lines=["› 1. x", *["  2. y"] * 100, "  Press enter to confirm or esc to"] * 2,
    title="",
    cursor=None,
    size=0,
)
@example(lines=["● API Error", *["● word"] * 190, "─" * 50, "❯", "─" * 50], title="", cursor=None, size=0)
def test_reading_never_raises(lines: list[str], title: str, cursor: bool | None, size: int) -> None:
    for agent in (*RULES, "an agent that nobody knows"):
        reading = read_screen(agent, lines, title=title, cursor_visible=cursor, width=size, height=size)
        assert reading.state is None or reading.state in set(State)
        assert len(reading.text) <= 300
        assert not (reading.frozen and reading.state)


# ---------------------------------------------------------------- rules files


def test_rules_say_what_they_need() -> None:
    for known in RULES.values():
        for rule in known.rules:
            assert rule.words or rule.all or rule.any or rule.options or rule.prompt is not None, rule.id
            assert bool(rule.question) is bool(rule.options), rule.id
            assert rule.show is None or rule.show.groups, rule.id


@pytest.mark.parametrize("agent", [*adapters(), "any"])
def test_no_rule_is_written_twice(agent: str) -> None:
    rows = [*tables(agent).get("rules", ()), *tables(agent).get("views", ())]
    assert [name for name, count in Counter(row["id"] for row in rows).items() if count > 1] == []
    assert all("state" in row for row in tables(agent).get("rules", ()))
    assert not any("state" in row for row in tables(agent).get("views", ()))


# ---------------------------------------------------------------- document


@pytest.mark.parametrize(
    ("reading", "said"),
    [
        (ScreenReading("running", "codex.working", "•"), ("running", "codex.working", "1.2, 1.3")),
        (ScreenReading(None, "any.pager", ":", frozen=True), ("a view hides the prompt", "any.pager")),
        (ScreenReading(None, "codex.approval", "x", partial=True), ("half of a menu", "x")),
        (NO_READING, ("not decided by this screen", "none matches")),
    ],
)
def test_reading_as_text(reading: ScreenReading, said: tuple[str, ...]) -> None:
    console = Console(width=100, record=True)
    print_screen(reading, "codex", ["1.2", "1.3"], console)
    shown = console.export_text()
    assert all(part in shown for part in said)


COMMAND_ON_SCREEN = "touch shell-ran.txt; sleep 12; echo shell-finished"


@pytest.mark.parametrize(
    ("capture", "shown"),
    [
        ("aider-0.86.2/tool-running-45x50", "sleep 12; echo shell-finished"),
        ("copilot-1.0.102/tool-running", COMMAND_ON_SCREEN),
        ("gemini-0.61.0/tool-running-80x24", COMMAND_ON_SCREEN),
        ("kilo-7.7.7/tool-running-45x50", "until [ -e go ]; do sleep 0.1; done; echo went"),
        ("opencode-1.18.33/tool-running-160x45", COMMAND_ON_SCREEN),
        ("opencode-1.18.33/tool-running-45x50", COMMAND_ON_SCREEN),
        ("qwen-0.15.10/tool-running-1", f"{COMMAND_ON_SCREEN} (Run the scripted command)"),
        ("qwen-0.15.10/tool-running-45x50", "touch shell-ran.txt; sleep …"),
        ("copilot-1.0.102/working", ""),
        ("opencode-1.18.33/working-1", ""),
    ],
)
def test_work_shows_the_command_that_runs(capture: str, shown: str) -> None:
    agent = capture.partition("-")[0]
    lines = screen(*capture.split("/"))
    reading = read_screen(agent, lines, cursor_visible=False if agent == "aider" else None)
    assert (reading.state, reading.object) == ("running", shown)
