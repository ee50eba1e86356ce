"""Shell scripts are parsed into statements and simple commands; what cannot be parsed is None."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentdash.engine.detect.shell import (
    MAX_SCRIPT_CHARACTERS,
    AndOr,
    Pipeline,
    Simple,
    Unsupported,
    commands,
    parse,
)

MARKS = "abc $(){}[]<>|&;'\"\\`\n\t#!=*?~0-:"


def names(script: str) -> list[str]:
    """Return the names of the simple commands of a script."""
    found = commands(script)
    assert found is not None, script
    return [command.name for command in found]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("env", ["env"]),
        ("a; b\nc && d || e | f", ["a", "b", "c", "d", "e", "f"]),
        ("bash -lc 'env | grep X'", ["env", "grep"]),
        ("timeout 5 nice env", ["env"]),
        ("if a; then b; else c; fi", ["a", "b", "c"]),
        ("for n in x y; do a $n; done", ["a"]),
        ('echo "$(date)"', ["date", "echo"]),
        ("cat <<EOF\nrm -rf /\nEOF\nls", ["cat", "ls"]),
        ("a && b 2>&1 | c", ["a", "b", "c"]),
        ("a; b || c 2>&1 | d | e && f", ["a", "b", "c", "d", "e", "f"]),
        ("time ( a; b )", ["a", "b"]),
        ("( a && b ) 2>&1 | c", ["a", "b", "c"]),
    ],
)
def test_commands(script: str, expected: list[str]) -> None:
    assert names(script) == expected


@pytest.mark.parametrize("script", ["echo 'unclosed", "if a; then", "a | ", "\0", "((", "$("])
def test_broken_scripts_are_not_parsed(script: str) -> None:
    assert parse(script) is None
    assert commands(script) is None


def test_a_redirection_belongs_to_the_last_command_of_a_list() -> None:
    script = parse("a && b 2>&1 | c")
    assert script is not None
    (item,) = script.items
    assert isinstance(item.node, AndOr)
    left, right = item.node.left, item.node.right
    assert isinstance(left, Simple)
    assert left.redirects == ()
    assert isinstance(right, Pipeline)
    first = right.parts[0]
    assert isinstance(first, Simple)
    assert [r.fd for r in first.redirects] == [2]


def test_a_subshell_behind_time_is_parsed() -> None:
    script = parse("time ( a )")
    assert script is not None
    assert isinstance(script.items[0].node, Unsupported)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.text(max_size=120) | st.text(MARKS, max_size=60))
def test_no_text_raises(script: str) -> None:
    assert (parse(script) is None) == (commands(script) is None)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("mark", ["(", "{", "$(", "`", "<<A\n", "a|", "'", "if a; then ", "${a:-", "! "])
def test_hostile_scripts_end(mark: str) -> None:
    script = mark * (MAX_SCRIPT_CHARACTERS // len(mark))
    assert (parse(script) is None) == (commands(script) is None)


def test_long_scripts_are_not_parsed() -> None:
    assert parse("a" * MAX_SCRIPT_CHARACTERS) is not None
    assert parse("a" * (MAX_SCRIPT_CHARACTERS + 1)) is None
