"""Parse a shell script into the syntax tree, with tree-sitter's grammar for bash."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final

from agentdash.sandbox.shell.converter import Converter
from agentdash.sandbox.shell.syntax import Script
from agentdash.sandbox.shell.words import MisreadError, UnparsedError

if TYPE_CHECKING:
    from tree_sitter import Language
    from tree_sitter import Node as Tree

MAX_SCRIPT_CHARACTERS: Final = 64_000
"""Longer scripts are not parsed: a model does not type them, and parse time has to stay bounded."""
_MAX_BRACKETS: Final = 200
"""Bracket depth above which the grammar's error recovery takes seconds."""
_MAX_REPAIRS: Final = 200
"""Line ends that the grammar may take for blanks in one script."""
_MAX_MARKS: Final = 500
"""Pipes, here-documents and empty quotes in one script: the time grows with the square of their number."""
_CHUNK: Final = 4_096
"""Bytes that are given to the grammar at once: each is a copy."""
_OPENS_BOTH: Final = re.compile(r"(?<=\d)<>")
"""`exec 3<>/dev/tcp/…`, which the grammar does not know: it may fail as `3<` does."""
_BRACKETS: Final = re.compile(r"[({\[)}\]]")
_NOT_ASCII: Final = re.compile(rb"[\xc0-\xff][\x80-\xbf]*|[\x80-\xbf]")
"""A character of more than one byte in UTF-8."""
_BODY_INSIDE_LIST: Final = re.compile(r"<<-?[ \t]*\\?['\"]?\w[^\n]*(?:\||&&)[ \t]*\n")
"""A here-document whose command goes on behind the body, after `|`, `||` or `&&` at the end of the line: the
grammar takes the body for commands."""


@lru_cache(512)
def parse(script: str) -> Script | None:
    """Return the syntax tree of a script, or None if it cannot be parsed as a whole. Never raises."""
    if len(script) > MAX_SCRIPT_CHARACTERS or "\0" in script or _bracket_depth(script) > _MAX_BRACKETS:
        return None
    if any(script.count(mark) > _MAX_MARKS for mark in ("|", "<<", "''")):
        return None
    if "<<" in script and _BODY_INSIDE_LIST.search(script):
        return None
    script = _OPENS_BOTH.sub("< ", script.replace("\r\n", "\n"))
    source = script.encode(errors="replace")
    for _ in range(_MAX_REPAIRS):
        if (root := _tree(source)) is None:
            return None
        try:
            return Converter(source).script(root.children, 0)
        except MisreadError as misread:
            source = source[: misread.offset] + b";" + source[misread.offset :]
        except (UnparsedError, RecursionError):  # `[[ ! ! … ]]`
            return None
    return None


def _bracket_depth(script: str) -> int:
    depth = deepest = 0
    for match in _BRACKETS.finditer(script):
        depth += 1 if match[0] in "({[" else -1
        deepest = max(deepest, depth)
    return deepest


@cache
def _language() -> Language:
    import tree_sitter  # noqa: PLC0415  start-up time: most sessions have no script worth parsing
    import tree_sitter_bash  # noqa: PLC0415

    return tree_sitter.Language(tree_sitter_bash.language())


def _tree(source: bytes) -> Tree | None:
    """Return the root of a tree without errors; its nodes keep the tree alive.

    Each script gets a parser of its own (under a microsecond): the callbacks let other threads run while
    tree-sitter parses, and a second use of the same parser there ends the process. A parser that was
    cancelled would also go on with the old script.
    """
    language = _language()
    from tree_sitter import Parser  # noqa: PLC0415

    plain = _in_ascii(source)
    try:
        tree = Parser(language).parse(
            lambda start, _: plain[start : start + _CHUNK], progress_callback=lambda _, has_error: has_error
        )
    except ValueError:  # cancelled at the first error
        return None
    return None if tree.root_node.has_error else tree.root_node


def _in_ascii(source: bytes) -> bytes:
    """Return a script of the same length with ordinary characters of words in place of those beyond ASCII.

    The scanner of tree-sitter-bash 0.25 looks characters up in a table of 256 without a check, which ends the
    process now and then.
    """
    if source.isascii():
        return source
    return _NOT_ASCII.sub(lambda match: b"." + b":" * (len(match[0]) - 1), source)
