"""Parse a shell script, as far as bash, zsh and dash read it alike."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, Literal, NamedTuple, cast

from msgspec.structs import force_setattr

from agentdash.sandbox.shell import syntax as s

MAX_SCRIPT_CHARACTERS: Final = 64_000
"""Longer scripts are not parsed: a model does not type them, and parse time has to stay bounded."""
_MAX_NESTING: Final = 50
"""Deeper scripts are not parsed: at ten frames a level Python's recursion limit is near."""

_BLANKS: Final = re.compile(r"(?:[ \t]|\\\n)*(?:#[^\n]*)?")
_END_CHARACTERS: Final = " \t\n;&|()<>"
_END_OF_WORD: Final = rf"(?=[{_END_CHARACTERS}]|\Z)"
_CLOSING: Final = re.compile(rf"(?:then|do|done|fi|elif|else|esac|\}}){_END_OF_WORD}|\)|;;|;&|\Z")
"""What ends a list of statements; whoever began the list knows which."""
_OPENING: Final = re.compile(rf"(?:if|while|until|for|select|case|\{{){_END_OF_WORD}|\(")
_FUNCTION: Final = re.compile(
    r"(?:function[ \t]+([^\s(){};&|<>]+)(?:[ \t]*\([ \t]*\))?|([^\s()<>|&;'\"$`{}=]+)[ \t]*\([ \t]*\))"
)
_BEFORE_PIPELINE: Final = re.compile(r"(!(?=\s)[ \t]*)?(?:time[ \t]+(?:-p[ \t]+)?(?=[({]))?")
_LOGICAL: Final = re.compile(r"&&|\|\|")
_PIPE: Final = re.compile(r"\|(?!\|)&?")
_SEPARATOR: Final = re.compile(r";(?![;&])|&")
_IN: Final = re.compile(r"in(?=\s)")
_NAME: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_REDIRECT: Final = re.compile(r"(\d*)(&>>|&>|<<<|<<-|<<|<>|<&|<(?!\()|>>|>\||>&|>(?!\())")
_NAMED_DESCRIPTOR: Final = re.compile(r"\{\w+\}[<>]")
_ASSIGNMENT: Final = re.compile(r"([A-Za-z_]\w*)(\[[^\]\n]*\])?(\+?)=", re.ASCII)
_DECLARING: Final = ("declare", "typeset", "local", "readonly", "export")
_TEST_OPERATOR: Final = re.compile(r"&&|\|\||[()<>]|!(?=\s)")
_MATCHING: Final = ("=~", "==", "=", "!=")
_ARITHMETIC: Final = re.compile(r"\$?\(\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)\)")
_EXPANSION: Final = re.compile(r"\$([A-Za-z_]\w*|[0-9?$#!@*-])", re.ASCII)
_BRACED: Final = re.compile(
    r"\$\{([!#]?)([A-Za-z_]\w*|\d+|[@*#?$!-])(\[[^\]]*\])?(:[-+=?]|[-+=?]|##?|%%?|//?|\^\^?|,,?|@|:|)",
    re.ASCII,
)
_BACKTICKS: Final = re.compile(r"`((?:[^`\\]|\\.)*)`", re.DOTALL)
_RAW: Final = re.compile(r"'([^']*)'")
_ESCAPED: Final = re.compile(r"\$'(?:[^'\\]|\\.)*'", re.DOTALL)


class _Mode(NamedTuple):
    """How a part of a script is read, up to what is no part of it."""

    text: re.Pattern[str]
    """What stands for itself."""
    quoted: bool = False
    escaped: str = ""
    """What a backslash makes literal between quotes; without these anything."""


_UNQUOTED: Final = _Mode(re.compile(r"[^ \t\n|&;<>()'\"\\$`]+"))
_PATTERN: Final = _Mode(re.compile(r"[^ \t\n;&'\"\\$`]+"))
"""Behind `=~` and the like in `[[ … ]]`."""
_DOUBLE: Final = _Mode(re.compile(r"[^\"\\$`]+"), quoted=True, escaped='$`"\\')
_HEREDOC: Final = _Mode(re.compile(r"[^\\$`]+"), quoted=True, escaped="$`\\")
_ARGUMENT: Final = _Mode(re.compile(r"[^}'\"\\$`]+"))
_QUOTED_ARGUMENT: Final = _Mode(re.compile(r"[^}\"\\$`]+"), quoted=True, escaped='$`"\\}')


class _UnparsedError(Exception):
    """The script holds something that is not known."""


@lru_cache(512)
def parse(script: str) -> s.Script | None:
    """Return the syntax tree of a script, or None if it cannot be parsed as a whole. Never raises."""
    if len(script) > MAX_SCRIPT_CHARACTERS or "\0" in script:
        return None
    try:
        return _Parser(script.replace("\r\n", "\n")).whole()
    except (_UnparsedError, RecursionError):
        return None


class _Parser:
    """Reads a script from its begin to its end."""

    def __init__(self, source: str, nesting: int = 0) -> None:
        self._source = source
        self._at = 0
        self._nesting = nesting
        self._heredocs: list[tuple[s.Redirect, str]] = []
        """Those whose bodies begin behind the next line end, and what ends them."""

    def whole(self) -> s.Script:
        """Return the statements of the whole script."""
        script = self._script()
        if self._at < len(self._source) or self._heredocs:
            raise _UnparsedError
        return script

    def body(self) -> tuple[s.Piece, ...]:
        """Return the pieces of a here-document."""
        return tuple(self._pieces(_HEREDOC))

    # ------------------------------------------------------------ tokens

    def _skip(self) -> None:
        """Pass blanks and a comment."""
        if match := _BLANKS.match(self._source, self._at):
            self._at = match.end()

    def _take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Pass what a pattern matches, behind blanks."""
        self._skip()
        if match := pattern.match(self._source, self._at):
            self._at = match.end()
        return match

    def _expect(self, *words: str) -> str:
        """Pass one of these words."""
        self._skip()
        for word in words:
            end = self._at + len(word)
            is_whole = not word.isalpha() or self._source[end : end + 1] in _END_CHARACTERS
            if is_whole and self._source.startswith(word, self._at):
                self._at = end
                return word
        raise _UnparsedError

    def _newlines(self) -> bool:
        """Pass line ends with the here-documents behind them; return whether there was one."""
        begun = False
        self._skip()
        while self._source.startswith("\n", self._at):
            begun = True
            self._at += 1
            for redirect, delimiter in self._heredocs:
                force_setattr(redirect, "target", self._heredoc(redirect, delimiter))
            self._heredocs.clear()
            self._skip()
        return begun

    def _heredoc(self, redirect: s.Redirect, delimiter: str) -> s.Word:
        """Pass the body of a here-document, and the line that ends it."""
        lines: list[str] = []
        while self._at < len(self._source):
            end = self._source.find("\n", self._at)
            end = len(self._source) if end < 0 else end
            line = self._source[self._at : end]
            self._at = min(end + 1, len(self._source))
            line = line.lstrip("\t") if redirect.operator == "<<-" else line
            if line == delimiter:
                body = "".join(f"{each}\n" for each in lines)
                plain = (s.Text(body, quoted=True),)
                return s.Word(_Parser(body, self._nesting).body() if redirect.expands else plain, body)
            lines.append(line)
        raise _UnparsedError

    def _enter(self) -> None:
        self._nesting += 1
        if self._nesting > _MAX_NESTING:
            raise _UnparsedError

    # ------------------------------------------------------------ statements

    def _script(self) -> s.Script:
        """Return the statements up to what closes them."""
        self._enter()
        items: list[s.Item] = []
        self._newlines()
        while not _CLOSING.match(self._source, self._at):
            node = self._and_or()
            separator = self._take(_SEPARATOR)
            items.append(s.Item(node, background=separator is not None and separator[0] == "&"))
            if not self._newlines() and separator is None:
                break
        self._nesting -= 1
        return s.Script(tuple(items))

    def _and_or(self) -> s.Node:
        node = self._pipeline()
        number = 0
        while operator := self._take(_LOGICAL):
            self._newlines()
            node = s.AndOr(node, cast("Literal['&&', '||']", operator[0]), self._pipeline())
            number += 1
            if number > _MAX_NESTING:
                raise _UnparsedError
        return node

    def _pipeline(self) -> s.Node:
        before = self._take(_BEFORE_PIPELINE)
        parts, stderr = [self._command()], []
        while pipe := self._take(_PIPE):
            stderr.append(pipe[0] == "|&")
            self._newlines()
            parts.append(self._command())
        node = parts[0] if len(parts) == 1 else s.Pipeline(tuple(parts), tuple(stderr))
        return s.Not(node) if before and before[1] else node

    def _command(self) -> s.Node:
        self._skip()
        if _CLOSING.match(self._source, self._at):
            raise _UnparsedError
        if opening := _OPENING.match(self._source, self._at):
            self._at = opening.end()
            node = self._compound(opening[0])
            redirects = []
            while redirect := self._redirect():
                redirects.append(redirect)
            return s.Compound(node, tuple(redirects)) if redirects else node
        if function := self._take(_FUNCTION):
            self._newlines()
            if not _OPENING.match(self._source, self._at):
                raise _UnparsedError
            return s.Function(function[1] or function[2], self._command())
        return self._simple()

    # ------------------------------------------------------------ compound commands

    def _compound(self, keyword: str) -> s.Node:
        """Return the compound command behind its first word."""
        match keyword:
            case "if":
                return self._if()
            case "while" | "until":
                condition = self._script()
                self._expect("do")
                body = self._script()
                self._expect("done")
                return s.Unsupported(s.Script(condition.items + body.items))
            case "for" | "select":
                return self._for(keyword)
            case "case":
                return self._case()
            case "{":
                group = s.Group(self._script())
                self._expect("}")
                return group
        self._at -= 1
        if self._take(_ARITHMETIC):
            return s.Unsupported()
        self._at += 1
        group = s.Group(self._script(), subshell=True)
        self._expect(")")
        return group

    def _if(self) -> s.Node:
        branches = []
        otherwise = None
        keyword = "if"
        while keyword in ("if", "elif"):
            condition = self._script()
            self._expect("then")
            branches.append((condition, self._script()))
            keyword = self._expect("elif", "else", "fi")
        if keyword == "else":
            otherwise = self._script()
            self._expect("fi")
        return s.If(tuple(branches), otherwise)

    def _for(self, keyword: str) -> s.Node:
        name = None if self._take(_ARITHMETIC) else self._take(_NAME) or self._expect("a name")
        self._newlines()
        words: list[s.Word] | None = None
        if name and self._take(_IN):
            words = self._words()
        self._take(_SEPARATOR)
        self._newlines()
        self._expect("do")
        body = self._script()
        self._expect("done")
        if not isinstance(name, re.Match) or keyword == "select":
            return s.Unsupported(body, tuple(words or ()))
        return s.For(name[0], None if words is None else tuple(words), body)

    def _case(self) -> s.Node:
        self._skip()
        word = self._word()
        self._newlines()
        self._expect("in")
        self._newlines()
        items: list[s.Item] = []
        while not self._source.startswith("esac", self._at):
            if self._source.startswith("(", self._at):
                self._at += 1
            self._words("|")
            self._expect(")")
            items += self._script().items
            if self._source.startswith((";;", ";&"), self._at):
                self._at += 3 if self._source.startswith(";;&", self._at) else 2
            elif not self._source.startswith("esac", self._at):
                raise _UnparsedError
            self._newlines()
        self._at += len("esac")
        return s.Unsupported(s.Script(tuple(items)), (word,) if word else ())

    # ------------------------------------------------------------ simple commands

    def _simple(self) -> s.Node:
        words: list[s.Word] = []
        assignments: list[s.Assignment] = []
        redirects: list[s.Redirect] = []
        while True:
            if redirect := self._redirect():
                redirects.append(redirect)
            elif assignment := self._assignment(words):
                assignments.append(assignment)
            elif word := self._word():
                words.append(word)
                if len(words) == 1 and word.raw == "[[":
                    words += self._test()
            else:
                break
        if not (words or assignments or redirects):
            raise _UnparsedError
        return s.Simple(tuple(words), tuple(assignments), tuple(redirects))

    def _redirect(self) -> s.Redirect | None:
        match = self._take(_REDIRECT)
        if match is None:
            if _NAMED_DESCRIPTOR.match(self._source, self._at):
                raise _UnparsedError
            return None
        self._skip()
        target = self._word()
        if target is None:
            raise _UnparsedError
        fd = int(match[1]) if match[1] else None
        if match[2] not in ("<<", "<<-"):
            return s.Redirect(match[2], fd, target)
        expands = not any(mark in target.raw for mark in "'\"\\")
        redirect = s.Redirect(match[2], fd, None, expands)
        self._heredocs.append((redirect, target.text))
        return redirect

    def _assignment(self, words: list[s.Word]) -> s.Assignment | None:
        """Return the assignment that is next, if one may be: before a command, or of an array behind
        `declare`."""
        match = _ASSIGNMENT.match(self._source, self._at)
        if match is None:
            return None
        is_array = self._source.startswith("(", match.end())
        if words and not (is_array and words[0].raw in _DECLARING):
            return None
        self._at = match.end()
        name, index, append = match[1], match[2], bool(match[3])
        if is_array:
            self._at += 1
            elements = []
            self._newlines()
            while word := self._word():
                elements.append(word)
                self._newlines()
            self._expect(")")
            return s.Assignment(name, None, append, tuple(elements))
        value = self._word() or s.Word((), "")
        if index:
            return s.Assignment(name, None, append, (s.Word((), index[1:]), value))
        return s.Assignment(name, value, append)

    def _test(self) -> list[s.Word]:
        """Return the words of `[[ … ]]` behind the first."""
        words: list[s.Word] = []
        while not words or words[-1].raw != "]]":
            self._newlines()
            is_pattern = bool(words) and words[-1].raw in _MATCHING
            if not is_pattern and (operator := self._take(_TEST_OPERATOR)):
                words.append(s.Word((s.Text(operator[0], quoted=False),), operator[0]))
            elif word := self._word(_PATTERN if is_pattern else _UNQUOTED):
                words.append(word)
            else:
                raise _UnparsedError
        return words

    # ------------------------------------------------------------ words

    def _words(self, separator: str = "") -> list[s.Word]:
        """Return words up to anything else."""
        words = []
        self._skip()
        while word := self._word():
            words.append(word)
            self._skip()
            if separator and self._source.startswith(separator, self._at):
                self._at += 1
                self._skip()
        return words

    def _word(self, mode: _Mode = _UNQUOTED) -> s.Word | None:
        start = self._at
        pieces = self._pieces(mode)
        return s.Word(tuple(pieces), self._source[start : self._at]) if self._at > start else None

    def _pieces(self, mode: _Mode) -> list[s.Piece]:
        self._enter()
        found: list[s.Piece] = []
        source = self._source
        while self._at < len(source):
            if match := mode.text.match(source, self._at):
                self._at = match.end()
                _add(found, match[0], quoted=mode.quoted)
                continue
            match source[self._at]:
                case "\\":
                    self._escape(found, mode)
                case "$" | "`":
                    self._expansion(found, quoted=mode.quoted)
                case "'" if not mode.quoted and (raw := _RAW.match(source, self._at)):
                    self._at = raw.end()
                    found.append(s.Text(raw[1], quoted=True))
                case '"' if mode is not _DOUBLE:
                    self._at += 1
                    found += self._pieces(_DOUBLE) or [s.Text("", quoted=True)]
                    if source[self._at : self._at + 1] != '"':
                        raise _UnparsedError
                    self._at += 1
                case "<" | ">" if mode is _UNQUOTED and source.startswith("(", self._at + 1):
                    start = self._at
                    script = self._inside(2)
                    found.append(s.Substitution(script, quoted=False, raw=source[start : self._at]))
                case "'":
                    raise _UnparsedError
                case _:
                    break
        self._nesting -= 1
        return found

    def _escape(self, found: list[s.Piece], mode: _Mode) -> None:
        """Pass a backslash and what it makes literal; before a line end it is nothing."""
        character = self._source[self._at + 1 : self._at + 2]
        if not character:
            raise _UnparsedError
        is_literal = not mode.escaped or character in mode.escaped
        self._at += 2 if is_literal or character == "\n" else 1
        if character != "\n":
            _add(found, character if is_literal else "\\", quoted=True)

    def _inside(self, opening: int) -> s.Script:
        """Return the script between brackets.

        Args:
            opening: characters of the first bracket.
        """
        self._at += opening
        script = self._script()
        self._expect(")")
        return script

    def _expansion(self, found: list[s.Piece], *, quoted: bool) -> None:
        source, start = self._source, self._at
        if source.startswith("$((", start) and (arithmetic := _ARITHMETIC.match(source, start)):
            self._at = arithmetic.end()
            found.append(s.Opaque(arithmetic[0], quoted))
        elif source.startswith("$(", start):
            script = self._inside(2)
            found.append(s.Substitution(script, quoted, source[start : self._at]))
        elif source.startswith("${", start):
            found.append(self._parameter(quoted=quoted))
        elif name := _EXPANSION.match(source, start):
            self._at = name.end()
            found.append(s.Parameter(name[1], quoted, raw=name[0]))
        elif source[start] == "`":
            if (inner := _BACKTICKS.match(source, start)) is None:
                raise _UnparsedError
            self._at = inner.end()
            is_plain = "\\" not in inner[1]
            script = _Parser(inner[1], self._nesting).whole() if is_plain else s.Script(())
            found.append(s.Substitution(script, quoted, inner[0]) if is_plain else s.Opaque(inner[0], quoted))
        elif not quoted and (escaped := _ESCAPED.match(source, start)):
            self._at = escaped.end()
            found.append(s.Opaque(escaped[0], quoted=False))
        elif not quoted and source[start + 1 : start + 2] in ('"', "'", "["):
            raise _UnparsedError  # $"…" is translated by bash and kept by other shells
        else:
            self._at += 1
            _add(found, "$", quoted=quoted)

    def _parameter(self, *, quoted: bool) -> s.Parameter:
        start = self._at
        if (match := _BRACED.match(self._source, start)) is None:
            raise _UnparsedError
        self._at = begin = match.end()
        pieces = self._pieces(_QUOTED_ARGUMENT if quoted else _ARGUMENT)
        written = self._source[begin : self._at]
        operator = match[4]
        if self._source[self._at : self._at + 1] != "}" or (written and not operator):
            raise _UnparsedError
        self._at += 1
        is_known = operator and not (quoted and "'" in written)  # quotes inside quotes: shells differ
        return s.Parameter(
            name=match[2],
            quoted=quoted,
            prefix=match[1],
            index=match[3],
            operator=operator,
            argument=s.Word(tuple(pieces), written) if is_known else None,
            raw=self._source[start : self._at],
        )


def _add(pieces: list[s.Piece], text: str, *, quoted: bool) -> None:
    """Add text, to the piece before it if that is alike."""
    if pieces and isinstance(last := pieces[-1], s.Text) and last.quoted == quoted:
        pieces[-1] = s.Text(last.text + text, quoted)
    else:
        pieces.append(s.Text(text, quoted))
