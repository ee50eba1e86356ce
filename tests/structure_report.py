"""Print sizes and imports of the package, and of its tests: `python -m tests.structure_report`.

A report, not a gate; CONTRIBUTING has the figures that are to be held.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from statistics import median, quantiles
from types import FrameType
from typing import Final

from agentdash.agents.codex.rollout.reader import RolloutReader
from agentdash.engine.reduce.fleet import reduce
from agentdash.model.fleet import Fleet
from tests.unit.rollout_files import THREAD, answer, call, meta

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


def with_one_importer(trees: dict[Path, ast.Module]) -> int:
    """Return how many modules exactly one other module imports."""
    importers = Counter(name for path, tree in trees.items() for name in {*imports(tree)} - {module_of(path)})
    return sum(importers[module_of(path)] == 1 for path in trees)


def folders(lines: dict[Path, int]) -> list[tuple[str, int, int]]:
    """Return the folders of the package, each with its modules and lines, largest first."""
    modules: Counter[str] = Counter()
    totals: Counter[str] = Counter()
    for path, count in lines.items():
        folder = path.relative_to(PACKAGE).parts[0] if path.parent != PACKAGE else "(top)"
        modules[folder] += 1
        totals[folder] += count
    return [(folder, modules[folder], count) for folder, count in totals.most_common()]


def dependencies() -> int:
    """Return the number of run-time dependencies."""
    return len(tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text())["project"]["dependencies"])


def calls_for_a_line() -> int:
    """Return how many functions are called to reduce the output of an `echo` of one flag."""
    script = 'echo "flag=${CODEX_SANDBOX_NETWORK_DISABLED:-}"'
    output = "Process exited with code 0\nOutput:\n"
    other = [call("exec_command", {"cmd": 'echo "f=${CODEX_SANDBOX:-}"'}), answer(f"{output}f=seatbelt\n")]
    reduce(Fleet(), RolloutReader(THREAD).read([meta(), *other]))  # what is imported and compiled once
    reader = RolloutReader(THREAD)
    fleet = reduce(Fleet(), reader.read([meta(), call("exec_command", {"cmd": script})]))
    events = list(reader.read([answer(f"{output}flag=1\n")]))
    count = 0

    def counts(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(counts)
    reduce(fleet, events)
    sys.setprofile(None)
    return count


def print_sizes(trees: dict[Path, ast.Module], lines: dict[Path, int]) -> None:
    """Print what is to be held, and the lines of each folder."""
    tests = [path for path in (PACKAGE.parent / "tests").rglob("*") if path.is_file()]
    tests = [path for path in tests if "__pycache__" not in path.parts]
    test_lines = sum(len(path.read_text("utf-8").splitlines()) for path in tests if path.suffix == ".py")
    print(f"agentdash/, lines of Python         {sum(lines.values()):>8,}")
    print(f"modules                             {len(lines):>8,}")
    print(f"modules with exactly one importer   {with_one_importer(trees):>8,}")
    print(f"tests/, lines of Python             {test_lines:>8,}")
    print(f"tests/, all files, MB               {sum(path.stat().st_size for path in tests) / 1e6:>8.1f}")
    print(f"run-time dependencies               {dependencies():>8,}")
    print(f"functions called for one flag       {calls_for_a_line():>8,}")
    for folder, modules, count in folders(lines):
        print(f"  {folder:<18} {modules:>4} modules {count:>8,} lines")


def main() -> None:
    """Print the figures."""
    trees = {path: ast.parse(path.read_text("utf-8")) for path in sorted(PACKAGE.rglob("*.py"))}
    lines = {path: len(path.read_text("utf-8").splitlines()) for path in trees}
    print_sizes(trees, lines)
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
