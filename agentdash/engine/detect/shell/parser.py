"""Parse a shell script into the syntax tree, with tree-sitter's grammar for bash."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Literal

from agentdash.engine.detect.shell.syntax import (
    AndOr,
    Assignment,
    Case,
    CaseItem,
    Compound,
    For,
    Function,
    Group,
    If,
    Item,
    Node,
    Not,
    Pipeline,
    Redirect,
    Script,
    Simple,
    Text,
    Timed,
    Unsupported,
    While,
    Word,
)
from agentdash.engine.detect.shell.words import (
    HEREDOC,
    MAX_NESTING,
    WORDS,
    MisreadError,
    UnparsedError,
    WordConverter,
    without_leading_tabs,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

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
_TIMED: Final = re.compile(
    rb"(?:^|[\n;&|({]|\b(?:then|do|else|if|while)\s)[ \t]*(time(?:[ \t]+-p)?)[ \t]+(?=\(|\{\s)"
)
"""`time` before a group: the grammar takes it for a command."""
_BRACKETS: Final = re.compile(r"[({\[)}\]]")
_NOT_ASCII: Final = re.compile(rb"[\xc0-\xff][\x80-\xbf]*|[\x80-\xbf]")
"""A character of more than one byte in UTF-8."""
_BODY_INSIDE_LIST: Final = re.compile(r"<<-?[ \t]*\\?['\"]?\w[^\n]*(?:\||&&)[ \t]*\n")
"""A here-document whose command goes on behind the body, after `|`, `||` or `&&` at the end of the line: the
grammar takes the body for commands."""

_IGNORED: Final = frozenset(
    (";", ";;", "&", "\n", "comment", "then", "do", "done", "fi", "esac", "{", "}", "(", ")")
)
_STATEMENTS: Final = frozenset(
    (
        *("command", "variable_assignment", "variable_assignments", "declaration_command", "unset_command"),
        *(
            "test_command",
            "redirected_statement",
            "pipeline",
            "negated_command",
            "list",
            "compound_statement",
        ),
        *("subshell", "if_statement", "while_statement", "for_statement", "c_style_for_statement"),
        *("case_statement", "function_definition"),
    )
)
_REDIRECTS: Final = frozenset(("file_redirect", "heredoc_redirect", "herestring_redirect"))


@lru_cache(512)
def parse(script: str) -> Script | None:
    """Return the syntax tree of a script, or None where it cannot be parsed as a whole. Never raises."""
    if len(script) > MAX_SCRIPT_CHARACTERS or "\0" in script or _bracket_depth(script) > _MAX_BRACKETS:
        return None
    if any(script.count(mark) > _MAX_MARKS for mark in ("|", "<<", "''")):
        return None
    if "<<" in script and _BODY_INSIDE_LIST.search(script):
        return None
    source = script.replace("\r\n", "\n").encode(errors="replace")
    timed = {match.end(): match for match in _TIMED.finditer(source)}
    while True:
        converter = _converted(_without(source, timed.values()), frozenset(timed))
        if converter is None:
            return None
        if converter.result is None or converter.timed == timed.keys():
            return converter.result
        timed = {end: match for end, match in timed.items() if end in converter.timed}  # others are in a text


def _without(source: bytes, timed: Iterable[re.Match[bytes]]) -> bytes:
    """Return a script with blanks for each `time`."""
    for match in timed:
        source = source[: match.start(1)] + b" " * len(match[1]) + source[match.end(1) :]
    return source


def _converted(source: bytes, timed: frozenset[int]) -> _Converter | None:
    """Return a converter with its result; None where the script cannot be parsed."""
    repaired = source
    for _ in range(_MAX_REPAIRS):
        if (root := _tree(repaired)) is None:
            return None
        try:
            converter = _Converter(repaired, timed)
            converter.result = converter.script(root.children, 0)
        except MisreadError as misread:
            if timed:
                return None  # the repair moves their places
            repaired = repaired[: misread.offset] + b";" + repaired[misread.offset :]
        except (UnparsedError, RecursionError):  # `[[ ! ! … ]]`
            return None
        else:
            return converter
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


def _leaves(tree: Tree) -> Iterator[Tree]:
    """Yield the words and operators of a test, in order."""
    for child in tree.children:
        if child.type in WORDS or not child.children:
            yield child
        else:
            yield from _leaves(child)


def _redirected(body: Node, redirects: tuple[Redirect, ...], extra: tuple[Word, ...]) -> Node:
    """Give redirections to the command they belong to: the last one of a pipeline or list."""
    if isinstance(body, Simple):
        return Simple(
            words=(*body.words, *extra), assignments=body.assignments, redirects=(*body.redirects, *redirects)
        )
    if isinstance(body, Pipeline):
        return Pipeline((*body.parts[:-1], _redirected(body.parts[-1], redirects, extra)), body.stderr)
    if isinstance(body, AndOr):
        return AndOr(body.left, body.operator, _redirected(body.right, redirects, extra))
    if isinstance(body, Not | Timed):
        return type(body)(_redirected(body.body, redirects, extra))
    if extra:
        raise UnparsedError
    return Compound(body, redirects)


def _arranged(parts: list[Node], stderr: list[bool]) -> Node:
    """Return the parts of a pipeline in the order of precedence.

    Beside redirections and here-documents the grammar takes `a && b <f | c` for `(a && b <f) | c`, and
    `a | b || c` for `a | (b || c)`.
    """
    result: Node | None = None
    operator: Literal["&&", "||"] = "&&"
    pipeline: list[Node] = []
    pipes: list[bool] = []
    for number, part in enumerate(parts):
        pipes += [stderr[number - 1]] if pipeline else []
        first, *others = _chain(part)
        pipeline += _flattened(first[1], pipes)
        for following, node in others:
            result = _listed(result, operator, _piped(pipeline, pipes))
            operator, pipeline, pipes = following, [], []
            pipeline += _flattened(node, pipes)
    return _listed(result, operator, _piped(pipeline, pipes))


def _chain(node: Node) -> list[tuple[Literal["&&", "||"], Node]]:
    """Return the members of a list, each with the operator before it."""
    if not isinstance(node, AndOr):
        return [("&&", node)]
    return [*_chain(node.left), (node.operator, node.right)]


def _flattened(node: Node, pipes: list[bool]) -> list[Node]:
    """Return the parts of a pipeline in a pipeline; adds its pipes."""
    if not isinstance(node, Pipeline):
        return [node]
    pipes += node.stderr
    return list(node.parts)


def _listed(left: Node | None, operator: Literal["&&", "||"], right: Node) -> Node:
    return right if left is None else AndOr(left, operator, right)


def _piped(parts: list[Node], stderr: list[bool]) -> Node:
    first, *others = parts
    if any(isinstance(part, Not | Timed) for part in others):
        raise UnparsedError
    if not others:
        return first
    if isinstance(first, Not | Timed):
        return type(first)(_piped([first.body, *others], stderr))
    return Pipeline(tuple(parts), tuple(stderr))


_COUNTED: Final = re.compile(
    r"for\s*\(\(\s*(?P<name>\w+)\s*=\s*(?P<first>\d{1,6})\s*;\s*(?P=name)\s*<(?P<or_equal>=?)\s*"
    r"(?P<last>\d{1,6})\s*;\s*(?:(?P=name)\s*\+\+|\+\+\s*(?P=name))\s*\)\)"
)
_MAX_COUNTED: Final = 1_000
"""Rounds of `for ((…))` that are kept."""


class _Converter(WordConverter):
    """Turns tree-sitter's nodes into ours; raises `UnparsedError` at anything that it does not know."""

    def __init__(self, source: bytes, timed_at: frozenset[int]) -> None:
        super().__init__(source)
        self._timed_at = timed_at
        """Offsets of groups behind `time`, which is left out."""
        self.timed: frozenset[int] = frozenset()
        """Those of them that are groups, and not a part of a text."""
        self.result: Script | None = None

    # ------------------------------------------------------------ statements

    def script(self, children: list[Tree], depth: int) -> Script:
        items: list[Item] = []
        for child in children:
            if child.type == "&" and items:
                items[-1] = Item(items[-1].node, background=True)
            elif child.type not in _IGNORED:
                items.append(Item(self._statement(child, depth + 1)))
        return Script(tuple(items))

    def _statement(self, tree: Tree, depth: int) -> Node:
        if depth > MAX_NESTING:
            raise UnparsedError
        convert = getattr(self, f"_{tree.type}", None)
        if tree.type in _REDIRECTS:
            redirects, _ = self._redirections([tree], depth)
            return Simple(words=(), redirects=redirects)
        if convert is None or tree.type not in _STATEMENTS:
            raise UnparsedError
        if tree.type != "redirected_statement":
            self._require_no_gaps(tree)
        node: Node = convert(tree, depth)
        return node

    def _lost(self, tree: Tree) -> list[str]:
        """Return the text between the children of a node that the grammar has left out."""
        gaps = [self.text(a.end_byte, b.start_byte) for a, b in pairwise(tree.children)]
        return [gap.strip() for gap in (gap.replace("\\\n", " ") for gap in gaps) if gap.strip()]

    def _require_no_gaps(self, tree: Tree) -> None:
        if self._lost(tree):
            raise UnparsedError

    def _command(self, tree: Tree, depth: int) -> Node:
        self.require_one_line(tree.children)
        if (
            self.text(tree.start_byte, tree.end_byte)[:1] in ("{", "}")
            and tree.children[0].type == "command_name"
        ):
            raise UnparsedError  # `! { a; }`: the grammar takes the bracket for the name of a command
        assignments = tuple(
            self._assignment(c, depth) for c in tree.children if c.type == "variable_assignment"
        )
        redirects, extra = self._redirections([c for c in tree.children if c.type in _REDIRECTS], depth)
        rest = [c for c in tree.children if c.type not in _REDIRECTS and c.type != "variable_assignment"]
        return Simple(words=(*self.words(rest, depth), *extra), assignments=assignments, redirects=redirects)

    def _variable_assignment(self, tree: Tree, depth: int) -> Node:
        return Simple(words=(), assignments=(self._assignment(tree, depth),))

    def _variable_assignments(self, tree: Tree, depth: int) -> Node:
        self.require_one_line(tree.children)
        return Simple(words=(), assignments=tuple(self._assignment(c, depth) for c in tree.children))

    def _declaration_command(self, tree: Tree, depth: int) -> Node:
        self.require_one_line(tree.children)
        redirects, extra = self._redirections([c for c in tree.children if c.type in _REDIRECTS], depth)
        named = [c for c in tree.children if c.type not in _REDIRECTS]
        assigned = [c for c in named if c.type == "variable_assignment"]
        options = [self.text(c.start_byte, c.end_byte) for c in named[1:] if c not in assigned]
        if assigned and options == ["-a"]:  # the same as without `declare -a`, but for its scope in functions
            return Simple(words=(), assignments=tuple(self._assignment(c, depth) for c in assigned))
        words = [self._declared(c, depth) for c in named]
        return Simple(words=(*words, *extra), redirects=redirects)

    _unset_command = _declaration_command

    def _declared(self, tree: Tree, depth: int) -> Word:
        if tree.type != "variable_assignment":
            return self.word(tree, depth)
        assigned = self._assignment(tree, depth)
        if assigned.value is None:
            raise UnparsedError
        name = Text(assigned.name + ("+=" if assigned.append else "="), quoted=False)
        return Word((name, *assigned.value.pieces), self.text(tree.start_byte, tree.end_byte))

    def _test_command(self, tree: Tree, depth: int) -> Node:
        if tree.children[0].type not in ("[", "[["):
            return self._unsupported(tree)
        return Simple(words=tuple(self.words(list(_leaves(tree)), depth, joins=tree.children[0].type == "[")))

    def _redirected_statement(self, tree: Tree, depth: int) -> Node:
        self.require_one_line([c for c in tree.children if c.type != "heredoc_redirect"])
        trees = [c for c in tree.children if c.type in _REDIRECTS]
        others = [c for c in tree.children if c.type not in _REDIRECTS]
        if len(others) > 1:
            raise UnparsedError
        body: Node = self._statement(others[0], depth + 1) if others else Simple(words=())
        redirects, extra = self._redirections(trees, depth)
        if lost := self._lost(tree):
            if lost != ["-"]:  # `python3 - <<EOF`: the grammar leaves the dash out
                raise UnparsedError
            extra = (*extra, Word((Text("-", quoted=False),), "-"))
        node = _redirected(body, redirects, extra)
        for heredoc in (c for c in trees if c.type == "heredoc_redirect"):
            node = self._behind_heredoc(node, heredoc, depth)
        return node

    def _behind_heredoc(self, node: Node, heredoc: Tree, depth: int) -> Node:
        """Attach what follows `<<EOF` on its line: the grammar nests it in the redirection."""
        children = heredoc.children
        for number, child in enumerate(children):
            if child.type == "pipeline":
                pipe, *_ = (c for c in child.children if c.type in ("|", "|&"))
                behind = self._statement(child.children[-1], depth + 1) if len(child.children) == 2 else None
                node = _arranged([node, behind or self._pipeline(child, depth + 1)], [pipe.type == "|&"])
            elif child.type in ("&&", "||"):
                right = self._statement(children[number + 1], depth + 1)
                node = AndOr(node, "&&" if child.type == "&&" else "||", right)
        return node

    def _pipeline(self, tree: Tree, depth: int) -> Node:
        pipes = [child.type == "|&" for child in tree.children if child.type in ("|", "|&")]
        parts = [self._statement(c, depth + 1) for c in tree.children if c.type not in ("|", "|&", "comment")]
        return _arranged(parts, pipes[-(len(parts) - 1) :] if len(parts) > 1 else [])

    def _negated_command(self, tree: Tree, depth: int) -> Node:
        body = self._statement(tree.children[-1], depth + 1)
        if isinstance(body, AndOr):
            return AndOr(Not(body.left), body.operator, body.right)
        return Not(body)

    def _list(self, tree: Tree, depth: int) -> Node:
        left, operator, right = (c for c in tree.children if c.type != "comment")
        after = self._statement(right, depth + 1)
        if operator.type not in ("&&", "||") or (
            isinstance(after, AndOr) and after.operator != operator.type
        ):
            raise UnparsedError  # to the left by the grammar; on the right it stood behind `<<EOF`
        return AndOr(self._statement(left, depth + 1), "&&" if operator.type == "&&" else "||", after)

    # ------------------------------------------------------------ compound commands

    def _compound_statement(self, tree: Tree, depth: int) -> Node:
        if tree.children[0].type != "{":
            return self._unsupported(tree)
        return self._timed(tree, Group(self.script(tree.children, depth)))

    def _subshell(self, tree: Tree, depth: int) -> Node:
        return self._timed(tree, Group(self.script(tree.children, depth), subshell=True))

    def _timed(self, tree: Tree, group: Group) -> Node:
        """Return a group with the `time` before it."""
        if tree.start_byte not in self._timed_at:
            return group
        self.timed |= {tree.start_byte}
        return Timed(group)

    def _if_statement(self, tree: Tree, depth: int) -> Node:
        branches = [self._branch(tree, depth)]
        otherwise = None
        for child in tree.children:
            if child.type == "elif_clause":
                branches.append(self._branch(child, depth))
            elif child.type == "else_clause":
                otherwise = self.script(child.children[1:], depth)
        return If(tuple(branches), otherwise)

    def _branch(self, tree: Tree, depth: int) -> tuple[Script, Script]:
        children = [c for c in tree.children[1:] if c.type not in ("elif_clause", "else_clause")]
        then = next((i for i, c in enumerate(children) if c.type == "then"), None)
        if then is None:
            raise UnparsedError
        return self.script(children[:then], depth), self.script(children[then + 1 :], depth)

    def _while_statement(self, tree: Tree, depth: int) -> Node:
        condition = self.script(tree.children[1:-1], depth)
        return While(
            condition, self.script(tree.children[-1].children, depth), until=tree.children[0].type == "until"
        )

    def _for_statement(self, tree: Tree, depth: int) -> Node:
        if tree.children[0].type != "for":
            return self._unsupported(tree)
        children = [c for c in tree.children[2:] if c.type not in _IGNORED]
        body = self.script(children[-1].children, depth)
        words = None
        if children[0].type == "in":
            words = tuple(self.words(children[1:-1], depth))
        return For(self.text(tree.children[1].start_byte, tree.children[1].end_byte), words, body)

    def _c_style_for_statement(self, tree: Tree, depth: int) -> Node:
        body = self.script(tree.children[-1].children, depth)
        text = self.text(tree.start_byte, tree.end_byte)
        if (counted := _COUNTED.match(text)) is None:
            return Unsupported(text, body)
        last = int(counted["last"]) + (counted["or_equal"] == "=")
        numbers = [str(number) for number in range(int(counted["first"]), last)][:_MAX_COUNTED]
        return For(counted["name"], tuple(Word((Text(n, quoted=False),), n) for n in numbers), body)

    def _case_statement(self, tree: Tree, depth: int) -> Node:
        items = tuple(self._case_item(c, depth) for c in tree.children if c.type == "case_item")
        return Case(self.word(tree.children[1], depth), items)

    def _case_item(self, tree: Tree, depth: int) -> CaseItem:
        close = next((i for i, c in enumerate(tree.children) if c.type == ")"), None)
        if close is None:
            raise UnparsedError
        patterns = tuple(self.word(c, depth) for c in tree.children[:close] if c.type not in ("(", "|"))
        body = [c for c in tree.children[close + 1 :] if c.type not in (";;", ";&", ";;&")]
        ends = [c.type for c in tree.children if c.type in (";;", ";&", ";;&")]
        return CaseItem(patterns, self.script(body, depth), ends[-1] if ends else "")

    def _function_definition(self, tree: Tree, depth: int) -> Node:
        name = next(c for c in tree.children if c.type == "word")
        bodies = [c for c in tree.children if c.type in _STATEMENTS]
        if len(bodies) != 1:
            raise UnparsedError
        return Function(self.text(name.start_byte, name.end_byte), self._statement(bodies[0], depth + 1))

    def _unsupported(self, tree: Tree) -> Node:
        return Unsupported(self.text(tree.start_byte, tree.end_byte))

    # ------------------------------------------------------------ redirections and assignments

    def _redirections(self, trees: list[Tree], depth: int) -> tuple[tuple[Redirect, ...], tuple[Word, ...]]:
        """Return the redirections, and the arguments of the command that the grammar counts to them."""
        redirects: list[Redirect] = []
        extra: list[Word] = []
        for tree in trees:
            fd = next(
                (self.text(c.start_byte, c.end_byte) for c in tree.children if c.type == "file_descriptor"),
                "",
            )
            operator = next(c.type for c in tree.children if not c.is_named)
            if tree.type == "heredoc_redirect":
                redirects.append(self._heredoc(tree, operator, fd, depth))
                inner, more = self._redirections([c for c in tree.children if c.type in _REDIRECTS], depth)
                redirects += inner
                extra += [self.word(c, depth) for c in tree.children if c.type in WORDS] + list(more)
                continue
            words = self.words(
                [c for c in tree.children if c.is_named and c.type != "file_descriptor"], depth
            )
            if fd and not fd.isdecimal():
                raise UnparsedError  # {name}>file
            target = words[0] if words else None
            redirects.append(Redirect(operator=operator, fd=int(fd) if fd else None, target=target))
            extra += words[1:]
        return tuple(redirects), tuple(extra)

    def _heredoc(self, tree: Tree, operator: str, fd: str, depth: int) -> Redirect:
        delimiter = next(
            self.text(c.start_byte, c.end_byte) for c in tree.children if c.type == "heredoc_start"
        )
        expands = not any(mark in delimiter for mark in "'\"\\")
        body = next((c for c in tree.children if c.type == "heredoc_body"), None)
        end = next((c for c in tree.children if c.type == "heredoc_end"), None)
        if end is None:
            raise UnparsedError
        start = end.start_byte if body is None else body.start_byte
        start = self.source.rfind(b"\n", 0, start) + 1
        stop = self.source.rfind(b"\n", 0, end.start_byte) + 1
        if expands:
            pieces = self.pieces(start, stop, [] if body is None else body.children, HEREDOC, depth)
        else:
            pieces = (Text(self.text(start, stop), quoted=True),)
        if operator == "<<-":
            pieces = without_leading_tabs(pieces)
        word = Word(pieces, self.text(start, stop))
        return Redirect(
            operator=operator, fd=int(fd) if fd.isdecimal() else None, target=word, expands=expands
        )

    def _assignment(self, tree: Tree, depth: int) -> Assignment:
        name, operator, *value = tree.children
        if name.type == "variable_name" and value and value[0].type == "array":
            elements = self.words(value[0].children[1:-1], depth)
            return Assignment(
                self.text(name.start_byte, name.end_byte),
                None,
                append=operator.type == "+=",
                elements=tuple(elements),
            )
        if name.type != "variable_name":
            base = self.text(name.start_byte, name.end_byte).partition("[")[0]
            return Assignment(base, None, append=operator.type == "+=")
        words = self.words(value, depth)
        if len(words) > 1:
            raise UnparsedError
        word = words[0] if words else Word((), "")
        return Assignment(self.text(name.start_byte, name.end_byte), word, append=operator.type == "+=")
