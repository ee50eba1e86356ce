"""Count personification in docstrings: `python -m tests.language_report [FOLDER ...]`. A report, not a gate.

Words such as "who" and "tells" hide which operation is meant: emit, parse, record, display or infer.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
PERSONAL: Final = frozenset(
    (
        "who",
        "whom",
        "whose",
        "nobody",
        "somebody",
        "told",
        "tells",
        "says",
        "asks",
        "heard",
        "whoever",
        "anew",
    )
)
_MAX_FILES: Final = 15


def docstrings(path: Path) -> Iterator[str]:
    """Yield the docstrings of a module, with those of its constants and attributes."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        match node:
            case ast.Expr(value=ast.Constant(value=str() as text)):
                yield text


def words(text: str) -> list[str]:
    """Return the words of a docstring in lower case, without what is quoted as code."""
    return re.findall(r"[a-z']+", re.sub(r"`[^`]*`", " ", text).lower())


def per_thousand(found: int, total: int) -> str:
    """Return a rate as text."""
    return f"{1_000 * found / total:5.1f}" if total else "    -"


def main(folders: list[str]) -> None:
    """Print the rates of packages, and of the files with the most words."""
    totals: Counter[str] = Counter()
    personal: Counter[str] = Counter()
    files: dict[str, list[str]] = {}
    for path in sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py")):
        name = path.relative_to(ROOT)
        package = "/".join(name.parts[:2]) if len(name.parts) > 2 else name.parts[0]
        text = [word for docstring in docstrings(path) for word in words(docstring)]
        found = [word for word in text if word in PERSONAL]
        totals[package] += len(text)
        personal[package] += len(found)
        files[str(name)] = found
    print("per 1,000 docstring words")
    for package in sorted(totals, key=lambda name: -personal[name]):
        print(f"{per_thousand(personal[package], totals[package])}  {personal[package]:4}  {package}")
    rate = per_thousand(personal.total(), totals.total())
    print(f"{rate}  {personal.total():4}  all {totals.total():,} words")
    print("\nfiles")
    for file in sorted(files, key=lambda name: -len(files[name]))[:_MAX_FILES]:
        if files[file]:
            print(f"{len(files[file]):5}  {file}: {', '.join(sorted(set(files[file])))}")


if __name__ == "__main__":
    main(sys.argv[1:] or ["agentdash"])
