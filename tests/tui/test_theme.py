"""Glyphs, states and colours."""

import re
import unicodedata
from importlib.resources import files

from msgspec.structs import replace
from rich.cells import cell_len

from agentdash.model.states import State
from agentdash.tui.primitives.spans import width
from agentdash.tui.theme import ASCII, STATE_WIDTH, UNICODE, sign

from .sample_fleet import BY_NAME, SNAPSHOT


def all_glyphs(glyphs):
    yield from glyphs.states.values()
    yield from glyphs.verdicts.values()
    yield from glyphs.directions.values()
    yield from glyphs.groups.values()
    yield from (
        *glyphs.tree,
        glyphs.cursor,
        *glyphs.agrees,
        glyphs.ellipsis,
        glyphs.dot,
        glyphs.rule,
        glyphs.stalled,
    )


def test_every_state_has_its_own_glyph():
    for glyphs in (UNICODE, ASCII):
        assert set(glyphs.states) == set(State)
        assert len({*glyphs.states.values(), glyphs.stalled}) == len(State) + 1


def test_glyphs_are_one_cell_wide_except_the_documented_ones():
    wide = {c for glyph in all_glyphs(UNICODE) for c in glyph if unicodedata.east_asian_width(c) in "AWF"}
    assert wide == {"≠", "├", "└", "│", "─"}
    assert all(cell_len(c) == 1 for glyph in all_glyphs(UNICODE) for c in glyph)


def test_ascii_glyphs_are_ascii():
    assert all(glyph.isascii() for glyph in (*all_glyphs(ASCII), ASCII.bars))


def test_a_sign_has_one_meaning():
    for glyphs in (UNICODE, ASCII):
        assert glyphs.verdicts["mismatch"] not in (*glyphs.directions.values(), *glyphs.states.values())
        assert glyphs.verdicts["mismatch"] == glyphs.groups["mismatch"]
        assert glyphs.verdicts["unverified"] not in (*glyphs.states.values(), "?", "!")
        others = (*glyphs.directions.values(), *glyphs.verdicts.values())
        assert "!" not in "".join(others)
        assert glyphs.groups["new"] not in (*others, *glyphs.states.values())
        assert len(glyphs.bars) == 9


def test_every_state_fits_into_state_width():
    assert {width((sign(worker, UNICODE),)) <= STATE_WIDTH for worker in SNAPSHOT.workers} == {True}


def test_exited_sign_shows_status_or_signal():
    gone = BY_NAME["old-run"]
    killed = replace(gone, pane=replace(gone.pane, dead_status=None, dead_signal=9))
    assert [sign(w, UNICODE).text for w in (gone, killed, replace(gone, pane=None))] == [
        "✕ exited 137",
        "✕ exited sig 9",
        "✕ exited",
    ]


def test_stylesheet_has_theme_colours_only():
    sheet = files("agentdash.tui").joinpath("agentdash.tcss").read_text()
    values = re.findall(r"(?:color|background|border[\w-]*|text-style)[\w-]*:\s*([^;]+);", sheet)
    assert len(values) > 20
    assert not [
        value
        for value in values
        if re.search(r"#[0-9a-fA-F]{3}|rgb|hsl|ansi_|\b(?:red|green|blue|white|black|grey)\b", value)
    ]
