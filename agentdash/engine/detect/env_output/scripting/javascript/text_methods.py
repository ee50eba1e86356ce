"""Methods of texts in programs of JavaScript."""

from __future__ import annotations

import re
from typing import Any, Final

from agentdash.engine.detect.env_output.scripting.javascript.output import Output
from agentdash.engine.detect.env_output.scripting.javascript.values import (
    NULL,
)
from agentdash.engine.detect.env_output.scripting.values import (
    Count,
    Pattern,
    Written,
)
from agentdash.engine.detect.env_output.unknown import UnknownError

_WITH_REST: Final = re.compile(r"(?P<sign>[=:])\(\.[*]\)\$?")
"""A separator that takes the rest of the text as well, as in `/=(.*)/s`."""


class TextMethods(Output):
    """Methods of texts in programs of JavaScript."""

    def text_method(self, owner: Any, name: str, arguments: list[Any]) -> Any:
        """Run a method of a text."""
        match name, arguments:
            case "startsWith", [start]:
                return self.starts(owner, start)
            case "endsWith", [end]:
                return self.ends(owner, end)
            case "includes", [part]:
                return self.contains(owner, part)
            case "indexOf", [part]:
                return self.position(owner, part)
            case "match", [Pattern() as pattern]:
                return self.groups(pattern, owner) if self.matches(pattern, owner) else NULL
            case "padEnd" | "padStart", [int() | Count() as width, *fill]:
                return self.padded(owner, width, left=name == "padEnd", fill=fill[0] if fill else " ")
            case "toLowerCase" | "toUpperCase", []:
                return self.plain(owner).lower() if name == "toLowerCase" else self.plain(owner).upper()
            case "repeat", [int() as count] if count <= 200:
                return self.plain(owner) * count
            case "toString" | "valueOf" | "normalize", _:
                return owner
            case "trim" | "trimEnd" | "trimStart", []:
                return self.stripped(owner)
            case "split", [Pattern() as separator] if rest := _WITH_REST.fullmatch(
                separator.compiled.pattern
            ):
                return self._split_once(owner, rest["sign"], separator)
            case "split", [separator, *limit]:
                parts = self.split(owner, self._source(separator))
                return parts[: limit[0]] if limit and isinstance(parts, list) else parts
            case "replace" | "replaceAll", [part, str() as other]:
                source = self._source(part)
                if name == "replace" and not isinstance(part, Pattern) and isinstance(owner, Written):
                    raise UnknownError  # the first place alone
                return self.replaced(owner, source, other)
            case "charAt" | "at", [0]:
                return self.cut(owner, 0, 1)
            case "slice" | "substring", [int() as start, *stop]:
                return self.cut(owner, start, stop[0] - start if stop else None)
            case "localeCompare", [other, *_]:
                one, another = self.plain(owner).lower(), self.plain(other).lower()
                return (one > another) - (one < another)
            case "concat", values:
                return "".join(self.text(value) for value in (owner, *values))
            case _:
                raise UnknownError

    def _split_once(self, text: Any, sign: str, pattern: Pattern) -> list[str]:
        """Return what stands before a sign, all that stands behind it, and the empty text at the end."""
        first, *rest = self.split(text, sign, 2)
        if not pattern.compiled.flags & re.DOTALL and "\n" in "".join(rest):
            raise UnknownError
        return [first, *rest, ""] if rest else [first]

    def _source(self, part: Any) -> str:
        """Return a separator that is a text, or a regular expression for one."""
        source = part.compiled.pattern if isinstance(part, Pattern) else self.plain(part)
        source = {"\\0": "\0", "\\x00": "\0", "\\n": "\n", r"\r?\n": "\n"}.get(source, source)
        if isinstance(part, Pattern) and re.escape(source) != source and source not in "\0\n":
            raise UnknownError
        return source
