"""Print sizes and imports of the package: `python -m tests.structure_report`. A report, not a gate."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from statistics import median, quantiles
from typing import Final

PACKAGE: Final = Path(__file__).parents[1] / "agentdash"


def room(module: str, depth: int) -> str:
    """Return the module or package, at most `depth` levels below `agentdash`: `engine`, `engine/judge`."""
    return "/".join(module.split(".")[1 : depth + 1])


def module_of(path: Path) -> str:
    """Return the dotted name of a file."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(tree: ast.Module) -> Iterator[str]:
    """Yield the modules of agentdash that a module imports, also within functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("agentdash"):
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                path = PACKAGE.parent / inner.replace(".", "/")
                yield inner if path.is_dir() or path.with_suffix(".py").exists() else str(node.module)


def arrows_between(trees: dict[Path, ast.Module], depth: int) -> dict[str, set[str]]:
    """Return for each room the other rooms that it imports."""
    arrows: dict[str, set[str]] = {}
    for path, tree in trees.items():
        here = room(module_of(path), depth)
        imported = {room(name, depth) for name in imports(tree)}
        arrows.setdefault(here, set()).update(imported - {here, ""})
    return arrows


def circle(arrows: dict[str, set[str]]) -> str:
    """Return one circle of imports, if there is any."""
    try:
        TopologicalSorter(arrows).prepare()
    except CycleError as error:
        return f"circle: {' -> '.join(error.args[1])}"
    return "no circle, so none leads back up"


def main() -> None:
    """Print the figures."""
    trees = {path: ast.parse(path.read_text("utf-8")) for path in sorted(PACKAGE.rglob("*.py"))}
    lines = {path: len(path.read_text("utf-8").splitlines()) for path in trees}
    longest = max(lines, key=lambda path: lines[path])
    print(
        f"files      {len(lines)}, {sum(lines.values()):,} lines; median {median(lines.values()):.0f}, "
        f"max {lines[longest]} ({longest.relative_to(PACKAGE)})"
    )
    functions = [
        ((node.end_lineno or 0) - node.lineno + 1, f"{path.relative_to(PACKAGE)}:{node.name}")
        for path, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    sizes = [size for size, _ in functions]
    print(
        f"functions  {len(sizes):,}; median {median(sizes):.0f} lines, p95 {quantiles(sizes, n=20)[-1]:.0f}, "
        f"max {max(functions)[0]} ({max(functions)[1]}); over 40: {sum(size > 40 for size in sizes)}"
    )
    for depth in (1, 2):
        arrows = arrows_between(trees, depth)
        count = sum(map(len, arrows.values()))
        print(f"imports    depth {depth}: {len(arrows)} rooms, {count} arrows, {circle(arrows)}")


if __name__ == "__main__":
    main()
