"""Widths are cells, and nothing ever gets longer than its room."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from rich.cells import cell_len

from agentdash.model.sanitize import clean_line
from agentdash.tui import format as f
from agentdash.tui.primitives.spans import Span, difference, fit, justify, mark, paragraph, plain, width

from .fleet import NOW

texts = st.text(st.sampled_from("ab /-_.⋯…é移行データ한글👍"), max_size=60)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, ""), (-5, "0s"), (0, "0s"), (2.9, "2s"), (59.9, "59s"), (60, "1m"), (3_599, "59m"), (3_600, "1h"),
        (86_399, "23h"), (86_400, "1d"), (364 * 86_400, "364d"), (800 * 86_400, "2y"),
    ],
)  # fmt: skip
def test_age(seconds, text):
    assert f.age(seconds) == text


@pytest.mark.parametrize(("seconds", "text"), [(0.04, "0.0s"), (9.96, "10.0s"), (14, "14s"), (130, "2m")])
def test_duration(seconds, text):
    assert f.duration(seconds) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (None, ""), (0, "0"), (980, "980"), (999, "999"), (1_000, "1.0k"), (12_400, "12.4k"), (99_960, "100k"),
        (272_000, "272k"), (999_600, "1.0M"), (1_200_000, "1.2M"), (5_000_000_000, "5.0G"), (3_000_000_000_000, "3000G"),
    ],
)  # fmt: skip
def test_count(number, text):
    assert f.count(number) == text


def test_stamp_is_eight_cells_and_says_the_day_where_that_matters():
    stamps = [f.stamp(at, NOW) for at in (NOW, NOW - 86_400, NOW - 400 * 86_400)]
    assert stamps == ["20:14:07", "10 Mar  ", "Feb 2025"]


@given(texts, st.integers(0, 40), st.sampled_from(["⋯", "..", ""]))
def test_cut_texts_fit(text, cells, dots):
    assert cell_len(f.elide(text, cells, dots)) <= cells
    assert cell_len(f.elide_middle(text, cells, dots)) <= cells
    assert cell_len(f.pad(text, cells, dots)) == cells
    assert cell_len(f.pad(text, cells, dots, right=True)) == cells


@given(texts, st.integers(2, 40))
def test_wrapping_loses_nothing_but_spaces(text, cells):
    text = clean_line(text)
    lines = f.wrap(text, cells)
    assert all(cell_len(line) <= cells for line in lines)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")


def test_both_ends_of_a_path_are_kept():
    assert (
        f.elide_middle("/home/dev/projects/shop/src/checkout/total.py", 24, "⋯") == "/home/d⋯heckout/total.py"
    )


def test_a_wide_character_is_not_cut_in_half():
    assert f.elide("データベース", 6, "⋯") == "デー⋯"
    assert f.pad("データベース", 6, "⋯") == "デー⋯ "


lines = st.lists(st.builds(Span, texts, st.sampled_from(["", "ask", "muted"])), max_size=6).map(tuple)


@given(lines, st.integers(0, 60))
def test_lines_are_fitted(line, cells):
    fitted = fit(line, cells, "⋯")
    assert width(fitted) <= cells
    assert fitted == line or plain(fitted).endswith("⋯") or not cells


@given(lines, lines, st.integers(1, 80))
def test_two_halves_fill_the_line_exactly(left, right, cells):
    assume(width(right) < cells)
    assert width(justify(left, right, cells, "⋯")) == cells


@given(lines, lines)
def test_what_lies_outside_of_the_difference_is_the_same(old, new):
    def cells(line):
        return [(char, span.tone) for span in line for char in span.text for _ in range(cell_len(char))]

    start, end = difference(old, new)
    assert cells(old)[:start] == cells(new)[:start]
    if end is not None:
        assert cells(old)[end:] == cells(new)[end:]


@given(lines, st.integers(0, 30), st.integers(-1, 60))
def test_marking_keeps_the_text(line, start, end):
    marked = mark(line, start, end)
    assert plain(marked) == plain(line)
    assert (
        "".join(s.text for s in marked if s.tone == "marked")
        == plain(line)[start : None if end < 0 else max(start, end)]
    )


def test_a_paragraph_hangs_under_its_head_and_says_that_it_was_cut():
    shown = paragraph("one two three four five six", 17, head=(Span("got  "),), cap=2)
    assert [plain(line) for line in shown] == ["got  one two", "     three fo ..."]
