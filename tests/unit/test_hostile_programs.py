"""Programs that would run for ever, or fill the memory, are left at a bound: they are not read."""

from __future__ import annotations

import tracemalloc

import pytest

from agentdash.engine.detect.env_output import read_flags
from agentdash.engine.detect.env_output.regexes import compiled, is_quick

_MAX_BYTES = 40_000_000
"""Above what a program of a few lines needs (6 MB), below what one text that grew too far takes."""
_COMMANDS = {
    "awk": "awk '%s'",
    "jq": "jq -n '%s'",
    "lua": "lua - <<'EOF'\n%s\nEOF",
    "node": "node - <<'EOF'\n%s\nEOF",
    "perl": "perl - <<'EOF'\n%s\nEOF",
    "php": "php <<'EOF'\n<?php %s\nEOF",
    "python": "python3 - <<'EOF'\n%s\nEOF",
    "ruby": "ruby - <<'EOF'\n%s\nEOF",
}
_LONG = "a" * 60 + "b"
_ENDLESS = {
    "awk": (
        'BEGIN { for (i = 0; i < 1000000000; i++) x++; print ENVIRON["CODEX_SANDBOX"] }',
        "BEGIN { do { x++ } while (1) }",
        "function f(n) { return f(n + 1) } BEGIN { f(0) }",
        'function f(n) { return n ? f(n - 1) f(n - 1) : "a" } BEGIN { print f(40) }',
    ),
    "jq": (
        "[range(1000000000)] | length",
        "[recurse(. + 1)]",
        "1 | until(false; . + 1)",
        "def f: f; f",
        'def f($n): if $n == 0 then "a" else f($n - 1) + f($n - 1) end; f(40)',
    ),
    "lua": (
        'local x = 0 for i = 1, 1000000000 do x = x + 1 end print(os.getenv("CODEX_SANDBOX"))',
        "while true do end",
        "local function f(n) return f(n + 1) end f(0)",
        "function f(n) if n > 0 then return f(n - 1) .. f(n - 1) end return 'a' end print(f(40))",
        "local t = {} t.x = 1 setmetatable(t, {__index = t}) print(t.y)",
    ),
    "node": (
        "let x = 0; for (let i = 0; i < 1e9; i++) x++; console.log(process.env.CODEX_SANDBOX)",
        "while (true) {}",
        "function f(n) { return f(n + 1) } f(0)",
        "function f(n) { return n ? f(n - 1) + f(n - 1) : 'a' } console.log(f(40))",
        "let l = []; l.push(l); console.log(l)",
    ),
    "perl": (
        "my $x = 0; for (my $i = 0; $i < 1000000000; $i++) { $x++ } print $ENV{CODEX_SANDBOX}",
        "for my $i (1..1000000000) { } print 1",
        "sub f { return f(1) } f(1)",
        "sub f { my $n = shift; return $n ? f($n - 1) . f($n - 1) : 'a' } print f(40)",
    ),
    "php": (
        "$x = 0; for ($i = 0; $i < 1000000000; $i++) { $x++; } echo getenv('CODEX_SANDBOX');",
        "while (true) { }",
        "function f($n) { return f($n + 1); } f(0);",
        "function f($n) { return $n ? f($n - 1) . f($n - 1) : 'a'; } echo f(40);",
    ),
    "python": (
        "import os\nx = 0\nfor i in range(10**9): x += 1\nprint(os.environ.get('CODEX_SANDBOX'))",
        "import os\nwhile True: pass\nprint(os.environ.get('CODEX_SANDBOX'))",
        "def f(n): return f(n + 1)\nprint(f(0))",
        "def f(n): return f(n - 1) + f(n - 1) if n else 'a'\nprint(f(40))",
        "print([0 for a in range(50) for b in range(50) for c in range(50) for d in range(50)])",
        "import os\n" + "\n".join("print(1 if os.access('/x', 1) else 2)" for _ in range(60)),
        "l = []\nl.append(l)\nprint(l)",
    ),
    "ruby": (
        "x = 0; 1000000000.times { x += 1 }; puts ENV['CODEX_SANDBOX']",
        "while true; end",
        "def f(n); f(n + 1); end; f(0)",
        "def f(n); n > 0 ? f(n - 1) + f(n - 1) : 'a'; end; puts f(40)",
    ),
}
"""Loops, calls and conditions without end, or with one that is too far away."""
_GROWING = {
    "awk": (
        'BEGIN { s = "ab"; for (i = 0; i < 60; i++) s = s s; print length(s) }',
        'BEGIN { s = "aa"; for (i = 0; i < 60; i++) gsub(/a/, "aa", s); print s }',
        'BEGIN { printf "%999999999s", 1 }',
    ),
    "jq": ('reduce range(60) as $i ("ab"; . + .)', '"ab" * 1000000000'),
    "lua": (
        "local s = 'ab' for i = 1, 60 do s = s .. s end print(#s)",
        "print(string.rep('ab', 1000000000))",
        "local s = 'ab' while true do s = s:rep(100) end",
    ),
    "node": (
        "let s = 'ab'; for (let i = 0; i < 60; i++) s = s + s; console.log(s.length)",
        "let s = 'ab'; while (true) s = s.repeat(100)",
        "let l = [1]; for (let i = 0; i < 50; i++) l = [...l, ...l]; console.log(l.length)",
        "console.log('a'.padStart(9999999999))",
    ),
    "perl": (
        "my $s = 'ab'; for (my $i = 0; $i < 60; $i++) { $s = \"$s$s\" } print length $s",
        "my $s = 'ab'; while (1) { $s = $s x 100 }",
        "my @l = (1); for (my $i = 0; $i < 50; $i++) { @l = (@l, @l) } print scalar @l",
    ),
    "php": (
        "$s = 'ab'; for ($i = 0; $i < 60; $i++) { $s = $s . $s; } echo strlen($s);",
        "$s = 'ab'; while (true) { $s = str_repeat($s, 100); }",
        "printf('%999999999s', 1);",
    ),
    "python": (
        "s = 'ab'\nfor i in range(60): s = s + s\nprint(len(s))",
        "s = 'ab'\nwhile True: s = s * 1000",
        "l = [1]\nfor i in range(50): l = l + l\nprint(len(l))",
        "print(f'{1:>9999999999}')",
        "x = 9\nfor i in range(50): x = x * x\nprint(x)",
    ),
    "ruby": (
        "s = 'ab'; i = 0; while i < 60; s = s + s; i += 1; end; puts s.length",
        "s = 'ab'; while true; s = s * 100; end",
        "puts 'a'.ljust(9999999999)",
        "puts 9**9**9",
    ),
}
"""Values that double in each round, or are as wide as a number says."""
_MATCHING = {
    "awk": f'BEGIN {{ if ("{_LONG}" ~ /((a+))+$/) print 1 }}',
    "jq": f'"{_LONG}" | test("((a+))+$")',
    "node": f"console.log(/((a+))+$/.test('{_LONG}'))",
    "perl": f"print 'x' if '{_LONG}' =~ /((a+))+$/",
    "php": f"echo preg_match('/((a+))+$/', '{_LONG}');",
    "python": f"import re\nprint(re.search('((a+))+$', '{_LONG}'))",
    "ruby": f"puts 'x' if '{_LONG}' =~ /((a+))+$/",
}
"""Regular expressions that match in more ways than can be tried."""
_NESTED = {
    "awk": ("BEGIN { print ", "(", ")", " }"),
    "jq": ("", "[", "]", ""),
    "lua": ("x = ", "{", "}", ""),
    "node": ("x = ", "[", "]", ""),
    "perl": ("print ", "(", ")", ";"),
    "php": ("$x = ", "[", "]", ";"),
    "python": ("x = ", "[", "]", ""),
    "ruby": ("x = ", "[", "]", ""),
}
"""What stands before, around and behind a value in thousands of brackets."""


def _left(language: str, program: str) -> None:
    """Read a program, of which only the printed value can be told, and bound what that takes."""
    tracemalloc.start()
    try:
        flags = read_flags(_COMMANDS[language] % program, "seatbelt\n", exit_code=0)
        assert tracemalloc.get_traced_memory()[1] < _MAX_BYTES
    finally:
        tracemalloc.stop()
    assert flags.network is None
    assert flags.sandbox in (None, "seatbelt")


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("language", _COMMANDS)
def test_endless_programs_are_left(language: str) -> None:
    for program in _ENDLESS[language]:
        _left(language, program)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("language", _COMMANDS)
def test_values_do_not_grow_without_bound(language: str) -> None:
    for program in _GROWING[language]:
        _left(language, program)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("language", _MATCHING)
def test_regular_expressions_that_take_for_ever_are_left(language: str) -> None:
    _left(language, _MATCHING[language])


@pytest.mark.timeout(300)
@pytest.mark.parametrize("language", _COMMANDS)
@pytest.mark.parametrize("depth", [100, 1_000, 5_000])
def test_brackets_can_be_as_deep_as_they_like(language: str, depth: int) -> None:
    before, opened, closed, behind = _NESTED[language]
    _left(language, before + opened * depth + "1" + closed * depth + behind)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [("a*a*a*b", "a" * 4_000), ("a*a*a*a*a*b", "a" * 200), (".*a.*b.*c", "a" * 2_000)],
)
def test_a_search_with_many_repetitions_is_for_short_texts(pattern: str, text: str) -> None:
    found = compiled(pattern, "perl")
    assert found is not None
    assert not is_quick(found, text)
    assert is_quick(found, text[:20])


@pytest.mark.parametrize(
    "pattern",
    ["(a+)+$", "((a+))+", "(a|a)*$", "(a?){60}", "(a{1,10}){10}", "(?:x*)*", "([a-z]+_?)*", "(a*)*?b"],
)
def test_a_group_that_matches_in_several_ways_is_not_repeated(pattern: str) -> None:
    assert compiled(pattern, "perl") is None


@pytest.mark.parametrize(
    "pattern",
    [
        "^CODEX_SANDBOX(_NETWORK_DISABLED)?=",
        r"\d{1,3}(\.\d{1,3}){3}",
        "^(CODEX|SANDBOX)",
        r"^CODEX(?:_\w+)?=(?P<value>.*)$",
        r"^\s*(\w+)\s*=\s*(.*)$",
        "(foo)+[+*]+",
    ],
)
def test_other_groups_are(pattern: str) -> None:
    found = compiled(pattern, "perl")
    assert found is not None
    assert is_quick(found, "CODEX_SANDBOX_NETWORK_DISABLED=1")
