"""Model, context and cost as worker CLIs show them below their input box, on all recorded screens."""

from collections import Counter

import pytest

from agentdash.agents.screen_reader import read_screen
from agentdash.model.pane import ScreenUsage
from tests.unit.captures import captures

NOTHING = ScreenUsage()
STATED: dict[str, set[ScreenUsage]] = {
    "cline-3.0.65": {
        ScreenUsage(model="mock", total=1_200, cost=0.0),
        ScreenUsage(model="mock", total=0, cost=0.0),
    },
    "copilot-1.0.102": {ScreenUsage(model="gpt-4.1"), NOTHING},
    "gemini-0.61.0": {ScreenUsage(model="gemini-2.5-flash"), NOTHING},
    "kilo-7.7.7": {
        ScreenUsage(model="Mock Mock", context=1_200, percent=1.0),
        ScreenUsage(model="Mock Mock"),
    },
    "kimi-2.1.0": {
        ScreenUsage(context=1_200, window=195_000, percent=1.0),
        ScreenUsage(context=1_300, window=195_000, percent=1.0),
        ScreenUsage(context=0, window=195_000, percent=0.0),
    },
    "opencode-1.14.41": {
        ScreenUsage(model="Mock Model Mock", context=1_200, percent=1.0),
        ScreenUsage(model="Mock Model Mock"),
    },
    "opencode-1.18.33": {
        ScreenUsage(model="Fake Model Fake", context=1_200, percent=1.0),
        ScreenUsage(model="Fake Model Fake"),
        NOTHING,
    },
    "qwen-0.24.4": {ScreenUsage(model="mock-model")},
}
"""By folder, what its screens with an input box state."""


def usages(folder: str) -> Counter[ScreenUsage | None]:
    agent = folder.partition("-")[0]
    return Counter(read_screen(agent, capture.lines).usage for capture in captures(folder).values())


@pytest.mark.parametrize("folder", STATED)
def test_screens_with_a_box_state_what_was_recorded_and_nothing_else(folder: str) -> None:
    found = usages(folder)
    assert found.keys() - {None} == STATED[folder]
    assert sum(found[usage] for usage in STATED[folder] if usage != NOTHING) >= 5


@pytest.mark.parametrize("name", ["approve-command", "question"])
def test_a_dialog_hides_the_line(name: str) -> None:
    screen = captures("opencode-1.18.33")[name].lines
    assert read_screen("opencode", screen).usage is None


def test_quoted_figures_above_the_box_are_not_read() -> None:
    screen = captures("copilot-1.0.102")["finished"].lines
    quoted = [" mock (9,999) $12.00 ", " workspace  41.2K (15%)  ctrl+p commands", *screen]
    assert read_screen("copilot", quoted).usage == ScreenUsage(model="gpt-4.1")


def test_opencode_states_its_cost_beside_the_context() -> None:
    screen = captures("opencode-1.18.33")["finished"].text
    screen = screen.replace("1.2K (1%)  ctrl", "81.2K (41%) · $0.37  ctrl")
    usage = read_screen("opencode", screen.splitlines()).usage
    assert usage == ScreenUsage(model="Fake Model Fake", context=81_200, percent=41.0, cost=0.37)
