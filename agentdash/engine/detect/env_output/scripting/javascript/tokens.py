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
    r"""|(?P<name>\#?[A-Za-z_$][\w$]*)"""
    r"""|(?P<sign>===|!==|\.\.\.|=>|\?\?=|\|\|=|&&=|&&|\|\||\?\?|\?\.|==|!=|<=|>=|\+=|-=|\*\*|\+\+"""
    r"""|--|[-+*/%<>=!?:;,.(){}\[\]])""",
    re.DOTALL,
)

REGEX: Final = re.compile(r"/((?:[^/\\\n\[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+)/([a-z]*)")

_LITERAL: Final = re.compile(r"""'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*\"""", re.DOTALL)

_ESCAPE: Final = re.compile(
    r"\\(?:x(?P<code>[0-9a-fA-F]{2})|u(?P<long>[0-9a-fA-F]{4}|\{[0-9a-fA-F]{4,5}\})|(?P<sign>.))", re.DOTALL
)
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "0": "\0"}

_MAX_TOKENS: Final = 800


def unescaped(text: str) -> str:
    """Return the text of a literal without its escapes."""
    if re.search(r"\\(?!u\{?[0-9a-fA-F]{4,5}|x[0-9a-fA-F]{2})[^ntr0'\"`\\$/\n{}]", text):
        raise UnknownError
    return _ESCAPE.sub(_sign_of, text)


def _sign_of(match: re.Match[str]) -> str:
    if code := match["code"] or match["long"]:
        return chr(int(code.strip("{}"), 16))
    return "" if match["sign"] == "\n" else _ESCAPES.get(match["sign"], match["sign"])


def template_end(code: str, at: int) -> int:
    """Return the offset behind a template whose text begins at `at`; templates may stand in it."""
    while at < len(code):
        if code.startswith("${", at):
            at = hole_end(code, at + 2)
        elif code[at] == "`":
            return at + 1
        else:
            at += 2 if code[at] == "\\" else 1
    raise UnknownError


def hole_end(code: str, at: int) -> int:
    """Return the offset behind the bracket that closes an expression in a template."""
    depth = 1
    while at < len(code):
        if match := _LITERAL.match(code, at):
            at = match.end()
            continue
        if code[at] == "`":
            at = template_end(code, at + 1)
            continue
        depth += {"{": 1, "}": -1}.get(code[at], 0)
        at += 1
        if depth == 0:
            return at
    raise UnknownError


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
        elif code[at] == "`":
            stop = template_end(code, at + 1)
            found.append(("template", code[at + 1 : stop - 1]))
            at = stop
            continue
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
        found.append(("line", ";"))
    return found
