"""Sanitizing: no text that controls a terminal gets through."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentdash.model.sanitize import (
    MAX_BLOCK_CHARS,
    MAX_LINE_CHARS,
    both_ends,
    clean_block,
    clean_line,
    last_part,
)

CONTROL = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
nasty = st.text(
    st.characters() | st.sampled_from("\x1b[]()0;m\x07\\\x9b\x9d\r\n\t\u202e\u200b\ud800a"), max_size=60
)


@given(nasty)
def test_control_characters_are_removed_once(text: str) -> None:
    for cap in (10, 1000):
        line, block = clean_line(text, cap), clean_block(text, cap)
        assert not CONTROL.search(line + block)
        assert "\n" not in line
    assert (clean_block(block), clean_line(line)) == (block, line)


@given(st.text(max_size=300), st.integers(2, 50))
def test_lengths_are_capped(text: str, cap: int) -> None:
    assert len(clean_line(text.replace("\t", ""), cap)) <= cap
    assert len(clean_block(text.replace("\t", ""), cap)) <= cap + len("\n… 300 characters left out …\n")


@pytest.mark.parametrize(
    ("dirty", "clean"),
    [
        ("plain\nlines\n", "plain\nlines\n"),
        ("a\x1b[31;1mred\x1b[0mb", "aredb"),
        ("\x1b]0;title\x07a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "alink"),
        ("\x1bPq#0;1\x1b\\a\x1b(Bb\x1bMc\x1b", "abc"),
        ("a\r\nb\rc\td", "a\nb\nc    d"),
        ("ü\x1b[31mé\x9b1mñ\u202eabc\u2066", "üéñabc"),
        ("bell\x07 null\x00 del\x7f", "bell null del"),
        ("half\ud800pair", "halfpair"),
        ("日本語 🙂 naïve", "日本語 🙂 naïve"),
    ],
)
def test_escape_sequences_are_removed_whole(dirty: str, clean: str) -> None:
    assert clean_block(dirty) == clean
    assert clean_line(dirty) == " ".join(clean.split("\n")).strip()


def test_both_ends_of_a_long_text_are_kept() -> None:
    text = clean_block("start" + "x" * 2 * MAX_BLOCK_CHARS + "end")
    assert text.startswith("start")
    assert text.endswith("end")
    assert "64008 characters left out" in text
    assert clean_line("y" * 2 * MAX_LINE_CHARS).endswith("y…")


@pytest.mark.parametrize("letter", "\u115f\u1160\u180e\u3164\uffa0\u034f\u17b4\u2062\u00ad\U000e0020")
def test_letters_that_show_nothing_are_removed(letter: str) -> None:
    assert clean_line(letter) == clean_block(letter) == ""
    assert clean_line(f"a{letter}b") == clean_block(f"a{letter}b") == "ab"


def test_no_line_is_cut_in_two_where_a_text_is_shortened() -> None:
    lines = [f"token {number} ghp_S3cretCanary01xYz9876543210AbCdEfGh" for number in range(200)]
    text = both_ends("\n".join(lines), 2_000)
    head, left_out, tail = (part.split("\n") for part in re.split(r"\n… (\d+) characters left out …\n", text))
    assert head == lines[: len(head)]
    assert tail == lines[-len(tail) :]
    assert len("\n".join(lines)) == len("\n".join(head)) + int(left_out[0]) + len("\n".join(tail))
    words = both_ends("word " * 1_000, 100)
    assert set(words.split()) - {"…", "characters", "left", "out"} == {"word", str(5_000 - 44 - 50)}
    assert both_ends("x" * 300, 100) == f"{'x' * 50}\n… 200 characters left out …\n{'x' * 50}"
    assert both_ends("short", 100) == "short"
    assert "\n… more than 149 characters left out …\n" in both_ends(clean_block("x" * 300, 200), 80)
    assert last_part("\n".join(lines), 500).split("\n") == lines[-10:]
    assert last_part("x" * 300, 100) == "x" * 100
    assert last_part("short", 100) == "short"
