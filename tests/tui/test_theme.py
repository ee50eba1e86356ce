"""Glyphs, states and colours."""

import re
from importlib.resources import files
from typing import get_args

import pytest
from rich.cells import cell_len
from textual.color import Color

from agentdash.tui.primitives.spans import Tone
from agentdash.tui.theme import TERMINAL_THEME, THEMES, ascii_signs

from . import sample_fleet


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


def luminance(colour):
    linear = [
        part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in colour.normalized
    ]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one, other):
    """Return the contrast ratio of WCAG 2."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", [theme.name for theme in THEMES if theme.name != TERMINAL_THEME])
async def test_every_tone_can_be_read_also_on_the_cursor(theme):
    app = sample_fleet.dashboard(theme=theme)
    async with app.run_test(size=(120, 36)) as pilot:
        await pilot.pause()
        variables = app.theme_variables
        ground, cursor = (Color.parse(variables[name]) for name in ("background", "block-cursor-background"))
        for tone in get_args(Tone):
            style = app.root.fleet.tone_style(tone, 10_000)
            if tone not in ("rule", "marked") and style.color is not None:
                colour = Color.from_rich_color(style.color)
                assert contrast(colour, ground) >= 4.5, tone
                assert contrast(colour, cursor) >= 3, tone


async def test_tones_of_the_terminal_theme_are_of_these_pairs_and_differ():
    app = sample_fleet.dashboard(theme="terminal")
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
        ("xterm", "", "terminal"),
        ("xterm-256color", "", "dark"),
        ("", "", "dark"),
        ("linux", "truecolor", "dark"),
    ],
)
def test_16_colours_have_the_terminal_theme(monkeypatch, term, colorterm, theme):
    monkeypatch.setenv("TERM", term)
    if colorterm:
        monkeypatch.setenv("COLORTERM", colorterm)
    assert sample_fleet.dashboard().theme == theme
    assert sample_fleet.dashboard(theme="light").theme == "light"


def test_signs_of_quoted_screens_are_ascii_letters_stay():
    assert (
        ascii_signs("┃ △ Permission required ▣ ⬝⬝■ naïve 日本 →")
        == "| ^ Permission required # ..# naïve 日本 >"
    )
    for text in ("┌──┐│╭╮╰╯", "░▒▓█▁▂", "🚀 done", "“quoted” — … ✓ ✗ ⏺ ⎿"):
        shown = ascii_signs(text)
        assert shown.isascii()
        assert cell_len(shown) == cell_len(text)
