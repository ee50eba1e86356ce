"""Forms of Perl, Ruby, PHP, Lua and jq that print variables, as regular expressions."""

from __future__ import annotations

import re
from typing import Final

from agentdash.engine.detect.env_output.expression_loops import (
    STRING,
    Language,
    UnknownError,
)

PERL: Final = Language(
    name="perl",
    variable=r"\$ENV\{\s*(?P<quoted>['\"]?)(?P<name>\w+)(?P=quoted)\s*\}",
    defaults=("||", "//"),
    joins=(".",),
    interpolation=r"(\$ENV\{\s*['\"]?\w+['\"]?\s*\})",
    code_options="eE",
)

_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r"}


RUBY: Final = Language(
    name="ruby",
    variable=r"ENV\[(?P<quoted>['\"])(?P<name>\w+)(?P=quoted)\]",
    defaults=("||",),
    joins=("+",),
    interpolation=r"#\{([^{}]*)\}",
    code_options="e",
)


PHP: Final = Language(
    name="php",
    variable=r"getenv\(\s*(?P<quoted>['\"])(?P<name>\w+)(?P=quoted)\s*\)",
    defaults=("?:",),
    joins=(".",),
    code_options="r",
)


LUA: Final = Language(
    name="lua",
    variable=r"os\.getenv\(?\s*(?P<quoted>['\"])(?P<name>\w+)(?P=quoted)\s*\)?",
    defaults=(" or ",),
    joins=("..",),
    unset="nil",
    code_options="e",
)


JQ: Final = Language(
    name="jq",
    variable=r"(?:env|\$ENV)(?:\.(?P<name>[A-Za-z_]\w*)|\.?\[\"(?P<name2>\w+)\"\])",
    defaults=("//",),
    joins=("+",),
    interpolation=r"\\\(([^()]*)\)",
    unset="null",
)


JQ_LINES: Final = re.compile(
    r"(?:env|\$ENV)\s*\|\s*to_entries(?:\[\]|\s*\|\s*\.\[\])\s*\|\s*"
    r"(?:select\(\s*\.key\s*\|\s*(?P<condition>[^()]*\([^()]*\))\s*\)\s*\|\s*)?"
    r"(?:\"\\\(\.key\)(?P<between>[^\"\\]*)\\\(\.value\)\")"
)


JOINED: Final = re.compile(
    r"join\s*\(?\s*(?P<separator>'[^'\\]*'|\"(?:[^\"\\]|\\.)*\")\s*,\s*map\s*\{(?P<body>.*)\}\s*"
    r"(?P<words>qw\s*[(/\[{][\w\s]*[)/\]}]|\([^()]*\))\s*\)?",
    re.DOTALL,
)


RUBY_SELECTION: Final = re.compile(
    r"(?:puts|p)\s*\(?\s*(?P<format>JSON\.(?:pretty_)?generate\()?\s*ENV(?:\.to_h)?"
    r"(?:\.(?:select|filter)\s*\{\s*\|\s*(?P<key>\w+)\s*,?\s*\w*\s*\|\s*(?P<condition>[^{}]*)\}"
    r"|\.slice\((?P<names>[^()]*)\))?(?:\.inspect)?\s*\)?\s*\)?"
)


SILENT_PERL: Final = re.compile(r"use (?:strict|warnings|Data::Dumper)|\$Data::Dumper::Sortkeys\s*=\s*1")


PERL_LINES: Final = re.compile(
    r"join\s*\(?\s*(?:\"\\n\"|\$/)\s*,\s*map\s*\{\s*(?P<body>\"[^\"]*\")\s*\}\s*(?:sort\s+)?"
    r"(?:grep\s*(?:\{\s*(?P<condition>/[^/]*/i?)\s*\}|(?P<condition2>/[^/]*/i?)\s*,))?\s*(?:sort\s+)?keys\s*\(?%ENV\)?\s*\)?"
)


DUMPER: Final = re.compile(
    r"(?:Data::Dumper->)?Dumper\s*\(?\s*(?:\\%ENV|\+?\{\s*map\s*\{\s*\(?\s*\$_\s*(?:=>|,)\s*\$ENV\{\s*\$_\s*\}"
    r"\s*\)?\s*\}\s*(?:sort\s+)?(?:grep\s*(?:\{\s*(?P<condition>/[^/]*/)\s*\})\s*)?(?:sort\s+)?keys\s*\(?%ENV\)?"
    r"\s*\})\s*\)?"
)


def unescaped(text: str) -> str:
    """Return the text of a literal without its escapes."""
    if re.search(r"\\[^ntr\\'\"`$@]", text):
        raise UnknownError
    return re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[1]), text, flags=re.DOTALL)


def split(text: str, separators: tuple[str, ...]) -> list[str]:
    """Return the parts between separators that stand outside of strings and brackets."""
    parts: list[str] = []
    depth = start = at = 0
    while at < len(text):
        char = text[at]
        if char in "'\"`" and (match := STRING.match(text, at)):
            at = match.end()
            continue
        if char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        found = next((s for s in separators if depth == 0 and s and text.startswith(s, at)), None)
        if found:
            parts.append(text[start:at])
            at += len(found)
            start = at
        else:
            at += 1
    return [*parts, text[start:]]


def closes(text: str) -> int:
    """Return the offset behind the bracket that closes the first one."""
    depth = at = 0
    while at < len(text):
        if text[at] in "'\"`" and (match := STRING.match(text, at)):
            at = match.end()
            continue
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        at += 1
        if depth == 0:
            break
    return at
