"""Glyphs, states and colours."""

import os
import re
import unicodedata
from importlib.resources import files
from itertools import combinations
from math import dist
from typing import get_args

import pytest
from msgspec.structs import replace
from rich.cells import cell_len
from rich.console import Console
from textual.color import Color

from agentdash.model.terminal_colours import MANY, NONE, SIXTEEN, TRUE_COLOUR, terminal_colours
from agentdash.tui.app import AgentDash, Options
from agentdash.tui.primitives.signs import ascii_signs
from agentdash.tui.primitives.spans import Tone, width
from agentdash.tui.theme import ASCII, BADGE_FOREGROUND, STATE_WIDTH, UNICODE, sign

from . import sample_fleet
from .sample_fleet import BY_NAME, SNAPSHOT


def all_glyphs(glyphs):
    yield from glyphs.states.values()
    yield from glyphs.verdicts.values()
    yield from glyphs.directions.values()
    yield from (
        *glyphs.tree,
        glyphs.cursor,
        *glyphs.agrees,
        glyphs.ellipsis,
        glyphs.dot,
        glyphs.rule,
        glyphs.sorted,
    )


def test_glyphs_are_one_cell_wide_except_the_documented_ones():
    wide = {c for glyph in all_glyphs(UNICODE) for c in glyph if unicodedata.east_asian_width(c) in "AWF"}
    assert wide == {"≠", "├", "└", "│", "─"}
    assert all(cell_len(c) == 1 for glyph in all_glyphs(UNICODE) for c in glyph)


def test_ascii_glyphs_are_ascii():
    assert all(glyph.isascii() for glyph in (*all_glyphs(ASCII), ASCII.bars))


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


# ---------------------------------------------------------------- contrast

PALETTES = {  # ground, foreground, red
    "xterm": ("#000000", "#e5e5e5", "#cd0000"),
    "xterm, light": ("#ffffff", "#000000", "#cd0000"),
    "VS Code, dark": ("#1e1e1e", "#cccccc", "#cd3131"),
    "VS Code, light": ("#ffffff", "#333333", "#cd3131"),
    "GNOME, dark": ("#300a24", "#eeeeec", "#cc0000"),
    "GNOME, light": ("#ffffff", "#171421", "#c01c28"),
    "Windows Terminal": ("#0c0c0c", "#cccccc", "#c50f1f"),
    "macOS, light": ("#ffffff", "#000000", "#c23621"),
    "macOS, dark": ("#1e1e1e", "#ffffff", "#c23621"),
    "Linux console": ("#000000", "#aaaaaa", "#aa0000"),
}
"""Solarized is left out: its own plain text has 4.1."""


def luminance(color):
    parts = [part / 255 for part in Color.parse(color).rgb]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one, other):
    """Return the contrast ratio of WCAG 2."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_terminal_theme_can_be_read_on_light_and_dark_grounds():
    """Text is in the terminal's own foreground, as it is or reversed, or white on its red; no other pair."""
    for name, (ground, foreground, red) in PALETTES.items():
        assert contrast(foreground, ground) >= 4.5, name
        assert contrast(BADGE_FOREGROUND, red) >= 4.5, name


async def test_tones_of_the_terminal_theme_are_of_these_pairs_and_differ():
    app = AgentDash(
        sample_fleet.StaticFeed(SNAPSHOT), sample_fleet.frozen(), options=Options(theme="terminal")
    )
    async with app.run_test(size=(120, 36)) as pilot:
        await pilot.pause()
        styles = {tone: app.root.fleet.tone_style(tone, 10_000) for tone in get_args(Tone) if tone}
        assert {tone for tone, style in styles.items() if not is_default(style.color)} == {"stuck"}
        assert {tone for tone, style in styles.items() if not is_default(style.bgcolor)} == {"stuck"}
        assert styles["stuck"].bgcolor.number == 1
        kinds = ("ask", "stuck", "live", "gone", "mismatch")
        looks = {(s.reverse, s.underline, s.dim, s.bold, s.bgcolor.name) for s in map(styles.get, kinds)}
        assert len(looks) == len(kinds)


def is_default(color):
    return color is None or color.is_default


@pytest.mark.parametrize(
    ("term", "colorterm", "theme"),
    [
        ("linux", "", "terminal"),
        ("xterm-16color", "", "terminal"),
        ("screen", "", "terminal"),
        ("tmux", "", "terminal"),
        ("xterm", "", "terminal"),
        ("xterm-256color", "", "dark"),
        ("xterm-kitty", "", "dark"),
        ("", "", "dark"),
        ("linux", "truecolor", "dark"),
    ],
)
def test_16_colours_have_the_terminal_theme(monkeypatch, term, colorterm, theme):
    monkeypatch.setenv("TERM", term)
    if colorterm:
        monkeypatch.setenv("COLORTERM", colorterm)
    assert AgentDash(sample_fleet.StaticFeed(SNAPSHOT), sample_fleet.frozen()).theme == theme
    assert (terminal_colours(os.environ) == SIXTEEN) is (theme == "terminal")
    chosen = AgentDash(
        sample_fleet.StaticFeed(SNAPSHOT), sample_fleet.frozen(), options=Options(theme="light")
    )
    assert chosen.theme == "light"


def test_signs_of_quoted_screens_are_ascii_letters_stay():
    assert (
        ascii_signs("┃ △ Permission required ▣ ⬝⬝■ naïve 日本 →")
        == "| ^ Permission required # ..# naïve 日本 >"
    )
    for text in ("┌──┐│╭╮╰╯", "░▒▓█▁▂", "🚀 done", "“quoted” — … ✓ ✗ ⏺ ⎿"):
        shown = ascii_signs(text)
        assert shown.isascii()
        assert cell_len(shown) == cell_len(text)


# ---------------------------------------------------------------- colour vision

EYES = {
    "all cones": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "no red cones": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "no green cones": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "no blue cones": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}
"""What an eye sees of linear red, green and blue (Machado, Oliveira, Fernandes 2009, severity 1)."""
XYZ = ((0.4339, 0.3763, 0.1899), (0.2126, 0.7152, 0.0722), (0.0177, 0.1095, 0.8729))
"""CIE XYZ of linear red, green and blue, as shares of white (D65)."""


def product(matrix, vector):
    return [sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix]


def seen(colour, eye):
    """Return L, a, b of CIELAB of a colour as an eye sees it."""
    parts = (part / 255 for part in colour.rgb)
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    shares = product(XYZ, [min(1, max(0, part)) for part in product(eye, linear)])
    x, y, z = (share ** (1 / 3) if share > 0.008856 else 7.787 * share + 16 / 116 for share in shares)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


@pytest.mark.parametrize("eye", EYES.values(), ids=EYES)
async def test_colour_blind_theme_tells_its_tones_apart_for_all_eyes(eye):
    app = AgentDash(sample_fleet.StaticFeed(), sample_fleet.frozen(), options=Options(theme="colour-blind"))
    async with app.run_test():
        colours = app.theme_variables
    tones = ("text-warning", "text-error", "text-success", "text-accent", "foreground")
    found = {tone: seen(Color.parse(colours[tone]), eye) for tone in tones}
    for one, other in combinations(tones, 2):
        assert dist(found[one], found[other]) > 17, (one, other)


@pytest.mark.parametrize(
    "term", ["linux", "screen", "xterm-16color", "xterm-256color", "xterm-kitty", "dumb"]
)
@pytest.mark.parametrize("colorterm", ["", "truecolor", "24bit"])
def test_colours_are_those_that_rich_uses(term, colorterm):
    environment = {"TERM": term, "COLORTERM": colorterm}
    console = Console(_environ=environment, force_terminal=True)
    names = {None: NONE, "standard": SIXTEEN, "256": MANY, "truecolor": TRUE_COLOUR}
    assert terminal_colours(environment) == names[console.color_system]
