"""Convert tree-sitter's nodes of a shell script to the syntax tree."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final, Literal

from agentdash.sandbox.shell.syntax import (
    AndOr,
    Assignment,
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
    Unsupported,
    Word,
)
from agentdash.sandbox.shell.words import (
    HEREDOC,
    MAX_NESTING,
    WORDS,
    UnparsedError,
    WordConverter,
    without_leading_tabs,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node as Tree


_IGNORED: Final = frozenset(
    (";", ";;", ";&", ";;&", "&", "\n", "comment", "then", "do", "done", "fi", "esac", "{", "}", "(", ")")
)

_STATEMENTS: Final = frozenset(
    (
        *("command", "variable_assignment", "variable_assignments", "declaration_command", "unset_command"),
        *("test_command", "redirected_statement", "pipeline", "negated_command", "list", "subshell"),
        *("compound_statement", "if_statement", "while_statement", "for_statement"),
        *("c_style_for_statement", "case_statement", "function_definition"),
    )
)

_REDIRECTS: Final = frozenset(("file_redirect", "heredoc_redirect", "herestring_redirect"))


def _leaves(tree: Tree) -> Iterator[Tree]:
    """Yield the words and operators of a test, in order."""
    for child in tree.children:
        if child.type in WORDS or not child.children:
            yield child
        else:
            yield from _leaves(child)


class Converter(WordConverter):
    """Turns tree-sitter's nodes into ours; raises `UnparsedError` at anything that it does not know."""

    # ------------------------------------------------------------ statements

    def script(self, children: list[Tree], depth: int) -> Script:
        """Return the statements among some nodes."""
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
        if assigned and options in (["-a"], ["-A"]):  # its scope in functions is not followed
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
            return Unsupported()
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
        node = redirected(body, redirects, extra)
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
                node = arranged([node, behind or self._pipeline(child, depth + 1)], [pipe.type == "|&"])
            elif child.type in ("&&", "||"):
                right = self._statement(children[number + 1], depth + 1)
                node = AndOr(node, "&&" if child.type == "&&" else "||", right)
        return node

    def _pipeline(self, tree: Tree, depth: int) -> Node:
        pipes = [child.type == "|&" for child in tree.children if child.type in ("|", "|&")]
        parts = [self._statement(c, depth + 1) for c in tree.children if c.type not in ("|", "|&", "comment")]
        return arranged(parts, pipes[-(len(parts) - 1) :] if len(parts) > 1 else [])

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
            return Unsupported()
        return Group(self.script(tree.children, depth))

    def _subshell(self, tree: Tree, depth: int) -> Node:
        return Group(self.script(tree.children, depth), subshell=True)

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
        return Unsupported(self.script([*tree.children[1:-1], *tree.children[-1].children], depth))

    def _for_statement(self, tree: Tree, depth: int) -> Node:
        if tree.children[0].type != "for":
            return Unsupported()
        children = [c for c in tree.children[2:] if c.type not in _IGNORED]
        body = self.script(children[-1].children, depth)
        words = None
        if children[0].type == "in":
            words = tuple(self.words(children[1:-1], depth))
        return For(self.text(tree.children[1].start_byte, tree.children[1].end_byte), words, body)

    def _c_style_for_statement(self, tree: Tree, depth: int) -> Node:
        return Unsupported(self.script(tree.children[-1].children, depth))

    def _case_statement(self, tree: Tree, depth: int) -> Node:
        body: list[Tree] = []
        for item in (child for child in tree.children if child.type == "case_item"):
            close = next((i for i, c in enumerate(item.children) if c.type == ")"), None)
            if close is None:
                raise UnparsedError
            body += item.children[close + 1 :]
        return Unsupported(self.script(body, depth), (self.word(tree.children[1], depth),))

    def _function_definition(self, tree: Tree, depth: int) -> Node:
        name = next(c for c in tree.children if c.type == "word")
        bodies = [c for c in tree.children if c.type in _STATEMENTS]
        if len(bodies) != 1:
            raise UnparsedError
        return Function(self.text(name.start_byte, name.end_byte), self._statement(bodies[0], depth + 1))

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
        text, append = self.text(name.start_byte, name.end_byte), operator.type == "+="
        if name.type != "variable_name":
            base, _, index = text.partition("[")
            return Assignment(base, None, append, (Word((), index), *self.words(value, depth)))
        if value and value[0].type == "array":
            return Assignment(text, None, append, tuple(self.words(value[0].children[1:-1], depth)))
        words = self.words(value, depth)
        if len(words) > 1:
            raise UnparsedError
        return Assignment(text, words[0] if words else Word((), ""), append)


# ------------------------------------------------------------
# Arrange the parts of pipelines and lists as the shell does, where the grammar takes them otherwise


def redirected(body: Node, redirects: tuple[Redirect, ...], extra: tuple[Word, ...]) -> Node:
    """Give redirections to the command they belong to: the last one of a pipeline or list."""
    if isinstance(body, Simple):
        return Simple(
            words=(*body.words, *extra), assignments=body.assignments, redirects=(*body.redirects, *redirects)
        )
    if isinstance(body, Pipeline):
        return Pipeline((*body.parts[:-1], redirected(body.parts[-1], redirects, extra)), body.stderr)
    if isinstance(body, AndOr):
        return AndOr(body.left, body.operator, redirected(body.right, redirects, extra))
    if isinstance(body, Not):
        return Not(redirected(body.body, redirects, extra))
    if extra:
        raise UnparsedError
    return Compound(body, redirects)


def arranged(parts: list[Node], stderr: list[bool]) -> Node:
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
    if any(isinstance(part, Not) for part in others):
        raise UnparsedError
    if not others:
        return first
    if isinstance(first, Not):
        return Not(_piped([first.body, *others], stderr))
    return Pipeline(tuple(parts), tuple(stderr))
