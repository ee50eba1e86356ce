"""Programs in any language whose text alone proves that they print nothing of an environment."""

from __future__ import annotations

import re
from typing import Final

_WRITING: Final = re.compile(r"open\([^()]*,\s*['\"][wax]b?\+?['\"]\)")
"""A file that is opened to write it."""
_REACHING: Final = re.compile(
    r"env|ENV|/proc|open|[rR]ead|exec|system|spawn|fork|eval|__|`|qx|input|argv|ARGV|\bARGF|stdin|STDIN"
    r"|recv|request|fetch|http|url|load|global|locals|vars\(|\bdir\(|inspect|compile|getattr|phpinfo"
    r"|\bprocess\b(?!\.(?:exit|pid|cwd|version|platform|arch|uptime|getuid|stdout)\b)"
    r"|chr\(|fromCharCode|decode|unescape|fromhex|CODEX|SANDBOX|\\x|\\u",
)
"""What a program needs to get at an environment, a file, a process or a host, or to put a name together."""


def is_harmless(program: str) -> bool:
    """Return whether a program reads nothing but what stands in it, and names no flag."""
    return _REACHING.search(_WRITING.sub("", program)) is None
