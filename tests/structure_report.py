"""Print the size and shape of the program: `python -m tests.structure_report`. A report, not a gate.

CONTRIBUTING.md has the limits that these figures are held to.
"""

import ast
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any, Final

from agentdash.agents.codex.rollout.reader import RolloutReader
from agentdash.collect.clock import SystemClock
from agentdash.engine.hub import Hub
from agentdash.tui.fleet.cells import COLUMNS, layout, row_lines
from agentdash.tui.fleet.rows import Row
from agentdash.tui.theme import UNICODE, Look
from tests.unit.rollout_files import THREAD, answer, call, meta

ROOT: Final = Path(__file__).parents[1]
PACKAGE: Final = ROOT / "agentdash"


def probe(number: int) -> list[bytes]:
    """Return the lines of a command that prints a flag, and of its output."""
    command = f'echo "flag{number}=${{CODEX_SANDBOX_NETWORK_DISABLED:-}}"'
    output = f"Chunk ID: 1\nProcess exited with code 0\nOutput:\nflag{number}=1\n"
    name = f"call_{number}"
    return [call("exec_command", {"cmd": command}, id_=name), answer(output, id_=name)]


def module_of(path: Path) -> str:
    """Return the dotted name of a file."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported_modules(path: Path, modules: set[str]) -> Iterator[str]:
    """Yield the modules of agentdash that a file imports, also within functions, by `from … import`."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module in modules:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in modules else node.module


def count_importers(paths: list[Path]) -> Counter[str]:
    """Return for each module how many other modules import it."""
    names = {module_of(path) for path in paths}
    return Counter(name for path in paths for name in {*imported_modules(path, names)} - {module_of(path)})


def count_lines(paths: list[Path]) -> int:
    """Return the lines of some files."""
    return sum(len(path.read_text("utf-8").splitlines()) for path in paths)


def trace_line() -> tuple[int, int]:
    """Return the calls, built-in functions included, that one line of a rollout costs until it is reduced,
    and the files whose code runs from the line to the row on the screen."""
    clock, reader = SystemClock(), RolloutReader(THREAD)
    hub, look = Hub((), clock), Look(clock.now(), UNICODE)
    hub.take(reader.read([meta(), *probe(1), probe(2)[0]]))  # what is compiled on first use is compiled
    kinds: Counter[str] = Counter()
    files: set[str] = set()

    def count(frame: FrameType, kind: str, _: Any) -> None:
        kinds[kind] += 1
        if kind == "call" and (file := frame.f_code.co_filename).startswith(str(PACKAGE)):
            files.add(file)

    sys.setprofile(count)
    hub._reduce(reader.read(probe(2)[1:]))
    calls = kinds["call"] + kinds["c_call"]
    worker = hub.take([]).workers[0]
    row_lines((Row(worker.id), worker), layout(COLUMNS, 120, UNICODE), 120, look)
    sys.setprofile(None)
    return calls, len(files)


def main() -> None:
    """Print the figures."""
    paths = sorted(PACKAGE.rglob("*.py"))
    importers = count_importers(paths)
    folders = Counter(path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in paths)
    for folder, modules in folders.items():
        lines = count_lines([path for path in paths if module_of(path).split(".")[1:2] == [folder]])
        if modules > 1:
            print(f"{folder:<12}{lines:>7,} lines {modules:>4} modules")
    tests = sorted(path for path in (ROOT / "tests").rglob("*.py") if path.is_file())
    size = sum(path.stat().st_blocks * 512 for path in (ROOT / "tests").rglob("*") if path.suffix != ".pyc")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    calls, files = trace_line()
    for name, value in {
        "agentdash/, lines of Python": count_lines(paths),
        "modules": len(paths),
        "modules with exactly one importer": sum(importers[module_of(path)] == 1 for path in paths),
        "tests/, lines of Python": count_lines(tests),
        "tests/, MB on disk": round(size / 1e6, 1),
        "run-time dependencies": len(project["dependencies"]),
        "calls for one line with a flag": calls,
        "files from that line to the screen": files,
    }.items():
        print(f"{name:<36}{value:>8,}")


if __name__ == "__main__":
    main()
