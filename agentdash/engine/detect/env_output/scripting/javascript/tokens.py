"""Split JavaScript into tokens, with a semicolon at each line break that ends a statement."""

from __future__ import annotations

import re
from typing import Final

from agentdash.engine.detect.env_output.scripting.token_cursor import Token
from agentdash.engine.detect.env_output.unknown import UnknownError

_TOKEN: Final = re.compile(
    r"""(?P<blank>[ \t\r\n]+|//[^\n]*|/\*.*?\*/)"""
    r"""|(?P<string>'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")"""
    r"""|(?P<number>\d+(?:\.\d+)?)"""
    r"""|(?P<name>[A-Za-z_$][\w$]*)"""
    r"""|(?P<sign>===|!==|\.\.\.|=>|\?\?=|\|\|=|&&=|&&|\|\||\?\?|\?\.|==|!=|<=|>=|\+=|-=|\+\+|--|[-+*/%<>=!?:;,.(){}\[\]])""",
    re.DOTALL,
)


REGEX: Final = re.compile(r"/((?:[^/\\\n\[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+)/([a-z]*)")


_TEMPLATE: Final = re.compile(r"`((?:[^`\\]|\\.)*)`", re.DOTALL)


_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "0": "\0"}


_MAX_TOKENS: Final = 800


def unescaped(text: str) -> str:
    """Return the text of a literal without its escapes."""
    if re.search(r"\\[^ntr0'\"`\\$/\n{}]", text):
        raise UnknownError
    return re.sub(r"\\(.)", lambda m: "" if m[1] == "\n" else _ESCAPES.get(m[1], m[1]), text, flags=re.DOTALL)


def tokenize(code: str) -> list[Token]:
    """Return the tokens of a program: kind and text."""
    found: list[Token] = []
    at = 0
    while at < len(code):
        kind, text = found[-1] if found else ("sign", ";")
        is_operand = kind in ("string", "number", "template", "regex") or text in (")", "]", "}")
        is_operand = is_operand or (kind == "name" and text not in ("return", "typeof", "in", "of"))
        is_regex = code[at] == "/" and not is_operand and code[at : at + 2] not in ("//", "/*")
        if is_regex and (match := REGEX.match(code, at)):
            found.append(("regex", match[0]))
        elif code[at] == "`" and (match := _TEMPLATE.match(code, at)):
            found.append(("template", match[1]))
        elif match := _TOKEN.match(code, at):
            if match.lastgroup != "blank":
                found.append((match.lastgroup or "", match[0]))
            elif "\n" in match[0]:
                found.append(("line", "\n"))
        else:
            raise UnknownError
        at = match.end()
        if len(found) > _MAX_TOKENS:
            raise UnknownError
    return _without_joining_lines(found)


_OPEN: Final = frozenset(("(", "[", ",", "=>", "=", "+", "?", ":", "&&", "||", "??", "{", ";", ".", "=="))


_CONTINUES: Final = frozenset((".", "?.", ")", "]", ",", "+", "?", ":", "&&", "||", "??", "}", "=>", "{"))


def _without_joining_lines(tokens: list[Token]) -> list[Token]:
    """Return tokens with a semicolon for each line break that ends a statement."""
    found: list[Token] = []
    for number, token in enumerate(tokens):
        if token[0] != "line":
            found.append(token)
            continue
        after = next((t for t in tokens[number + 1 :] if t[0] != "line"), ("sign", ";"))
        before = found[-1] if found else ("sign", ";")
        if before[0] == "sign" and before[1] in _OPEN:
            continue
        if after[0] == "sign" and after[1] in _CONTINUES and after[1] != "{":
            continue
        found.append(("sign", ";"))
    return found
