"""Short forms of numbers and times, and cutting to a width."""

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from agentdash.model.sanitize import clean_line
from agentdash.tui import format as f

texts = st.text(st.sampled_from("ab /-_.⋯…é移行データ한글👍"), max_size=60)


def test_ages_and_counts():
    ages = {None: "", -5: "0s", 59.9: "59s", 86_399: "23h", 364 * 86_400: "364d", 800 * 86_400: "2y"}
    assert {seconds: f.age(seconds) for seconds in ages} == ages
    counts = {None: "", 0: "0", 999: "999", 1_000: "1.0k", 99_960: "100k", 999_600: "1.0M", 3e12: "3000G"}
    assert {number: f.count(number) for number in counts} == counts


@given(texts, st.integers(0, 40), st.sampled_from(["⋯", "..", ""]))
def test_elide_and_pad_fit(text, cells, dots):
    assert cell_len(f.elide(text, cells, dots)) <= cells
    assert cell_len(f.elide_middle(text, cells, dots)) <= cells
    assert cell_len(f.pad(text, cells, dots)) == cells
    assert cell_len(f.pad(text, cells, dots, right=True)) == cells


@given(texts, st.integers(2, 40))
def test_wrap_loses_only_spaces(text, cells):
    text = clean_line(text)
    lines = f.wrap(text, cells)
    assert all(cell_len(line) <= cells for line in lines)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")


def test_long_paths_are_broken_behind_slashes():
    path = "/home/dev/.local/share/opencode/log/opencode.log"
    assert f.wrap(f"write denied {path}", 41) == [
        "write denied /home/dev/.local/share/",
        "opencode/log/opencode.log",
    ]
    assert f.wrap(f"denied: {path} may not be written", 30) == [
        "denied: /home/dev/.local/",
        "share/opencode/log/",
        "opencode.log may not be",
        "written",
    ]
    assert f.wrap(f"see {path}", 50) == ["see", path]


def test_wrap_keeps_the_indent_of_code():
    assert f.wrap("def f():\n    return one_long_name", 16) == [
        "def f():",
        "    return",
        "    one_long_nam",
        "    e",
    ]
    assert f.wrap("   \n  x", 9) == ["", "  x"]
    assert all(cell_len(line) <= 4 for line in f.wrap(" " * 30 + "データ x", 4))
