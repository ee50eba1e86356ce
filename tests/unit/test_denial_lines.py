"""The search for lines that may report a denial: the same lines with the library and without it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentdash.model.sanitize import clean_block
from agentdash.sandbox.denials import lines
from agentdash.sandbox.denials.lines import may_have_suspects, suspects

DATA = Path(__file__).parents[1] / "data"
PIECES = st.sampled_from(
    (
        *lines._FRAGMENTS,
        *lines._WORDS,
        *("permission denied", "Permission Denied", "PERMISSION", "not permitted", "Connection refused"),
        *("could not resolve", "terminal ", "é", "ſ", "\n", "\n\n", "\r", "\t", " ", "x" * 70, "\x1b[31m"),
    )
)


def plain_suspects(output: str) -> set[int]:
    """Return the suspicious lines by the patterns alone: each fragment, looked for in each line."""
    found = set()
    for number, line in enumerate(output.split("\n")):
        hits = [word for word in lines._WORDS if word in line]
        for fragment, confirmed in lines._FRAGMENTS.items():
            starts = [match.start() for match in re.finditer(re.escape(fragment), line)]
            windows = [(max(0, at - lines._BEFORE), at + lines._BEHIND) for at in starts]
            hits += [fragment for begin, end in windows if confirmed.search(line, begin, end)]
        if hits:
            found.add(number)
    return found


def texts() -> list[str]:
    files = ("denials.jsonl", "denials_0_169.jsonl", "denials_texts.jsonl", "denials_unseen.jsonl")
    cases = [json.loads(line) for name in files for line in (DATA / name).read_text().splitlines()]
    return [text for case in cases for text in case.values() if isinstance(text, str)]


def test_recorded_texts_are_searched_alike_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [suspects(text)[1] for text in texts()]
    assert sum(map(bool, found)) > 100
    monkeypatch.setattr(lines, "_search", lambda: None)
    monkeypatch.setattr(lines, "_ascii_search", lambda: None)
    lines._newest.clear()
    assert [suspects(text)[1] for text in texts()] == found


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.lists(PIECES, max_size=lines._TRIES_PER_LINE - 1).map("".join), max_size=12))
def test_lines_are_those_that_the_patterns_find(printed: list[str]) -> None:
    output = "\n".join(printed)
    cleaned = lines.Lines(output)
    _, numbers = suspects(output)
    assert {cleaned[number] for number in numbers} == {cleaned[number] for number in plain_suspects(output)}


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.one_of(PIECES, st.sampled_from(("bwrap:", "ermission", "hostname", "\x07", "\x7f")))))
def test_a_text_is_searched_before_it_is_cleaned(pieces: list[str]) -> None:
    printed = "".join(pieces)
    assert may_have_suspects(printed) == bool(suspects(clean_block(printed))[1])
