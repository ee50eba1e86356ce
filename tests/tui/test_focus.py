"""Which part of the screen has the focus, and what keys do there."""

import pytest

from agentdash.tui.app import AgentDash, Options
from agentdash.tui.primitives.footer import Footer
from agentdash.tui.primitives.spans import plain
from agentdash.tui.theme import THEMES

from . import sample_fleet
from .sample_fleet import SNAPSHOT

STARTS = {
    "fleet": " a attention  o go to pane",
    "tab": " esc back  right next tab  tab next part",
    "findings": " esc back  enter open  tab next part",
}


def looks(app):
    """Return how the marks of the focus look: heads of the list, borders of the other parts."""
    heads = app.root.titles.tone_style("title", 0)
    return str(heads), app.root.query_one("#tab").styles.border_left, app.root.findings.styles.border_top


@pytest.mark.parametrize("theme", [theme.name for theme in THEMES])
async def test_one_part_is_marked_and_the_footer_has_its_keys(theme):
    feed = sample_fleet.StaticFeed(SNAPSHOT)
    app = AgentDash(feed, sample_fleet.frozen(), options=Options(theme=theme))
    async with app.run_test(size=(120, 36)) as pilot:
        await pilot.pause()
        seen = {}
        for _ in STARTS:
            seen[app.focused.id] = (plain(app.root.query_one(Footer).line_at(0)), looks(app))
            await pilot.press("tab")
            await pilot.pause()
    assert seen.keys() == STARTS.keys()
    for part, start in STARTS.items():
        assert seen[part][0].startswith(start)
    heads, panel, findings = zip(*(seen[part][1] for part in ("fleet", "tab", "findings")), strict=True)
    assert heads[1] == heads[2] != heads[0]
    assert panel[0] == panel[2] != panel[1]
    assert findings[0] == findings[1] != findings[2]


async def test_the_chosen_finding_can_be_read_in_the_colours_of_a_terminal():
    feed = sample_fleet.StaticFeed(SNAPSHOT)
    app = AgentDash(feed, sample_fleet.frozen(), options=Options(theme="terminal"))
    async with app.run_test(size=(120, 36)) as pilot:
        await pilot.pause()
        app.root.findings.focus()
        await pilot.pause()
        words = [segment for segment in app.root.findings.render_line(0) if segment.text.strip()]
    grounds = {(segment.style.color.name, segment.style.bgcolor.name) for segment in words}
    assert ("#ffffff", "color(4)") in grounds  # blue
    assert all(ground != "default" and colour not in ("default", ground) for colour, ground in grounds)
