"""Architecture rules: imports between packages, purity, and lazy imports."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "agentdash"
MAY_IMPORT = {
    "model": "model",
    "agents": "model agents files peers procfs",
    "documents": "model documents",
    "collect": "model agents documents collect config files macos peers procfs programs",
    "store": "model store config files folders procfs",
    "sandbox": "model sandbox",
    "engine": "model sandbox engine",
    "replay": "model engine agents collect store replay files prices",
    "report": "model sandbox engine agents documents collect store replay report config files"
    " folders guide prices thresholds version",
    "tui": "model engine replay tui config guide prices programs thresholds",
    "demo": "model sandbox engine agents replay demo",
    "config": "model config files folders",
    "files": "files",
    "folders": "folders",
    "guide": "guide",
    "macos": "macos",
    "peers": "model macos peers procfs",
    "prices": "model prices",
    "procfs": "procfs",
    "programs": "programs",
    "thresholds": "model config prices thresholds",
    "version": "version",
}
"""Packages that each package may import; `cli` may import all of them."""
MAY_NOT_IMPORT = {"tui": ("agentdash.engine.judge", "agentdash.engine.reduce", "agentdash.engine.detect")}
"""Modules of allowed packages that a package may not import: screens show the snapshot, and do not judge."""
ONLY_IN = {"textual": "tui", "psutil": "collect", "watchfiles": "collect", "websockets": "agents"}
"""Libraries that only one package may import."""
IMPURE = "os pathlib io subprocess socket asyncio time threading shutil tempfile sqlite3 logging"


OPENERS = {
    "agents/codex/home.py": "/proc/locks",
    "agents/sqlite_files.py": "SQLite opens its database itself, behind a check of its type",
    "agents/registry.py": "data of the package",
    "cli/__init__.py": "/dev/null",
    "cli/dashboard.py": "/dev/tty",
    "cli/debug_log.py": "written",
    "cli/stdin.py": "/dev/tty, and a file that is written",
    "collect/processes/linux.py": "/proc",
    "demo/day.py": "data of the package",
    "files.py": "the opener of everything else",
    "guide/__init__.py": "data of the package",
    "peers.py": "/proc",
    "prices.py": "data of the package",
    "procfs.py": "/proc",
    "report/exports.py": "data of the package",
    "store/line_file.py": "checked as `agentdash.files` does, which starts more slowly",
    "store/database.py": "SQLite opens its database itself, behind a check of its type",
    "store/status_file.py": "its lock, beside the file",
    "store/journal.py": "written",
    "version.py": "the checkout that this program is in",
}
"""Modules that open files without `agentdash.files`, and which ones: files that others may replace by a FIFO,
a device or 3 GB are opened only through that."""


def is_pure(path: Path) -> bool:
    """Return whether a module must do no I/O and read no clock: model, sandbox, documents, and engine except
    its event loop."""
    if path.name in ("hub.py", "latest.py", "runner.py"):
        return False
    return part(path) in ("model", "sandbox", "documents", "engine")


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def part(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}: relative import"
            yield node.module


def violations(path: Path, name: str) -> Iterator[str]:
    """Yield the rules that a module breaks by importing `name`."""
    here = part(path)
    top, *rest = name.split(".")
    if top == "agentdash" and rest and here in MAY_IMPORT and rest[0] not in MAY_IMPORT[here].split():
        yield f"{here} imports {name}"
    if name.startswith(MAY_NOT_IMPORT.get(here, ())):
        yield f"{here} imports {name}"
    if top in ONLY_IN and here != ONLY_IN[top]:
        yield f"{top} is used outside {ONLY_IN[top]}"
    if is_pure(path) and top in IMPURE.split():
        yield f"{path} is pure and imports {name}"


def test_imports_point_one_way() -> None:
    broken = [(path, each) for path in modules() for name in imports(path) for each in violations(path, name)]
    assert broken == []


def opens_files(path: Path) -> bool:
    """Return whether a module calls `open`, `os.open`, `Path.open`, `read_text`, `read_bytes` or SQLite."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        match node:
            case ast.Call(func=ast.Name(id="open")):
                return True
            case ast.Call(func=ast.Attribute(value=ast.Name(id="os" | "io"), attr="open")):
                return True
            case ast.Call(
                func=ast.Attribute(attr="open"), args=[ast.Constant(value=str()) | ast.IfExp(), *_]
            ):
                return True
            case ast.Call(func=ast.Attribute(attr="read_text" | "read_bytes" | "connect", value=value)):
                if not isinstance(value, ast.Name) or value.id != "files":
                    return True
    return False


def test_foreign_files_are_opened_in_one_place() -> None:
    found = {str(path.relative_to(PACKAGE)) for path in modules() if opens_files(path)}
    assert found - OPENERS.keys() == set()
    assert OPENERS.keys() - found == set()


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("engine/snapshot.py", "agentdash.collect.clock"),
        ("engine/snapshot.py", "time"),
        ("model/events.py", "agentdash.engine.hub"),
        ("report/status.py", "textual.app"),
        ("cli/status.py", "psutil"),
        ("tui/worker/layers.py", "agentdash.engine.judge.findings.verdict"),
    ],
)
def test_violations_are_found(module: str, name: str) -> None:
    assert len(list(violations(PACKAGE / module, name))) == 1


def test_every_package_has_an_import_rule() -> None:
    assert {part(p) for p in modules()} - {"cli", "__init__", "__main__"} <= set(MAY_IMPORT)


@pytest.mark.parametrize(
    "arguments", [["--version"], ["--help"], ["status", "--json", "--no-tmux", "--codex-home", "/"]]
)
@pytest.mark.slow
def test_commands_without_a_screen_do_not_load_textual(arguments: list[str]) -> None:
    code = (
        "import sys\nfrom agentdash.cli import main\n"
        f"sys.argv = ['agentdash', *{arguments!r}]\n"
        "try: main()\nexcept SystemExit as e: assert not e.code, e.code\n"
        "assert 'textual' not in sys.modules, 'textual'\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, cwd=PACKAGE.parent)


ENTRANCES = "cli cli.status cli.wait cli.check cli.explain report.doctor cli.dashboard tui.app collect.live"


@pytest.mark.parametrize("module", ENTRANCES.split())
@pytest.mark.parametrize("platform", ["darwin", "freebsd14"])
@pytest.mark.slow
def test_no_linux_files_are_read_on_import_elsewhere(platform: str, module: str) -> None:
    """Importing `collect.processes.linux` for its types is fine; opening /proc or /sys on import is not."""
    code = (
        "import builtins, os, sys\n"
        f"import selectors, asyncio, psutil, importlib\nsys.platform = {platform!r}\n"
        "opened, listed, scanned, real = os.open, os.listdir, os.scandir, builtins.open\n"
        "def refuse(path):\n"
        "    if str(path).startswith(('/proc', '/sys')): raise AssertionError(f'{path} is on Linux only')\n"
        "def guard(call): return lambda path='.', *a, **k: (refuse(path), call(path, *a, **k))[1]\n"
        "os.open, os.listdir, os.scandir, builtins.open = map(guard, (opened, listed, scanned, real))\n"
        f"importlib.import_module('agentdash.{module}')\n"
        "import agentdash.collect.processes.sensor as processes\n"
        "assert processes.system.__name__.endswith('.portable'), processes.system\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=PACKAGE.parent)


def test_no_group_has_a_possessive_quantifier() -> None:
    """Python before 3.11.5 (Debian 12 has 3.11.2) matches too much by them; atomic groups are right."""
    possessive = re.compile(r"(?<!\\)\)(?:[*+?]|\{+[\d,]+\}+)\+")
    assert all(possessive.search(text) for text in ("(?:ab?c)*+", "(?:a|b){{0,9}}+"))
    files = [*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.toml")]
    assert [path.name for path in files if possessive.search(path.read_text())] == []
