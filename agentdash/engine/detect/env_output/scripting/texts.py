"""Texts of which a part may not be known: searching, cutting and formatting them."""

from __future__ import annotations

import re
from typing import Any, Final

from agentdash.engine.detect.env_output.dumps import FLAGS, Dump
from agentdash.engine.detect.env_output.patterns import ANY, Choice, Hole, Kind, Parts, Trimmed
from agentdash.engine.detect.env_output.placeholders import has_placeholder, with_placeholders
from agentdash.engine.detect.env_output.regexes import compiled, is_quick
from agentdash.engine.detect.env_output.scripting.collections import Collections
from agentdash.engine.detect.env_output.scripting.regexes import translated
from agentdash.engine.detect.env_output.scripting.values import Count, Pattern, Written
from agentdash.engine.detect.env_output.selections import MARK, PAD, Lines
from agentdash.engine.detect.env_output.unknown import UnknownError

_SPEC: Final = re.compile(r"%(?P<flags>[-0+ ]*)(?P<width>\d{0,3})(?:\.\d+)?(?P<kind>.)", re.DOTALL)
_SAMPLES: Final = ("1", "a b", "Q", "")
"""Values on which a search is tried in a text with an unknown value."""
_MAX_WIDTH: Final = 120
_BEGINNING: Final = re.compile(r"(?:\^|\\A)(?P<text>\w+)(?P<less>[?*{])?")
_GROUP: Final = re.compile(r"\([^()]*\)")


def _begins_otherwise(pattern: re.Pattern[str], known: str) -> bool:
    """Return whether a text does not match since it begins with another text than the pattern."""
    source = pattern.pattern
    match = _BEGINNING.match(source)
    if match is None or (pattern.flags & re.MULTILINE and "\n" in known) or "|" in _GROUP.sub("", source):
        return False
    text = match["text"][:-1] if match["less"] else match["text"]
    if pattern.flags & re.IGNORECASE:
        text, known = text.lower(), known.lower()
    return not known.startswith(text) and not text.startswith(known)


class Texts(Collections):
    """Texts of which a part may not be known."""

    regex_dialect = ""
    """`python`, `javascript`, or `ruby`, in which `^` and `$` are those of lines; empty for Perl's."""

    def starts(self, text: Any, prefix: Any) -> bool:
        """Return whether a text begins with another one."""
        start = self.plain(prefix)
        known = self._known(text)
        if known != text and len(known) < len(start) and start.startswith(known):
            raise UnknownError
        return known.startswith(start)

    def ends(self, text: Any, suffix: Any) -> bool:
        """Return whether a text ends with another one."""
        return self.plain(text).endswith(self.plain(suffix))

    def contains(self, text: Any, part: Any) -> bool:
        """Return whether a text holds another one."""
        if self.plain(part) in self._known(text):
            return True
        if self._present and self._present not in FLAGS:  # tried with a value that names the flags besides
            return self.plain(part) in text.replace(MARK, "")
        return str(part) in self.plain(self.actual(text))

    def position(self, text: Any, part: Any) -> int:
        """Return where a text holds another one; -1 where it does not."""
        at = self._known(text).find(self.plain(part))
        if at < 0 and self._present and self._present not in FLAGS:
            return text.replace(MARK, "").find(part)  # type: ignore[no-any-return]
        return at if at >= 0 else self.plain(self.actual(text)).find(str(part))

    def _known(self, text: Any) -> str:
        """Return what is known of the beginning of a text."""
        if not isinstance(text, str):
            raise UnknownError
        return text.partition("Zhole")[0]

    def pattern(self, source: str, flags: str = "") -> Pattern:
        """Return a regular expression."""
        if set(flags) - set("iomsug"):
            raise UnknownError
        is_ruby = self.regex_dialect == "ruby"
        options = re.MULTILINE if is_ruby or "m" in flags else 0
        options |= re.DOTALL if ("m" if is_ruby else "s") in flags else 0
        own: str | None = source
        if self.regex_dialect != "python":
            is_very_end = self.regex_dialect == "javascript" and "m" not in flags
            own = translated(source, ends_at_line_break=not is_very_end)
        found = None if own is None else compiled(own, "perl", ignores_case="i" in flags, options=options)
        if found is None:
            raise UnknownError
        return Pattern(found)

    def matches(self, pattern: Pattern, text: Any) -> bool:
        """Return whether a text matches a regular expression."""
        if not isinstance(text, str):
            raise UnknownError
        if not is_quick(pattern.compiled, text):
            raise UnknownError
        search = pattern.compiled.search
        if not has_placeholder(text):
            return search(text) is not None
        samples = {search(re.sub(r"Zhole\d+Z", sample, text)) is not None for sample in _SAMPLES}
        source = pattern.compiled.pattern
        if _begins_otherwise(pattern.compiled, self._known(text)):
            return False
        if samples == {False} and self.kind_of(text) not in (None, Kind.OTHER):  # it can be any text
            return self.decide()
        if len(samples) > 1 or (samples == {False} and not re.fullmatch(r"\^?\w+=?", source)):
            raise UnknownError
        return samples.pop()

    def groups(self, pattern: Pattern, text: Any) -> list[str]:
        """Return the whole match and its groups in a text; they keep the unknown value whole."""
        if not isinstance(text, str):
            raise UnknownError
        found = pattern.compiled.search(text) if is_quick(pattern.compiled, text) else None
        if found is None:
            raise UnknownError
        parts = [found[0], *(group or "" for group in found.groups())]
        if not has_placeholder(text):
            return parts
        if any(re.search(r"Zhole\d*$|^\d*Z(?!hole)", part) for part in parts):
            raise UnknownError
        for sample in _SAMPLES[:3]:
            other = pattern.compiled.search(re.sub(r"Zhole\d+Z", sample, text))
            expected = [re.sub(r"Zhole\d+Z", sample, part) for part in parts]
            if other is None or [other[0], *(group or "" for group in other.groups())] != expected:
                raise UnknownError
        return parts

    def cut(self, text: Any, start: int, length: int | None = None) -> str:
        """Return a part of a text."""
        known = self._known(text)
        if start < 0 or (length is not None and length < 0):
            raise UnknownError
        stop = None if length is None else start + length
        if known != text and (start > len(known) or (stop is not None and stop > len(known))):
            if stop is None or start > len(known):
                raise UnknownError
            return str(known[start:]) + self.word(ANY)  # a part of a value
        return str(text[start:stop])

    def split(self, text: Any, separator: Any, limit: int = 0) -> Any:
        """Return the parts of a text between separators."""
        between = self.plain(separator)
        if isinstance(text, Written):
            return self.entries_of(text, between)
        if not isinstance(text, str) or between == "" or (has_placeholder(text) and between != "="):
            raise UnknownError  # no value has an equals sign in it that Codex or a reader of one word gave
        return text.split(between, limit - 1) if limit > 0 else text.split(between)

    def stripped(self, text: Any) -> Any:
        """Return a text without the blanks or line breaks around it."""
        match text:
            case str():
                return text.strip()  # a value is no blank
            case Written(parts=parts) if (known := with_placeholders(parts, self._holes)) is not None:
                return known.strip()
            case Written(parts=(Dump(),) as parts):
                return Written((Trimmed(parts),))
            case Written(parts=parts):
                return Written((Choice((parts, (Trimmed(parts),))),))
            case _:
                raise UnknownError

    def chomped(self, text: Any) -> Any:
        """Return a text without the line break at its end."""
        return text.removesuffix("\n") if isinstance(text, str) else self.stripped(text)

    def replaced(self, text: Any, part: Any, other: Any) -> Any:
        """Return a text with another text in the place of each that it holds."""
        old, new = self.plain(part), self.plain(other)
        if isinstance(text, Written):
            return self._converted(text.parts, old, new)
        # a value that is not known stays so: with another sign in it, it is none that a flag has
        is_sign = len(old) == 1 and not old.isalnum() and new != "" and not new.isalnum() and "\n" not in new
        if isinstance(text, str) and has_placeholder(text) and old != "=" and not is_sign:
            raise UnknownError
        return str(text).replace(old, new)

    def _converted(self, parts: Parts, old: str, new: str) -> Written:
        """Return a list of entries that end in NUL as lines."""
        match parts:
            case (Dump(nul=True) as dump,) if old == "\0" and new == "\n":
                return Written((Dump(shown=dump.shown, style=dump.style, some=dump.some, whole=dump.whole),))
            case _:
                raise UnknownError

    # ------------------------------------------------------------ formats

    def padded(self, text: str, width: int | Count, *, left: bool = True, fill: str = " ") -> str:
        """Return a text with blanks behind it (`left`) or before it, up to a width."""
        if isinstance(width, Count) and fill == " ":
            self._holes[PAD] = Choice(((), (Hole(Kind.BLANKS),)))
            return text + PAD if left else PAD + text
        if isinstance(width, Count) or width > _MAX_WIDTH:
            raise UnknownError
        if not has_placeholder(text):
            return text.ljust(width, fill) if left else text.rjust(width, fill)
        if width == 0 or (text == MARK and left and fill == " "):
            return text
        if text == MARK or fill == "":
            raise UnknownError
        blanks = self.word(Choice(tuple((fill * count,) for count in range(width + 1))))
        return text + blanks if left else blanks + text

    def formatted(self, template: Any, values: list[Any]) -> str:
        """Return what `sprintf` gives."""
        rest = list(values)

        def spelled(match: re.Match[str]) -> str:
            if match["kind"] == "%":
                return "%"
            if not rest:
                raise UnknownError
            return self._field(match, rest.pop(0))

        text = _SPEC.sub(spelled, self.plain(template))
        if rest:
            raise UnknownError
        return text

    def _field(self, match: re.Match[str], value: Any) -> str:
        flags, width = match["flags"], int(match["width"] or 0)
        match match["kind"]:
            case "s":
                text = self.text(value)
            case "d" | "i" if isinstance(value, int):
                text = str(int(value))
            case "d" | "i" if isinstance(value, str) and value.isdecimal():
                text = str(int(value))
            case "d" | "i" if width == 0 and not isinstance(value, str):
                text = self.text(value)
            case "q" if isinstance(value, str):
                text = f'"{value}"'
            case _:
                raise UnknownError
        return self.padded(text, width, left="-" in flags, fill="0" if "0" in flags else " ")

    def lines_text(self, value: Any) -> Any:
        """Return lines about variables as one text."""
        return Lines(value.style, value.kept, is_text=True) if isinstance(value, Lines) else value

    def first_line(self, text: Written) -> str | None:
        """Return the first line of what a program has written; None where it wrote nothing."""
        parts = text.parts
        while parts and isinstance(parts[0], Choice) and len(parts) == 1:
            *options, last = parts[0].options
            parts = next((option for option in options if self.decide()), last)
        known = with_placeholders(parts, self._holes)
        if known is None:
            raise UnknownError
        return known.partition("\n")[0] if known else None

    def number_word(self) -> str:
        """Return a word for a number that is not known."""
        return self.word(Hole(Kind.DIGITS))
