"""Texts and regular expressions in programs of Perl."""

from __future__ import annotations

from typing import Any, Final

from tree_sitter import Node

from agentdash.engine.detect.env_output.regexes import is_quick
from agentdash.engine.detect.env_output.scripting.grammars import text_of
from agentdash.engine.detect.env_output.scripting.perl.library import Library
from agentdash.engine.detect.env_output.scripting.values import Pattern, Written
from agentdash.engine.detect.env_output.selections import Lines, Selection
from agentdash.engine.detect.env_output.unknown import UnknownError

_ENVIRONMENT: Final = "%ENV"
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "e": "\x1b", "x00": "\0", "000": "\0"}


class PerlTexts(Library):
    """Texts and regular expressions in programs of Perl."""

    def _scalar(self, name: str) -> Any:
        name = name.replace("{", "").replace("}", "")
        if name in self._names:
            return self._names[name]
        if name in ("$$", "$0", "$]", "$<", "$>", "$^V", "$^O"):
            return self.quiet()
        return self.special(name)

    def _named_list(self, name: str) -> Any:
        if name.startswith(("@$", "@{$")):  # what a reference stands for
            return self.list_of(self._scalar(name[1:]))
        if name not in self._names:
            return self._names.setdefault(name, [])
        return self._names[name]

    def _mapping(self, name: str) -> Any:
        if name == _ENVIRONMENT:
            return Selection((True, True))
        if not name.startswith("%"):
            raise UnknownError
        return self._names.setdefault(name, {})

    def _flat(self, groups: list[Any]) -> Any:
        if len(groups) == 1:
            return groups[0]
        found: list[Any] = []
        for group in groups:
            if isinstance(group, list):
                found += group
            elif isinstance(group, Written | Lines | Selection):
                found.append(group)
            else:
                raise UnknownError
        return found

    # ------------------------------------------------------------ texts

    def _string(self, node: Node) -> str:
        source, start, stop = _between(node)
        content = node.child_by_field_name("content")
        out, at = "", start
        is_plain = node.type == "string_literal"
        for child in [] if content is None else content.children:
            if not child.is_named or child.type == "not-interpolated":
                continue
            out += self._literal(source[at : child.start_byte - node.start_byte].decode(), is_plain=is_plain)
            if child.type == "escaped_delimiter":
                out += text_of(child)[1:]
            elif child.type == "escape_sequence":
                out += self._escaped(text_of(child)[1:], is_plain=is_plain)
            elif child.type == "array":
                out += self.text(self.joined(self._named_list(text_of(child)), " "))
            else:
                out += self.text(self.value(child))
            at = child.end_byte - node.start_byte
        return out + self._literal(source[at:stop].decode(), is_plain=is_plain)

    def _literal(self, text: str, *, is_plain: bool) -> str:
        if not is_plain and "\\" in text:
            raise UnknownError
        return text

    def _escaped(self, letter: str, *, is_plain: bool) -> str:
        if is_plain:
            return letter if letter in "\\'" else "\\" + letter
        if letter in _ESCAPES:
            return _ESCAPES[letter]
        if len(letter) == 1 and not letter.isalnum():
            return letter
        raise UnknownError

    def _regex(self, node: Node) -> Pattern:
        flags = node.child_by_field_name("modifiers")
        whole, start, stop = _between(node)
        source = whole[start:stop].decode()
        content = node.child_by_field_name("content")
        if any(child.type in ("scalar", "array") for child in (content.children if content else [])):
            raise UnknownError
        return self.pattern(source.replace("\\/", "/"), "" if flags is None else text_of(flags))

    def _matched(self, pattern: Pattern, text: Any) -> bool:
        if isinstance(text, str) and text.endswith("\n"):
            text = text.removesuffix("\n")  # `$` matches before it
        if not isinstance(text, str) or not self.matches(pattern, text):
            if text is None:
                return False
            if not isinstance(text, str):
                raise UnknownError
            return False
        if pattern.compiled.groups:
            for number, group in enumerate(self.groups(pattern, text)):
                self._names[f"${number}"] = group
        return True

    def _substituted(self, node: Node, name: str) -> Any:
        pattern = self._regex(node)
        replacement = next((child for child in node.children if child.type == "replacement"), None)
        text = self._names.get(name)
        other = "" if replacement is None else _replacement(node, replacement)
        if isinstance(text, Written) and pattern.compiled.pattern in ("\\0", "\\x00") and other == "\\n":
            self._names[name] = self.replaced(text, "\0", "\n")
            return 1
        if not isinstance(text, str) or "$" in other or "\\" in other.replace("\\t", ""):
            raise UnknownError
        flags = node.child_by_field_name("modifiers")
        if pattern.compiled.pattern not in ("=", "^", "\\0", "\\x00"):
            self.plain(text)
        if not is_quick(pattern.compiled, text):
            raise UnknownError
        is_all = flags is not None and "g" in text_of(flags)
        self._names[name] = pattern.compiled.sub(
            lambda _: other.replace("\\t", "\t"), text, count=0 if is_all else 1
        )
        return 1


def _between(node: Node) -> tuple[bytes, int, int]:
    """Return the source of a literal, and where the text within its delimiters begins and ends.

    The grammar leaves blanks at its beginning out of the text.
    """
    whole = node.text or b""
    signs = [
        child for child in node.children if not child.is_named and child.type not in ("qq", "q", "m", "s")
    ]
    signs = [sign for sign in signs if sign.type not in ("qx", "qr", "tr", "y")]
    if len(signs) < 2:
        raise UnknownError
    return whole, signs[0].end_byte - node.start_byte, signs[1].start_byte - node.start_byte


def _replacement(node: Node, replacement: Node) -> str:
    signs = [
        child for child in node.children if not child.is_named and child.start_byte < replacement.end_byte
    ]
    end = next(child for child in node.children if child.start_byte >= replacement.end_byte)
    whole = node.text or b""
    return whole[signs[-1].end_byte - node.start_byte : end.start_byte - node.start_byte].decode()
