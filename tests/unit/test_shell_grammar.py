"""Shell scripts are parsed as shells read them; others are refused, and hostile ones soon."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentdash.sandbox.shell import MAX_SCRIPT_CHARACTERS, Context, commands, parse
from agentdash.sandbox.shell.syntax import Parameter, Substitution, Text

Argv = list[list[str]]


def argv(script: str) -> Argv | None:
    found = commands(script)
    return None if found is None else [[word.text for word in command.argv] for command in found]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (
            "set -euo pipefail\n# a comment\nenv\n\nid # another",
            [["set", "-euo", "pipefail"], ["env"], ["id"]],
        ),
        ("a 'b c' \"d $e\" f\\ g", [["a", "b c", "d $e", "f g"]]),
        ('echo "x\\"y\\$z" \'q\\n\'', [["echo", 'x"y$z', "q\\n"]]),
        ("if a; then b; elif c; then d; else e; fi", [["a"], ["b"], ["c"], ["d"], ["e"]]),
        ("for x in 1 2\ndo\n  echo $x\ndone", [["echo", "$x"]]),
        ("while read -r l; do a; done < f; until b; do c; done", [["read", "-r", "l"], ["a"], ["b"], ["c"]]),
        ("case $x in a|b) one;; *) two;; esac", [["one"], ["two"]]),
        ("f() { a; }; function g { b; }; f", [["a"], ["b"], ["f"]]),
        ("{ a; } 2>&1 | (b; c)", [["a"], ["b"], ["c"]]),
        ('echo "a: $(b | c) `d`"', [["b"], ["c"], ["d"], ["echo", "a: $(b | c) `d`"]]),
        ("bash -lc 'a; b' && sh -c \"c\"", [["a"], ["b"], ["c"]]),
        ("timeout 5 env A=1 nice -n 3 bash -c 'x | y'", [["x"], ["y"]]),
        (
            "env -u A -i B=2 printenv X; command -v git; time ls",
            [["printenv", "X"], ["command", "-v", "git"], ["ls"]],
        ),
        ('bash -c "echo $X"', [["bash", "-c", "echo $X"]]),
        ("python3 - <<'PY'\nprint(1)\nPY\nid", [["python3", "-"], ["id"]]),
        ('[ -z "$X" ] && [[ $Y == 1* ]]', [["[", "-z", "$X", "]"], ["[[", "$Y", "==", "1*", "]]"]]),
        ("time ( a ); time -p { b; }", [["a"], ["b"]]),
        ("cat <<-'E F' | sort &&\n\tx\n\tE F\n id", [["cat"], ["sort"], ["id"]]),
        ("cat <<A; cat <<\\B\n$(a)\nA\n$(b)\nB", [["a"], ["cat"], ["cat"]]),
        (
            "[[ $a =~ ^(x|y)$ && ! -e b ]] || c",
            [["[[", "$a", "=~", "^(x|y)$", "&&", "!", "-e", "b", "]]"], ["c"]],
        ),
        ("for ((i = 0; i < 3; i++)); do a; done; ((i++)); ((b); c)", [["a"], ["b"], ["c"]]),
        ("case x in (a) b ;& c|'d e') f;; esac; e", [["b"], ["f"], ["e"]]),
        (
            "a 3<>f $((1 + (2 * 3))) $'\\'' ${x:-${y#\"}\"}}",
            [["a", "$((1 + (2 * 3)))", "$'\\''", '${x:-${y#"}"}}']],
        ),
        ('x=(1 "$(a)"\n 2); echo ${x[@]}', [["a"], [], ["echo", "${x[@]}"]]),
        ("diff <(a) <(b)", [["a"], ["b"], ["diff", "<(a)", "<(b)"]]),
        ("", []),
        ("é=1 env", [["é=1", "env"]]),
        ("cat <<ENDÉ\nüber\nENDÉ\nid", [["cat"], ["id"]]),
        ("echo a\u00a0b\rc", [["echo", "a\u00a0b\rc"]]),
    ],
)
def test_commands_in_order(script: str, expected: Argv) -> None:
    assert argv(script) == expected


@pytest.mark.parametrize(
    "script",
    [
        "echo 'open",
        "if a; then b",
        "a | | b",
        "$(",
        "echo )",
        "a \0 b",
        "x" * (MAX_SCRIPT_CHARACTERS + 1),
        "{name}>f",
        "cat <<EOF\nx",
        'echo $"x"',
        "{(" * 500,
    ],
)
def test_what_cannot_be_parsed_is_nothing(script: str) -> None:
    assert parse(script) is None
    assert commands(script) is None


def test_place_of_a_command() -> None:
    script = "! a | b; if c; then d && e; fi; for x in 1; do (f) & done; g() { h || i; }; j=$(k); bash -c l"
    found = {command.name: command for command in commands(script) or ()}
    assert (found["a"].position, found["a"].length) == (0, 2)
    assert (found["b"].position, found["b"].pipeline) == (1, found["a"].pipeline)
    assert {name: command.context for name, command in found.items() if name} == {
        **{name: {Context.UNSURE} for name in "abchi"},
        "d": {Context.UNSURE},
        "e": {Context.UNSURE, Context.AND},
        "f": {Context.UNSURE, Context.SUBSHELL},
        "k": {Context.SUBSTITUTION},
        "l": {Context.NESTED},
    }
    assert found["l"].wrappers == ("bash",)


def test_redirections() -> None:
    (first, second, third) = commands("A=1 b >f 2>&1; cat <<-'X' >>g\n\ta $b\n\tX\n{ c; } &> h") or ()
    assert [(a.name, a.value and a.value.text) for a in first.assignments] == [("A", "1")]
    assert [(r.operator, r.fd, r.target and r.target.text) for r in first.redirects] == [
        (">", None, "f"),
        (">&", 2, "1"),
    ]
    assert [(r.operator, r.target and r.target.text, r.expands) for r in second.redirects] == [
        ("<<-", "a $b\n", False),
        (">>", "g", True),
    ]
    assert [(r.operator, r.target and r.target.text) for r in third.redirects] == [("&>", "h")]


def test_words_are_pieces() -> None:
    (command,) = [
        c for c in commands('echo a"b ${X:-d e}"$(id)/$$ <(env) *.py ~ {a,b}') or () if c.name == "echo"
    ]
    mixed, process, *unquoted = command.argv[1:]
    assert [type(piece) for piece in mixed.pieces] == [Text, Text, Parameter, Substitution, Text, Parameter]
    parameter = mixed.pieces[2]
    assert (parameter.name, parameter.operator, parameter.quoted) == ("X", ":-", True)
    assert parameter.argument.text == "d e"
    assert isinstance(process.pieces[0], Substitution)
    assert [word.literal for word in unquoted] == [False, False, False]
    assert command.argv[0].literal


@settings(max_examples=300, derandomize=True)
@given(st.text(alphabet=st.sampled_from("ab$X(){}[]<>|&;'\"`\\ \n\t#=!*-0éx"), max_size=80))
def test_nothing_makes_it_raise(script: str) -> None:
    assert (parse(script) is None) == (commands(script) is None)


_LENGTH = 30_000
"""Repetitions that make a script of about the greatest length that is parsed."""
HOSTILE = {
    "lone surrogates": 'echo \udcff \ud800 "$X"',
    "unclosed braces": "{ " * _LENGTH,
    "brackets": "[" * _LENGTH + "]" * _LENGTH,
    "subshells": "(" * _LENGTH + ")" * _LENGTH,
    "groups": "{ " * 199 + "a" + "; }" * 199,
    "substitutions": "$(" * 190 + "env" + ")" * 190,
    "arithmetic": "$((a) " * 10_000,
    "defaults": "${a:-" * 150 + "x" + "}" * 150,
    "backticks": "`a " * 20_000,
    "dollars": "$" * _LENGTH,
    "quoted words": '"$x"' * (_LENGTH // 2),
    "lists": "a && " * 12_000 + "a",
    "negated tests": "[[ " + "! " * 20_000 + "a ]]",
    "branches": "if a; then " * 4_000 + "b" + "; fi" * 4_000,
    "alternatives": "if a; then b; " + "elif c; then d; " * 3_500 + "fi",
    "many here-documents": "cat " + " ".join(f"<<E{n}" for n in range(400)) + "\nx\n",
    "redirections": ">a " * 10_000,
    "line continuations": "\\\n" * _LENGTH + "a",
    "control characters": "".join(map(chr, range(1, 32))) * 500,
}


@pytest.mark.parametrize("subject", HOSTILE)
def test_a_hostile_script_is_parsed_or_refused(subject: str) -> None:
    is_refused = parse(HOSTILE[subject]) is None
    assert is_refused == (commands(HOSTILE[subject]) is None)
    assert is_refused or subject not in ("subshells", "lists", "branches")
