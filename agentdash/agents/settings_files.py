"""Settings of worker CLIs in JSON: files, and texts in arguments and variables.

A settings file may contain anything. Only the keys of the type that it is read as are kept; others (tokens,
hooks, servers) are dropped as soon as it is parsed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, Generic, TypeVar

import msgspec

from agentdash.files import read_bytes
from agentdash.model.decoders import JsonDecoder
from agentdash.model.requested import Requested, RequestField, RequestLayer, RequestOrigin
from agentdash.model.sanitize import clean_line

_MAX_FILE_BYTES: Final = 1 << 20
_MAX_WORDS_CHARS: Final = 200
_TOKENS: Final = re.compile(
    r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/|,(?=(?:\s|//[^\n]*|/\*.*?\*/)*[}\]])', re.DOTALL
)
_T = TypeVar("_T")


class SettingsFile(msgspec.Struct, Generic[_T], frozen=True):
    """One settings file, or a text in its place."""

    layer: RequestLayer
    settings: _T
    path: str | None = None
    """None: a text in the arguments or the environment."""
    modified: float = 0.0
    text: str = ""
    problem: bool = False
    """Whether it is there and cannot be read or parsed."""

    def origin(self, field: RequestField, words: str, *keys: str) -> RequestOrigin:
        """Return where a value is set: on the line of the last of nested keys."""
        at = -1
        for key in keys:
            at = max(at, self.text.find(f'"{key}"', max(at, 0)))
        line = self.text.count("\n", 0, at) + 1 if self.path and at >= 0 else None
        text = clean_line(words, _MAX_WORDS_CHARS)
        return RequestOrigin(field=field, layer=self.layer, text=text, file=self.path, line=line)


class SettingsReader(Generic[_T]):
    """Reads the settings of one CLI. Never raises.

    Args:
        kind: the keys to keep, all with defaults.
        allows_comments: whether the CLI accepts comments and trailing commas.
    """

    def __init__(self, kind: type[_T], *, allows_comments: bool) -> None:
        self._decoder: JsonDecoder[_T] = JsonDecoder(kind)
        self._allows_comments = allows_comments

    def read(
        self, layer: RequestLayer, path: str, root: Path, *, required: bool = False
    ) -> Iterator[SettingsFile[_T]]:
        """Yield the settings in a file if it exists.

        Args:
            root: where its file system is mounted.
            required: whether a missing file is a problem.
        """
        shown, nothing = clean_line(path), self._decoder.decode("{}")
        try:
            place = root / path.lstrip("/")
            modified = place.stat().st_mtime
            text = read_bytes(place, _MAX_FILE_BYTES).decode("utf-8-sig", "replace")
        except (FileNotFoundError, NotADirectoryError):
            if required:
                yield SettingsFile(layer, nothing, shown, problem=True)
        except (OSError, ValueError):
            yield SettingsFile(layer, nothing, shown, problem=True)
        else:
            yield self.parse(layer, text, shown, modified)

    def parse(
        self, layer: RequestLayer, text: str, path: str | None = None, modified: float = 0.0
    ) -> SettingsFile[_T]:
        """Return the settings in a text; one that is blank has none."""
        plain = without_comments(text) if self._allows_comments else text
        try:
            return SettingsFile(
                layer, self._decoder.decode(plain if text.strip() else "{}"), path, modified, text
            )
        except (msgspec.DecodeError, RecursionError):
            return SettingsFile(layer, self._decoder.decode("{}"), path, modified, text, problem=True)


def options(argv: Sequence[str]) -> Sequence[str]:
    """Return the arguments of a program that may be options."""
    return argv[1 : argv.index("--")] if "--" in argv else argv[1:]


def typed(field: RequestField, words: str) -> RequestOrigin:
    """Return the origin of what an argument asks for."""
    return RequestOrigin(field=field, layer=RequestLayer.ARGV, text=clean_line(words))


def in_environment(field: RequestField, name: str, value: str) -> RequestOrigin:
    """Return the origin of what a variable asks for."""
    text = clean_line(f"{name}={value}")
    return RequestOrigin(field=field, layer=RequestLayer.ENVIRONMENT, text=text)


def dated(found: Requested, since: float, at: float, read_by: float) -> Requested:
    """Return a request with its times (unix seconds).

    Args:
        since: when it was made.
        at: now: files that were written after `read_by` are the settings as of now.
        read_by: until when what was asked has read its files.
    """
    is_newer = (found.files_written or 0.0) > read_by
    return msgspec.structs.replace(found, since=since, read_at=at if is_newer else None)


def without_comments(text: str) -> str:
    """Return JSON with comments and trailing commas as plain JSON. These become blanks: places stay."""
    return _TOKENS.sub(lambda found: found[0] if found[0].startswith('"') else _blank(found[0]), text)


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)
