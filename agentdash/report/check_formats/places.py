"""The place of a rollout in formats that CI systems show beside files of a repository."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote


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
