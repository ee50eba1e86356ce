"""The shell parser on hostile scripts: it ends soon, and never raises."""

from __future__ import annotations

import pytest

from agentdash.sandbox.shell import commands, parse

_LENGTH = 30_000
"""Repetitions that make a script of about the greatest length that is parsed."""
HOSTILE = {
    "NUL": "env\0grep",
    "lone surrogates": 'echo \udcff \ud800 "$X"',
    "1 MB": "echo " + "a" * 1_000_000,
    "unclosed braces": "{ " * _LENGTH,
    "brackets": "[" * _LENGTH + "]" * _LENGTH,
    "subshells": "(" * _LENGTH + ")" * _LENGTH,
    "groups": "{ " * 199 + "a" + "; }" * 199,
    "substitutions": "$(" * 190 + "env" + ")" * 190,
    "arithmetic": "$((a) " * 10_000,
    "defaults": "${a:-" * 150 + "x" + "}" * 150,
    "backticks": "`" * _LENGTH,
    "backticks within": "`a " * 20_000,
    "dollars": "$" * _LENGTH,
    "quotes": '"' * _LENGTH,
    "quoted words": '"$x"' * (_LENGTH // 2),
    "lists": "a && " * 12_000 + "a",
    "negations": "! " * _LENGTH + "a",
    "negated tests": "[[ " + "! " * 20_000 + "a ]]",
    "signs": "$((" + "-" * _LENGTH + "1))",
    "branches": "if a; then " * 4_000 + "b" + "; fi" * 4_000,
    "alternatives": "if a; then b; " + "elif c; then d; " * 3_500 + "fi",
    "many here-documents": "cat " + " ".join(f"<<E{n}" for n in range(400)) + "\nx\n",
    "redirections": ">a " * 10_000,
    "line continuations": "\\\n" * _LENGTH + "a",
    "control characters": "".join(map(chr, range(1, 32))) * 500,
}


@pytest.mark.parametrize("subject", HOSTILE)
def test_a_hostile_script_is_parsed_or_refused(subject: str) -> None:
    script = HOSTILE[subject]
    assert (parse(script) is None) == (commands(script) is None)


def test_scripts_beyond_the_bounds_are_refused() -> None:
    assert [parse(HOSTILE[name]) for name in ("NUL", "1 MB", "subshells", "lists", "branches")] == [None] * 5


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("echo é中 > datei-ü; id", [["echo", "é中"], ["id"]]),
        ("é=1 env", [["é=1", "env"]]),
        ("cat <<ENDÉ\nüber\nENDÉ\nid", [["cat"], ["id"]]),
        ("echo a\u00a0b\rc", [["echo", "a\u00a0b\rc"]]),
    ],
)
def test_words_keep_other_characters(script: str, expected: list[list[str]]) -> None:
    found = commands(script)
    assert found is not None
    assert [[word.text for word in command.argv] for command in found] == expected
