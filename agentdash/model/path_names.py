"""Names of directories and files that look like tokens: `/srv/pypi-server-mirror`, `/tmp/lab-ghr_1a2b`.

They are no secrets, and have to be known exactly: logs, settings and policies are found by paths.
"""

from __future__ import annotations

import re
import string
from typing import Final

_ROOTS: Final = (
    r"home|root|tmp|var|srv|opt|usr|etc|run|mnt|media|dev|proc|Users|private|Volumes|Library|Applications"
    r"|data|scratch|work|workdir|workspaces?|projects?|repos?|code|src|app|builds?"
)
"""Directories that the paths of files begin with. Those of requests begin with others (`/services/`,
`/v1/`)."""
_CHARACTERS: Final = f"{string.ascii_letters}{string.digits}_.+~/-"
_BEGINNING: Final = re.compile(rf"(?:~\w*|/(?:{_ROOTS}))(?:/.*)?/[^/]*")
"""What stands before the rest of a name in a path."""
_URL_SIGNS: Final = ("@", "?", "#", "%", "&")
"""What comes before a path in an address that is none of a file."""
_MAX_CHARS: Final = 1_000
_LONG_WORD: Final = re.compile(r"[A-Za-z0-9]{16,}")
"""Longer than the random part in the names of temporary directories."""


def is_path_name(text: str, at: int, name: str) -> bool:
    """Return whether the path of a file or directory goes on with `name` at a position. A long random name is
    none: a token may have been used as one."""
    return _is_in_path(text, at) and not _is_random(name)


def _is_in_path(text: str, at: int) -> bool:
    before = text[max(0, at - _MAX_CHARS) : at]
    outside = before.rstrip(_CHARACTERS)
    path = before[len(outside) :].removeprefix("//" if outside.endswith("file:") else "")
    return not outside.endswith(_URL_SIGNS) and _BEGINNING.fullmatch(path) is not None


def _is_random(name: str) -> bool:
    return any(not word.isalpha() for word in _LONG_WORD.findall(name))
