"""The places of results: path and line of a rollout, for CI systems that show files of a repository."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from urllib.parse import quote

from msgspec.structs import replace

from agentdash.agents.codex.home import blocks
from agentdash.report.check_formats.results import Result


def path_in(base: Path, file: str) -> str:
    """Return the path of a file relative to a directory if it is below it, else the absolute path.

    Args:
        base: absolute.
        file: relative to `base`, or absolute.
    """
    path = Path(os.path.normpath(base / file))
    return path.relative_to(base).as_posix() if path.is_relative_to(base) else path.as_posix()


def uri_in(base: Path, file: str) -> str:
    """Return the URI of a file: a relative reference if it is below a directory, else a `file:` URI."""
    path = path_in(base, file)
    return f"file://{quote(path)}" if path.startswith("/") else quote(path)


def with_lines(judged: Sequence[Result]) -> list[Result]:
    """Return results with the first line of their file that has their time, where there is one.

    Compressed files have no lines that anything could show, and files of other hosts are not here.
    """
    wanted: dict[str, set[str]] = {}
    for result in judged:
        if result.at is not None and result.thread.host is None and result.thread.file.endswith(".jsonl"):
            wanted.setdefault(result.thread.file, set()).add(result.at)
    found = {file: _first_lines(Path(file), times) for file, times in wanted.items()}
    return [replace(each, line=found.get(each.thread.file, {}).get(each.at or "")) for each in judged]


def _first_lines(path: Path, times: Iterable[str]) -> dict[str, int]:
    """Return the number of the first line with each time; without those that no line has."""
    left = {time.encode() for time in times}
    stamp = re.compile(rb'"timestamp"\s*:\s*"(' + b"|".join(map(re.escape, left)) + rb')"')
    found: dict[str, int] = {}
    number, rest = 1, b""
    try:
        for block in chain(blocks(path), (b"\n",)):
            lines, newline, rest = (rest + block).rpartition(b"\n")
            for match in stamp.finditer(lines):
                if match[1] in left:
                    left.discard(match[1])
                    found[match[1].decode()] = number + lines.count(b"\n", 0, match.start())
            if not left:
                break
            number += lines.count(b"\n") + len(newline)
    except (OSError, ValueError):  # it was read before, and has gone
        return found
    return found
