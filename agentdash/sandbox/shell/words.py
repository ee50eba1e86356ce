"""Convert the words of tree-sitter's tree: quotes and escapes removed, expansions kept as pieces."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import msgspec

from agentdash.sandbox.shell.syntax import (
    Opaque,
    Parameter,
    Piece,
    ProcessSubstitution,
    Script,
    Substitution,
    Text,
    Word,
    may_expand,
)
from agentdash.sandbox.word_sets import word_set

if TYPE_CHECKING:
    from tree_sitter import Node as Tree

MAX_NESTING: Final = 60
"""Deeper trees are not converted: at ten frames a level Python's recursion limit is near."""

_EXPANSION: Final = re.compile(
    r"\$\{(?P<prefix>[!#]?)(?P<name>[A-Za-z_]\w*|\d+|[@*#?$!-])(?P<index>\[[^\]]*\])?"
    r"(?P<operator>:[-+=?]|[-+=?]|##?|%%?|//?|\^\^?|,,?|@|:)?(?P<argument>.*)\}",
    re.DOTALL,
)
_EXPANDS: Final = re.compile(r"\$[\w{($?!#@*]")
"""An expansion that the grammar has left in text."""
_PLAIN_EXPANSION: Final = re.compile(r"\\.|\$([A-Za-z_]\w*|[0-9?$#!@*-])", re.DOTALL)
"""An expansion without braces in text, or an escaped character."""
_EXPANSIONS: Final = (
    "simple_expansion",
    "expansion",
    "command_substitution",
    "process_substitution",
    "arithmetic_expansion",
)
WORDS: Final = frozenset(_EXPANSIONS) | word_set(
    "word number string raw_string ansi_c_string translated_string concatenation regex brace_expression"
    " extglob_pattern variable_name special_variable_name test_operator subscript"
)


class UnparsedError(Exception):
    """The script holds something that the conversion does not know."""


class MisreadError(Exception):
    """The grammar took the end of a command for a blank: `a | b | c` before a line with a redirection."""

    def __init__(self, offset: int) -> None:
        super().__init__(offset)
        self.offset = offset


class Quoting(msgspec.Struct, frozen=True):
    """How text between expansions is read: `escapes` matches what a backslash makes literal."""

    quoted: bool
    escapes: str


UNQUOTED: Final = Quoting(quoted=False, escapes=r"(.)")
DOUBLE: Final = Quoting(quoted=True, escapes=r'([$`"\\])')
HEREDOC: Final = Quoting(quoted=True, escapes=r"([$`\\])")


class WordConverter:
    """Turns the nodes of words into ours; raises `UnparsedError` at anything that it does not know."""

    def __init__(self, source: bytes) -> None:
        self.source = source

    def text(self, start: int, end: int) -> str:
        """Return a byte range of the script."""
        return self.source[start:end].decode(errors="replace")

    def script(self, children: list[Tree], depth: int) -> Script:
        """Convert the statements of a command substitution."""
        raise NotImplementedError

    def require_one_line(self, trees: list[Tree]) -> None:
        """Raise `MisreadError` where a line ends between the parts of a simple command."""
        for before, after in pairwise(trees):
            gap = self.text(before.end_byte, after.start_byte)
            if before.type == "comment" or after.type == "comment" or "\n" in gap.replace("\\\n", ""):
                raise MisreadError(before.end_byte if before.type != "comment" else before.start_byte)

    def words(self, trees: list[Tree], depth: int, *, joins: bool = True) -> list[Word]:
        """Return the words that nodes make; with `joins`, nodes without a blank between them are one word."""
        groups: list[list[Word]] = []
        end = -1
        for tree in trees:
            if tree.type == "comment":
                continue
            word = self.word(tree, depth)
            adjacent = end >= 0 and not self.text(end, tree.start_byte).replace("\\\n", "")
            if adjacent and joins:
                groups[-1].append(word)
            else:
                groups.append([word])
            end = tree.end_byte
        return [_joined(group) for group in groups]

    def word(self, tree: Tree, depth: int) -> Word:
        """Convert one node."""
        if depth > MAX_NESTING:
            raise UnparsedError
        raw = self.text(tree.start_byte, tree.end_byte)
        if raw.startswith("\n"):
            raise MisreadError(tree.start_byte)  # before a word that begins with a backslash
        return Word(self._word_pieces(tree, raw, depth + 1), raw)

    def pieces(
        self, start: int, end: int, children: list[Tree], quoting: Quoting, depth: int
    ) -> tuple[Piece, ...]:
        """Return the pieces of a byte range: its expansions, and the text between them."""
        pieces: list[Piece] = []
        at = start
        for child in children:
            if child.type in _EXPANSIONS and at <= child.start_byte and child.end_byte <= end:
                pieces += self._literal(at, self._expansion_start(child), quoting)
                pieces.append(self._expansion(child, quoting, depth + 1))
                at = child.end_byte
        pieces += self._literal(at, end, quoting)
        return tuple(pieces)

    def _word_pieces(self, tree: Tree, raw: str, depth: int) -> tuple[Piece, ...]:
        kind = tree.type
        if kind in ("concatenation", "command_name"):
            return tuple(piece for word in self.words(tree.children, depth) for piece in word.pieces)
        if kind in _EXPANSIONS:
            return (self._expansion(tree, UNQUOTED, depth),)
        if kind == "string":
            if tree.start_byte and self.source[tree.start_byte - 1 : tree.start_byte] == b"$":
                raise UnparsedError  # $"…" is translated by bash and kept by other shells
            pieces = self.pieces(tree.start_byte + 1, tree.end_byte - 1, tree.children, DOUBLE, depth)
            return pieces or (Text("", quoted=True),)
        if kind == "raw_string":
            return (Text(raw[1:-1], quoted=True),)
        if kind in ("brace_expression", "translated_string", "ansi_c_string") or (
            kind in ("extglob_pattern", "subscript") and tree.children
        ):
            return (Opaque(raw, quoted=False),)
        if raw == "$$":  # before the end of a line the grammar gives the bare token
            return (Parameter(name="$", quoted=False, raw=raw),)
        if not tree.children:
            return (_unquoted(raw),)
        raise UnparsedError

    def _literal(self, start: int, end: int, quoting: Quoting) -> list[Piece]:
        if start >= end:
            return []
        raw = self.text(start, end)
        plain = re.sub(r"\\.", "", raw, flags=re.DOTALL)
        if (
            "`" in plain or "$(" in plain or "${" in plain
        ):  # the grammar leaves backticks of here-documents as text
            return [Opaque(raw, quoted=True)]
        found: list[Piece] = []
        at = 0
        for match in _PLAIN_EXPANSION.finditer(raw):  # of here-documents: `$$` before a comma, and others
            if match[1] is None:
                continue
            before = _unescape(raw[at : match.start()], quoting)
            found += [Text(before, quoted=True)] if before else []
            found.append(Parameter(name=match[1], quoted=True, raw=match[0]))
            at = match.end()
        rest = _unescape(raw[at:], quoting)
        return [*found, Text(rest, quoted=True)] if rest or not found else found

    def _expansion_start(self, tree: Tree) -> int:
        """Return where an expansion begins: the grammar may count the blanks before `$(` to it."""
        raw = self.source[tree.start_byte : tree.end_byte]
        return tree.end_byte - len(raw.lstrip())

    def _expansion(self, tree: Tree, quoting: Quoting, depth: int) -> Piece:
        if depth > MAX_NESTING:
            raise UnparsedError
        raw = self.text(self._expansion_start(tree), tree.end_byte)
        if tree.type == "simple_expansion":
            return Parameter(name=raw[1:], quoted=quoting.quoted, raw=raw)
        if tree.type == "command_substitution" and not (raw.startswith("`") and "\\" in raw):
            return Substitution(
                script=self.script(tree.children[1:-1], depth), quoted=quoting.quoted, raw=raw
            )
        if tree.type == "process_substitution":
            inner = self.script(tree.children[1:-1], depth)
            return ProcessSubstitution(script=inner, direction=raw[0], raw=raw)
        if tree.type == "expansion" and (match := _EXPANSION.fullmatch(raw)):
            if match["argument"] and not match["operator"]:
                raise UnparsedError
            return Parameter(
                name=match["name"],
                quoted=quoting.quoted,
                prefix=match["prefix"],
                index=match["index"],
                operator=match["operator"] or "",
                argument=self._argument(tree, match, quoting, depth) if match["operator"] else None,
                raw=raw,
            )
        return Opaque(raw, quoted=quoting.quoted)

    def _argument(self, tree: Tree, match: re.Match[str], quoting: Quoting, depth: int) -> Word | None:
        """Return the word behind the operator of `${name…}`; None for more than one string or expansion."""
        argument = match["argument"]
        if not re.search(r"[$`'\"\\]", argument):
            return Word((Text(argument, quoted=quoting.quoted),) if argument else (), argument)
        start = tree.end_byte - 1 - len(argument.encode())
        inside = next(
            (c for c in tree.children if c.start_byte == start and c.end_byte == tree.end_byte - 1), None
        )
        if inside is None:
            return None
        if inside.type in _EXPANSIONS:
            return Word((self._expansion(inside, quoting, depth),), argument)
        if inside.type == "string" or (
            inside.type in ("raw_string", "concatenation", "word") and not quoting.quoted
        ):
            return self.word(inside, depth)
        return None  # quotes inside quotes: shells differ


def _joined(words: list[Word]) -> Word:
    if len(words) == 1:
        return words[0]
    return Word(tuple(piece for word in words for piece in word.pieces), "".join(word.raw for word in words))


def without_leading_tabs(pieces: tuple[Piece, ...]) -> tuple[Piece, ...]:
    """Remove the tabs that `<<-` removes from the start of each line."""
    stripped: list[Piece] = []
    for piece in pieces:
        if isinstance(piece, Text):
            start = r"(^|\n)\t+" if not stripped else r"(\n)\t+"
            stripped.append(Text(re.sub(start, r"\1", piece.text), quoted=True))
        else:
            stripped.append(piece)
    return tuple(stripped)


def _unescape(raw: str, quoting: Quoting) -> str:
    return re.sub(r"\\(\n)|\\" + quoting.escapes, lambda m: "" if m[1] else m[2], raw, flags=re.DOTALL)


def _unquoted(raw: str) -> Text:
    if _EXPANDS.search(re.sub(r"\\.", "", raw, flags=re.DOTALL)):
        raise UnparsedError
    escaped = "\\" in raw and not may_expand(re.sub(r"\\.", "", raw, flags=re.DOTALL))
    return Text(_unescape(raw, UNQUOTED), quoted=escaped)
