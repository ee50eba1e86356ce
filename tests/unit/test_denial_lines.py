"""The search for lines that may report a denial: the same lines with the library and without it."""

import json
from pathlib import Path

import pytest

from agentdash.sandbox.denials import lines
from agentdash.sandbox.denials.lines import suspects

DATA = Path(__file__).parents[1] / "data"


def texts() -> list[str]:
    files = ("denials_0_169.jsonl", "denials_texts.jsonl", "denials_unseen.jsonl")
    cases = [json.loads(line) for name in files for line in (DATA / name).read_text().splitlines()]
    return [text for case in cases for text in case.values() if isinstance(text, str)]


def test_recorded_texts_are_searched_alike_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [suspects(text)[1] for text in texts()]
    assert sum(map(bool, found)) > 100
    monkeypatch.setattr(lines, "_search", lambda: None)
    suspects.cache_clear()
    assert [suspects(text)[1] for text in texts()] == found


@pytest.mark.parametrize(
    ("output", "numbers"),
    [
        ("", ()),
        ("a\nb: Permission denied\nc", (1,)),
        ("PERMISSION DENIED\nx\nfatal: unable to access: Could not resolve host: a.b", (0, 2)),
        ("é İ\nEROFS\n中: not permitted", (1, 2)),
        ("a: Permission denied\n" * 3, (0,)),
        ("x:\n   Read-only file system\ny:\n   Read-only file system", (1, 3)),
        ("x" * 5_000 + "\n" + "y" * 5_000 + " Permission denied" + "z" * 5_000, (1,)),
        ("\x1b[31mtouch: Permission denied\x1b[0m\r", (0,)),
    ],
)
def test_suspicious_lines(output: str, numbers: tuple[int, ...]) -> None:
    found, suspicious = suspects(output)
    assert suspicious == numbers
    assert all(len(found[number]) <= 1_000 for number in suspicious)
    assert all("\x1b" not in found[number] for number in suspicious)


def test_the_lines_of_an_output_that_are_read_are_bounded() -> None:
    assert len(suspects("\n".join(f"{n}: Permission denied" for n in range(5_000)))[1]) == 200
