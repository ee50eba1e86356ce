"""The shell parser on hostile scripts and in threads: a crash in its C code would end the whole process."""

from __future__ import annotations

import random
import sys
import threading

import pytest

from agentdash.sandbox.shell import commands, parse

pytestmark = pytest.mark.slow  # large scripts

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
    "defaults": "${a:-" * 150 + "x" + "}" * 150,
    "backticks": "`" * _LENGTH,
    "dollars": "$" * _LENGTH,
    "quotes": '"' * _LENGTH,
    "quoted words": '"$x"' * (_LENGTH // 2),
    "lists": "a && " * 12_000 + "a",
    "negations": "! " * _LENGTH + "a",
    "negated tests": "[[ " + "! " * 20_000 + "a ]]",
    "signs": "$((" + "-" * _LENGTH + "1))",
    "sums": "$((1" + "+1" * 20_000 + "))",
    "branches": "if a; then " * 4_000 + "b" + "; fi" * 4_000,
    "alternatives": "if a; then b; " + "elif c; then d; " * 3_500 + "fi",
    "long delimiter": "cat <<" + "E" * 5_000 + "\nx\n" + "E" * 5_000 + "\n",
    "many here-documents": "cat " + " ".join(f"<<E{n}" for n in range(400)) + "\nx\n",
    "redirections": ">a " * 10_000,
    "line continuations": "\\\n" * _LENGTH + "a",
    "control characters": "".join(map(chr, range(1, 32))) * 500,
}


@pytest.mark.parametrize("subject", HOSTILE)
def test_a_hostile_script_is_parsed_or_refused(subject: str) -> None:
    script = HOSTILE[subject]
    assert parse.__wrapped__(script) == parse.__wrapped__(script)


@pytest.mark.parametrize("subject", ["NUL", "1 MB", "brackets", "subshells", "negated tests"])
def test_scripts_beyond_the_bounds_are_refused(subject: str) -> None:
    assert parse(HOSTILE[subject]) is None


def test_threads_parse_at_the_same_time() -> None:
    """A tree-sitter parser shared by threads ended the process with a segmentation fault."""
    names = ("NUL", "lone surrogates", "groups", "substitutions", "long delimiter")
    quick = [HOSTILE[name] for name in names]
    scripts = [*quick, *(_loop(number) for number in range(8)), *map(_noise, range(20))]
    expected = {script: parse.__wrapped__(script) for script in scripts}
    assert sum(tree is not None for tree in expected.values()) > 8
    wrong: list[str] = []
    parsed: list[str] = []

    def work(seed: int) -> None:
        rng = random.Random(seed)
        for script in rng.choices(scripts, k=150):
            if parse.__wrapped__(script) != expected[script]:
                wrong.append(script)
            parsed.append(script)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # seconds: threads change within a parse
    try:
        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert wrong == []
    assert len(parsed) == 6 * 150


def _loop(number: int) -> str:
    return f'for x in a b; do echo "$x {number}" | grep {number} && cat <<EOF\n$x ${{y:-{number}}}\nEOF\ndone'


def _noise(seed: int) -> str:
    rng = random.Random(seed)
    return "".join(rng.choices("a $(){}[]<>|&;'\"`\\\n=!#*?~é\udcff", k=rng.randrange(200)))


def test_characters_beyond_ascii_do_not_end_the_process() -> None:
    """Random texts; with the characters themselves given to the grammar, one of a few runs was killed."""
    chance = random.Random(20261122)
    for _ in range(3_000):
        characters = (
            chance.choice((chance.randint(1, 127), chance.randint(128, 0x10FFFF))) for _ in range(80)
        )
        parse("".join(map(chr, characters)).encode(errors="replace").decode())


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("echo é中 > datei-ü; id", [["echo", "é中"], ["id"]]),
        ("printf '%s→%s\\n' \"$A\" 'ß'", [["printf", "%s→%s\\n", "$A", "ß"]]),
        ("é=1 env", [["é=1", "env"]]),
        ("cat <<ENDÉ\nüber\nENDÉ\nid", [["cat"], ["id"]]),
    ],
)
def test_words_keep_characters_beyond_ascii(script: str, expected: list[list[str]]) -> None:
    found = commands(script)
    assert found is not None
    assert [[word.text for word in command.argv] for command in found] == expected
