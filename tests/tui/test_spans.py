"""Toned text: widths, cutting, comparing."""

from hypothesis import assume, given
from hypothesis import strategies as st

from agentdash.tui.primitives.spans import Span, fit, justify, mark, paragraph, plain, width

texts = st.text(st.sampled_from("ab /-_.⋯…é移行データ한글👍"), max_size=60)
lines = st.lists(st.builds(Span, texts, st.sampled_from(["", "ask", "muted"])), max_size=6).map(tuple)


@given(lines, st.integers(0, 60))
def test_fit_keeps_lines_within_their_width(line, cells):
    fitted = fit(line, cells, "⋯")
    assert width(fitted) <= cells
    assert fitted == line or plain(fitted).endswith("⋯") or not cells


@given(lines, lines, st.integers(1, 80))
def test_justify_fills_the_line(left, right, cells):
    assume(width(right) < cells)
    assert width(justify(left, right, cells, "⋯")) == cells


@given(lines, st.integers(0, 30), st.integers(-1, 60))
def test_mark_keeps_the_text(line, start, end):
    marked = mark(line, start, end)
    assert plain(marked) == plain(line)
    assert (
        "".join(s.text for s in marked if s.tone == "marked")
        == plain(line)[start : None if end < 0 else max(start, end)]
    )


def test_paragraph_is_indented_below_its_head_and_marked_where_cut():
    shown = paragraph("one two three four five six", 17, head=(Span("got  "),), cap=2)
    assert [plain(line) for line in shown] == ["got  one two", "     three fo ..."]
