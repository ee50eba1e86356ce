"""The key table, and the effect of each key of the dashboard."""

import asyncio
from collections import Counter

import pytest
from textual.command import CommandList, CommandPalette
from textual.pilot import Pilot

from agentdash.model.pane import PaneKey
from agentdash.tui.app import AgentDash, Options
from agentdash.tui.fleet.findings import FindingsScreen
from agentdash.tui.fleet.screen import HINTS, FleetScreen
from agentdash.tui.help import HelpScreen, matching
from agentdash.tui.help import keys as help_keys
from agentdash.tui.keys import BY_ID, GROUPS, KEYS
from agentdash.tui.library.app import LibraryApp
from agentdash.tui.primitives.footer import Footer
from agentdash.tui.primitives.lines import Lines
from agentdash.tui.primitives.spans import plain
from agentdash.tui.sandbox_screen import SandboxScreen
from agentdash.tui.theme import THEMES
from agentdash.tui.transport.app import ReplayApp
from agentdash.tui.worker.panel import TABS
from agentdash.tui.worker.screen import WorkerScreen

from . import sample_fleet

SIZE = (120, 36)


class Stage:
    """The app with a full fleet, and shortcuts for tests."""

    def __init__(self, app: AgentDash, pilot: Pilot) -> None:
        self.app, self.pilot = app, pilot
        self.panes_visited: list[PaneKey] = []

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    @property
    def name(self) -> str:
        return self.app.worker.name if self.app.worker else ""

    @property
    def shown(self) -> list[str]:
        return [self.app._by_id[row.id].name for row in self.app.root.rows]

    @property
    def tab(self) -> str:
        bar = plain(self.app.screen.query_one("#tabs", Lines).line_at(0))
        return bar[bar.index("[") + 1 : bar.index("]")]

    @property
    def tab_lines(self) -> list[str]:
        tab = self.app.screen.query_one("#tab", Lines)
        return [plain(tab.line_at(row)) for row in range(tab.size.height)]

    @property
    def message(self) -> str:
        return plain(self.app.screen.query_one(Footer).line_at(0)).strip()


@pytest.fixture
async def stage(request):
    app = AgentDash(sample_fleet.StaticFeed(sample_fleet.full_fleet()), sample_fleet.frozen())
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        yield Stage(app, pilot)


# ---------------------------------------------------------------- the table


def test_keys_and_ids_are_unique():
    for together in (("app", "fleet", "player", "lines", "textual"), ("app", "library", "lines", "textual")):
        counted = Counter(k for key in KEYS if key.on in together for k in key.keys.split(","))
        assert [key for key, n in counted.items() if n > 1] == []
    assert len(BY_ID) == len(KEYS)


def test_every_key_is_in_the_help():
    helped = "\n".join(plain(line) for line in matching(help_keys(200), ""))
    assert KEYS
    for key in KEYS:
        assert key.label
        assert key.help.endswith(".")
        assert key.group in GROUPS
        assert "  ".join(key.shown) in helped
        assert key.help in helped


def test_tmux_prefixes_are_not_bound():
    assert not {"ctrl+b", "ctrl+a", "ctrl+space"} & {k for key in KEYS for k in key.keys.split(",")}


async def test_active_bindings_are_in_the_table(stage):
    for keys in ([], ["w"], ["question_mark"], ["enter", "enter"]):
        await stage.press(*keys)
        documented = {k for key in KEYS for k in key.keys.split(",")}
        spelled = {
            "slash": "/",
            "colon": ":",
            "question_mark": "?",
            "exclamation_mark": "!",
            "plus": "+",
            "minus": "-",
        }
        active = {spelled.get(key, key) for key in stage.app.screen.active_bindings}
        assert active - documented <= {"super+c"}  # what macOS calls ctrl+c
        await stage.press(*["escape"] * 3)


async def test_every_action_exists(stage):
    assert KEYS
    for key in KEYS:
        name = key.action.partition("(")[0]
        owners = {
            "app": stage.app,
            "fleet": stage.app,
            "player": ReplayApp,
            "library": LibraryApp,
            "lines": stage.app.root.fleet,
            "textual": stage.app,
            "sandboxes": SandboxScreen,
        }
        owner = stage.app.screen if key.id == "copy-text" else owners[key.on]
        assert hasattr(owner, f"action_{name}"), key.id


def test_hints_are_in_the_table():
    assert set(HINTS) <= set(BY_ID)


# ---------------------------------------------------------------- each key


async def check_down(stage):
    await stage.press("j", "down")
    assert stage.name == "Pasteur"


async def check_up(stage):
    await stage.press("G", "k", "up")
    assert stage.name == stage.shown[-3]


async def check_top(stage):
    for key in ("g", "home"):
        await stage.press("G", key)
        assert stage.name == "main"


async def check_bottom(stage):
    for key in ("G", "end"):
        await stage.press("g", key)
        assert stage.name == "old-run"


async def check_page_down(stage):
    for key in ("ctrl+d", "pagedown"):
        await stage.press("g", key)
        assert stage.shown.index(stage.name) > 3
        await stage.press(*[key] * 9)
        assert stage.name == "old-run"


async def check_page_up(stage):
    for key in ("ctrl+u", "pageup"):
        await stage.press("G", key)
        assert stage.shown.index(stage.name) < len(stage.shown) - 3
        await stage.press(*[key] * 9)
        assert stage.name == "main"


async def check_next_part(stage):
    seen = []
    for _ in range(4):
        seen.append(stage.app.focused.id)
        await stage.press("tab")
    assert seen == ["fleet", "tab", "findings", "fleet"]


async def check_previous_part(stage):
    await stage.press("shift+tab")
    assert stage.app.focused.id == "findings"


async def check_filter(stage):
    await stage.press("/", *"pasteur")
    assert stage.shown == ["Pasteur", "Pasteur the Younger"]
    assert stage.name == "Pasteur"
    await stage.press("enter")
    assert stage.app.focused.id == "fleet"
    await stage.press("/", "escape")
    assert len(stage.shown) == 15
    await stage.press("/", "!", *"pasteur")
    assert len(stage.shown) == 13
    assert "Pasteur" not in stage.shown


async def check_next_match(stage):
    await stage.press("n")
    assert "No filter to repeat" in stage.message
    await stage.press("/", *"waiting", "escape", "g")
    found = []
    for _ in range(4):
        await stage.press("n")
        found.append(stage.name)
    assert found == ["Pasteur the Younger", "api-worker", "claude", "main"]  # `main` waits for its children


async def check_previous_match(stage):
    await stage.press("/", *"waiting", "escape", "g", "N")
    assert stage.name == "claude"


async def check_bucket(stage):
    seen = []
    for _ in range(6):
        await stage.press("f")
        seen.append(len(stage.shown))
    assert seen == [6, 3, 4, 0, 3, 15]


async def check_attention(stage):
    found = []
    for _ in range(7):
        await stage.press("a")
        found.append(stage.name)
    assert found == [
        "Pasteur the Younger",
        "api-worker",
        "claude",
        "fix tests",
        "deploy",
        "gemini",
        "Pasteur the Younger",
    ]


async def check_mismatch(stage):
    found = []
    for _ in range(4):
        await stage.press("!")
        found.append(stage.name)
    assert found == ["Lagrange", "Pasteur", "deploy", "Lagrange"]


async def check_why(stage):
    await stage.press("j", "j", "w")
    assert isinstance(stage.app.screen, WorkerScreen)
    assert stage.tab == "Evidence"
    await stage.press("w")
    assert stage.app.screen is stage.app.root
    await stage.press("enter", "enter", "w")
    assert stage.tab == "Evidence"


async def check_open(stage):
    await stage.press("enter")
    assert stage.app.focused.id == "tab"
    await stage.press("enter")
    assert isinstance(stage.app.screen, WorkerScreen)
    await stage.pilot.resize_terminal(45, 50)
    await stage.press("escape", "escape", "enter")
    assert isinstance(stage.app.screen, WorkerScreen)


async def check_tab_right(stage):
    seen = [stage.tab]
    for key in ("right", "l", "right", "l", "right", "l"):
        await stage.press(key)
        seen.append(stage.tab)
    assert seen == [*TABS, TABS[0]]


async def check_tab_left(stage):
    await stage.press("left", "h", "left")
    assert stage.tab == TABS[-3]


async def check_findings(stage):
    await stage.press("Z")
    assert isinstance(stage.app.screen, FindingsScreen)
    await stage.press("escape")
    assert stage.app.screen is stage.app.root


async def check_sandboxes(stage):
    await stage.press("m")
    assert isinstance(stage.app.screen, SandboxScreen)


async def check_all_sandboxes(stage):
    await stage.press("m", "A")
    assert stage.app.screen.sandboxes.total > 10
    await stage.press("A")
    assert 0 < stage.app.screen.sandboxes.total < 10


async def check_jump(stage):
    await stage.press("j", "o")
    assert "No tmux pane is linked to Lagrange" in stage.message
    await stage.press("g", "o")
    assert "Cannot go to %1" in stage.message

    async def go_to_pane(pane):
        stage.panes_visited.append(pane)
        return "no such pane" if len(stage.panes_visited) == 2 else None

    stage.app._go_to_pane = go_to_pane
    await stage.press("o")
    assert (stage.panes_visited, stage.message) == ([PaneKey("default", "%1")], "Went to %1.")
    await stage.press("o")
    assert stage.message == "no such pane"


async def check_copy_id(stage):
    await stage.press("y")
    assert stage.app.clipboard == stage.app.worker.id
    assert stage.app.worker.id in stage.message


async def check_copy_remedy(stage):
    await stage.press("Y")
    assert "no finding with a remedy" in stage.message
    await stage.press("j", "j", "Y")
    assert stage.app.clipboard == sample_fleet.FOREIGN.remedy.once
    assert "1 of 2" in stage.message
    await stage.press("Y")
    assert stage.app.clipboard == sample_fleet.FOREIGN.remedy.text
    assert "2 of 2" in stage.message


async def check_copy_text(stage):
    await stage.press("enter", "enter")
    await stage.pilot.mouse_down("#heading", offset=(1, 0))
    await stage.pilot.hover("#heading", offset=(4, 0))
    await stage.pilot.mouse_up("#heading", offset=(4, 0))
    await stage.press("ctrl+c")
    assert stage.app.clipboard == "main"


async def check_theme(stage):
    seen = [stage.app.theme]
    for _ in THEMES:
        await stage.press("t")
        seen.append(stage.app.theme)
    assert seen == [*(theme.name for theme in THEMES), THEMES[0].name]


async def check_palette(stage):
    for key in (":", "ctrl+p"):
        await stage.press(key)
        assert isinstance(stage.app.screen, CommandPalette)
        await stage.press("escape")


async def check_help(stage):
    for key in ("?", "f1"):
        await stage.press(key)
        assert isinstance(stage.app.screen, HelpScreen)
        await stage.press(key)
        assert stage.app.screen is stage.app.root
    await stage.press("?", "/", *"acknow")
    shown = "\n".join(plain(line) for line in stage.app.screen.text._content)
    assert "Acknowledge what the worker needs" in shown
    assert "Next row" not in shown
    await stage.press("escape", "escape")
    assert stage.app.screen is stage.app.root


async def check_back(stage):
    await stage.press("f", "enter", "enter", "escape")
    assert isinstance(stage.app.screen, FleetScreen)
    assert stage.app.focused.id == "tab"
    await stage.press("escape")
    assert stage.app.focused.id == "fleet"
    assert len(stage.shown) == 6
    await stage.press("escape")
    assert len(stage.shown) == 15
    await stage.press("escape")
    assert stage.app.is_running


async def check_quit(stage):
    await stage.press("w", "q", "enter", "enter", "q")
    assert stage.app.screen is stage.app.root
    assert stage.app.is_running
    await stage.press("q")
    assert not stage.app.is_running


async def check_suspend(stage):
    """The tests have no shell that could continue them; `tests/live/test_signals.py` has one."""
    await stage.press("ctrl+z")
    assert stage.message.startswith("Cannot be suspended") or stage.app._driver.is_headless


async def check_quit_now(stage):
    await stage.press("w", "ctrl+q")
    assert not stage.app.is_running


class KeptInMemory:
    """What the user acknowledged, without a hub."""

    def __init__(self):
        self.kept, self.looks = [], []

    def acknowledge(self, worker):
        self.kept.append(worker.name)

    def withdraw(self, worker):
        self.kept.remove(worker.name)

    def look(self, at):
        self.looks.append(at)


async def check_acknowledge(stage):
    await stage.press("d")
    assert "replay" in stage.message
    stage.app.attention = kept = KeptInMemory()
    await stage.press("d")
    assert "main does not need you" in stage.message
    await stage.press("a", "d")
    assert kept.kept == ["Pasteur the Younger"]
    assert "until it changes" in stage.message


async def check_unread(stage):
    await stage.press("u")
    assert "Nothing new" in stage.message
    stage.app.attention = KeptInMemory()
    snapshot = sample_fleet.full_fleet()
    workers = tuple(sample_fleet.replace(w, is_new=w.name in ("docs", "gemini")) for w in snapshot.workers)
    stage.app.take(sample_fleet.replace(snapshot, workers=workers))
    assert "2 new" in plain(stage.app.root.header.line_at(0))
    found = []
    for _ in range(2):
        await stage.press("u")
        found.append(stage.name)
    assert sorted(found) == ["docs", "gemini"]
    await stage.press("u")
    assert "Nothing new" in stage.message


async def check_sort(stage):
    seen = []
    for _ in range(6):
        await stage.press("s")
        seen.append(stage.app.root.arrangement.sort)
    assert seen == ["activity", "age", "tokens", "cost", "name", "attention"]
    assert "Sorted by attention" in stage.message


async def check_fold(stage):
    before = len(stage.shown)
    await stage.press("j", "z")
    assert (stage.name, len(stage.shown)) == ("main", before - 3)
    await stage.press("z")
    assert len(stage.shown) == before


async def check_past(stage):
    await stage.press("x")
    assert stage.app.root.arrangement.shows_past


async def check_freeze(stage):
    await stage.press("F")
    assert stage.app.is_frozen
    await stage.press("F")
    assert not stage.app.is_frozen


CHECKS = {
    name.removeprefix("check_").replace("_", "-"): check
    for name, check in globals().items()
    if name.startswith("check_")
}


def test_every_key_has_a_check():
    elsewhere = ("player", "library")  # checked in test_transport and test_library
    assert set(CHECKS) == {key.id for key in KEYS if key.on not in elsewhere}


@pytest.mark.parametrize("name", CHECKS)
async def test_key(stage, name):
    await CHECKS[name](stage)


# ---------------------------------------------------------------- the palette


async def test_without_workers_keys_of_one_say_that_none_is_selected():
    app = AgentDash(sample_fleet.StaticFeed(sample_fleet.empty_fleet()), sample_fleet.frozen())
    async with app.run_test(size=SIZE) as pilot:
        stage = Stage(app, pilot)
        await pilot.pause()
        for key in ("y", "Y", "o", "d", "z", "w", "enter"):
            app.show_message("")
            await stage.press(key)
            assert stage.message == "No worker is selected.", key


async def choose(stage, text):
    await stage.press(":", *text)
    found = stage.app.screen.query_one(CommandList)
    while found.highlighted is None:
        await stage.pilot.pause()
    await stage.press("enter")


async def test_palette_runs_actions(stage):
    await choose(stage, "why")
    while not isinstance(stage.app.screen, WorkerScreen):
        await stage.pilot.pause()


async def test_palette_finds_worker_named_like_markup(stage):
    await choose(stage, "[bold red]")
    while stage.name != sample_fleet.HOSTILE:
        await stage.pilot.pause()
    assert stage.app.screen is stage.app.root


async def test_palette_opens_while_the_last_one_is_removed(stage, monkeypatch):
    removal = asyncio.Event()
    unmount = CommandPalette._on_unmount

    async def wait_and_unmount(palette):
        await removal.wait()
        await unmount(palette)

    monkeypatch.setattr(CommandPalette, "_on_unmount", wait_and_unmount)
    await stage.app.run_action("command_palette")
    stage.app.screen.dismiss()
    assert stage.app.screen is stage.app.root
    opening = asyncio.create_task(stage.app.run_action("command_palette"))
    await asyncio.sleep(0)
    removal.set()
    await opening
    assert isinstance(stage.app.screen, CommandPalette)


async def test_draw_after_shutdown_does_nothing(stage):
    """Screens lose their widgets before they leave the stack, while messages may still arrive."""
    await stage.press("w")
    await stage.app._shutdown()  # private: `exit` would only request it
    stage.app.draw()
    stage.app.root.fleet.focus()


async def test_selecting_a_hidden_worker_clears_the_filter(stage):
    await stage.press("f")
    stage.app.select_worker(sample_fleet.full_fleet().workers[-1].id)
    await stage.pilot.pause()
    assert (stage.name, len(stage.shown)) == ("old-run", 15)


# ---------------------------------------------------------------- other keys


async def test_remapped_keys():
    app = AgentDash(
        sample_fleet.StaticFeed(sample_fleet.full_fleet()),
        sample_fleet.frozen(),
        options=Options(keys={"down": "k", "up": "j", "why": "!", "mismatch": "f2"}),
    )
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        stage = Stage(app, pilot)
        await stage.press("k", "k", "j")
        assert stage.name == "Lagrange"
        assert "! why" in plain(app.screen.query_one(Footer).line_at(0))
        await stage.press("!")
        assert isinstance(app.screen, WorkerScreen)
        await stage.press("!", "g", "f2")
        assert stage.name == "Lagrange"
        await stage.press("?")
        assert any(
            plain(line).split()[:2] == ["k", "Next"]
            for line in matching(help_keys(200, app.keys), "next row")
        )
