"""Set the version of the package, and date the changelog: `python .ci/set_version.py 0.2.0`."""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parents[1]


def replace_once(path: Path, pattern: str, replacement: str) -> None:
    """Replace the only match of `pattern` (multi-line) in a file.

    Raises:
        SystemExit: there is none, or more than one.
    """
    text, count = re.subn(pattern, replacement, path.read_text("utf-8"), flags=re.MULTILINE)
    if count != 1:
        raise SystemExit(f"{path.name}: {count} matches of {pattern!r}, expected one")
    path.write_text(text, "utf-8")


def main(version: str) -> None:
    """Set the version.

    Raises:
        SystemExit: the version is invalid, or a file has no place for it.
    """
    if re.fullmatch(r"\d+\.\d+\.\d+", version) is None:
        raise SystemExit(f"invalid version {version!r}: use MAJOR.MINOR.PATCH")
    today = datetime.now(UTC).date().isoformat()
    replace_once(ROOT / "CHANGELOG.md", rf"^## {re.escape(version)}, unreleased$", f"## {version}, {today}")
    replace_once(ROOT / "agentdash" / "__init__.py", r'^__version__ = ".*"$', f'__version__ = "{version}"')


if __name__ == "__main__":
    main(*sys.argv[1:])
