"""Loops of Perl, Ruby and Lua over listed names, or over the environment."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from agentdash.engine.detect.env_output.regexes import compiled


class UnknownError(Exception):
    """The program does something that is not modelled."""


class Language(msgspec.Struct, frozen=True):
    """What differs between the languages."""

    name: str
    variable: str
    """A regular expression of a variable of the environment; the group `name` is its name."""
    defaults: tuple[str, ...] = ()
    """Operators that give their right side where the left one is unset or false."""
    joins: tuple[str, ...] = ()
    """Operators that join two texts."""
    interpolation: str = ""
    """A regular expression of an expression in a double-quoted text; its group is the expression."""
    unset: str = ""
    """What is printed of an unset variable."""
    code_options: str = ""


STRING: Final = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`(?:[^`\\]|\\.)*`""", re.DOTALL)


_PERL_KEYS: Final = (
    r"(?:sort\s+)?(?:grep\s*(?:\{\s*(?P<condition>/[^/]*/)\s*\}|(?P<condition2>/[^/]*/)\s*,))?"
    r"\s*(?:sort\s+)?keys\s*\(?%ENV\)?"
)


LOOPS: Final = {
    "perl": (
        re.compile(
            r"(?P<body>(?:print|say)\b.*?)\s+for(?:each)?\s+(?P<words>qw\s*[(/\[{][\w\s]*[)/\]}]|\([^()]*\))",
            re.DOTALL,
        ),
        re.compile(
            r"for(?:each)?\s*(?:my\s+(?P<key>\$\w+)\s*)?\(?(?P<words>qw\s*[(/\[{][\w\s]*[)/\]}]|\(['\"][^()]*\))\)?"
            r"\s*\{(?P<body>[^;]*?);?\s*\}",
            re.DOTALL,
        ),
        re.compile(
            r"while\s*\(\s*my\s*\(\s*(?P<key>\$\w+)\s*,\s*(?P<value>\$\w+)\s*\)\s*=\s*each\s*\(?\s*%ENV\s*\)?\s*\)\s*"
            r"\{\s*(?P<body>(?:print|say)\b[^;]*?)(?:\s+if\s+(?P<condition>(?P=key)\s*=~\s*/[^/]*/i?))?\s*;?\s*\}",
            re.DOTALL,
        ),
        re.compile(rf"(?P<body>(?:print|say)\b.*?)\s+for(?:each)?\s+\(?{_PERL_KEYS}\)?", re.DOTALL),
        re.compile(
            rf"for(?:each)?\s*(?:my\s+(?P<key>\$\w+)\s*)?\(\s*{_PERL_KEYS}\s*\)\s*\{{"
            r"(?:\s*next\s+unless\s+(?:\$\w+\s*=~\s*)?(?P<condition4>/[^/]*/)\s*;)?(?P<body>[^;]*?)"
            r"(?:\s+if\s+(?:\$\w+\s*=~\s*)?(?P<condition3>/[^/]*/))?\s*;?\s*\}",
            re.DOTALL,
        ),
    ),
    "lua": (
        re.compile(
            r"for\s+\w+\s*,\s*(?P<key>\w+)\s+in\s+ipairs\s*\(?\s*(?P<words>\{[^{}]*\})\s*\)?\s+do\s+(?P<body>.*?)\s+end",
            re.DOTALL,
        ),
    ),
    "ruby": (
        re.compile(
            r"ENV\.(?:sort\.|to_a\.)?each(?:_pair)?\s*(?:do|\{)\s*\|\(?(?P<key>\w+),\s*(?P<value>\w+)\)?\|\s*"
            r"(?P<body>puts\b.*?)(?:\s+if\s+(?P<condition>(?P=key)\.(?:start_with|include)\?\(?\s*['\"]\w+['\"]\s*\)?"
            r"|(?P=key)\s*=~\s*/[^/]*/i?|(?P=key)\.match\?\(/[^/]*/i?\)))?"
            r"\s*(?:\}|end)",
            re.DOTALL,
        ),
        re.compile(
            r"%w[\[({](?P<words>[\w\s]*)[\])}]\.each\s*(?:do|\{)\s*\|(?P<key>\w+)\|\s*"
            r"(?P<body>(?:puts|print|p)\b.*?)\s*(?:\}|end)",
            re.DOTALL,
        ),
    ),
}
"""Loops over listed names (`words`) or over the environment, with the condition on the name."""


def listed_names(words: str) -> list[str]:
    """Return the names in `["A", "B"]`, `qw(A B)` or `("A", "B")`."""
    names = re.findall(r"\w+", words.removeprefix("qw"))
    if not names or len(names) > 20:
        raise UnknownError
    return names


def bound_body(
    language: Language, body: str, key: str, name: str, value_name: str | None, value: str | None
) -> str:
    """Return the body of a loop with the variables of the loop replaced."""
    match language.name:
        case "perl":
            of_name = re.escape(key)
            body = re.sub(rf"\$ENV\{{\s*{of_name}\s*\}}", f"$ENV{{{name}}}", body)
            names = (
                [(of_name, name)] if value_name is None else [(of_name, name), (re.escape(value_name), value)]
            )
            for pattern, text in names:
                body = STRING.sub(lambda s, p=pattern, t=text: re.sub(rf"{p}(?!\w)", t or "", s[0]), body)  # type: ignore[misc]
                body = re.sub(rf"{pattern}(?!\w)", f"'{text}'", body)
            return body
        case "lua":
            body = re.sub(rf"os\.getenv\(\s*{key}\s*\)", f"os.getenv('{name}')", body)
            return _outside_strings(body, {key: f"'{name}'"})
        case "ruby":
            body = re.sub(rf"ENV\[\s*{key}\s*\]", f"ENV['{name}']", body)
            body = re.sub(rf"ENV\.fetch\(\s*{key}\s*,", f"ENV.fetch('{name}',", body)
            return _outside_strings(
                body, {key: f"'{name}'"} | ({} if value_name is None else {value_name: f"'{value}'"})
            )
        case _:
            raise UnknownError


def _outside_strings(code: str, names: dict[str, str]) -> str:
    """Replace identifiers outside of strings, and in the expressions of template strings."""
    pattern = re.compile(r"(?<![\w.])(" + "|".join(map(re.escape, names)) + r")(?!\w)")

    def replaced(text: str) -> str:
        return pattern.sub(lambda match: names[match[1]], text)

    out = ""
    at = 0
    for match in STRING.finditer(code):
        out += replaced(code[at : match.start()])
        literal = match[0]
        if literal.startswith('"') and "#{" in literal:
            literal = re.sub(r"#\{([^{}]*)\}", lambda inner: "#{" + replaced(inner[1]) + "}", literal)
        if literal.startswith("`"):
            literal = re.sub(r"\$\{([^{}]*)\}", lambda inner: "${" + replaced(inner[1]) + "}", literal)
        out += literal
        at = match.end()
    return out + replaced(code[at:])


def require_name_tested(tested: str | None, condition: str) -> None:
    """Raise `UnknownError` where a filter tests something else than the name of a variable."""
    name = re.escape(tested or "")
    if tested and not re.match(rf"{name}\.|.*\.test\({name}\)$", condition.strip()):
        raise UnknownError


def holds(condition: str, name: str) -> bool:
    """Return whether a condition on a name holds."""
    condition = condition.strip()
    if not condition:
        return True
    if match := re.fullmatch(r"(?:\$?\w+\s*=~\s*|\w+\.match\?\()?/([^/]*)/(i?)\)?", condition):
        pattern = compiled(match[1], "perl", ignores_case=match[2] == "i")
        if pattern is None:
            raise UnknownError
        return pattern.search(name) is not None
    match = re.fullmatch(
        r"(?:\w+\.)?(startsWith|startswith|start_with\?|includes?\??|test|contains)"
        r"(?:\(\s*|\s+)['\"]\^?([\w]+)['\"]\s*\)?",
        condition,
    )
    if match is None:
        match = re.fullmatch(r"/(?P<regex>[\w^$]+)/\.test\(\w+\)", condition)
        if match is None:
            raise UnknownError
        return re.search(match["regex"], name) is not None
    at_start = match[1].lower().startswith("start") or (match[1] == "test" and "^" in condition)
    return name.startswith(match[2]) if at_start else match[2] in name
