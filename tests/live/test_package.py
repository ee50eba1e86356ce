"""The package: built, installed into an empty environment, and run from there."""

import os
import subprocess
import sys
import tarfile
import zipfile
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

from agentdash import __version__
from tests.live.terminal import Terminal

ROOT = Path(__file__).parents[2]
_MAN_PAGE = f"agentdash_tui-{__version__}.data/data/share/man/man1/agentdash.1"
_MAX_SDIST_BYTES = 2_000_000
BARE = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "TERM": "xterm-256color", "LANG": "C.UTF-8"}


class Built(NamedTuple):
    """The packages, and environments."""

    tools: Path
    """Has what builds packages."""
    dist: Path
    bare: Path
    """Has agentdash, installed from the sdist."""


def pip_env() -> dict[str, str]:
    """Return the environment variables without those by which the new environment would see this one."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def environment(folder: Path, *packages: str) -> Path:
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    subprocess.run([folder / "bin" / "pip", "install", "--quiet", *packages], check=True, env=pip_env())
    return folder


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    root = tmp_path_factory.mktemp("package")
    tools = environment(root / "tools", "hatchling>=1.27", "shiv")
    build = [tools / "bin" / "python", "-m", "hatchling", "build", "-d", root / "dist"]
    subprocess.run(build, check=True, cwd=ROOT, capture_output=True)
    (sdist,) = (root / "dist").glob("*.tar.gz")
    return Built(tools, root / "dist", environment(root / "bare", str(sdist)))


def run(*command: str | Path, cwd: Path, **env: str) -> str:
    return subprocess.check_output(command, text=True, env=BARE | env, cwd=cwd)


def test_contents_of_wheel_and_sdist(built: Built) -> None:
    (wheel,) = built.dist.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    tracked = subprocess.check_output(["git", "ls-files", "agentdash"], cwd=ROOT, text=True)
    assert packed == {*tracked.split(), _MAN_PAGE}
    assert {
        "agentdash/py.typed",
        "agentdash/demo/day.toml",
        "agentdash/tui/agentdash.tcss",
        "agentdash/agents/codex.toml",
    } <= packed
    (sdist,) = built.dist.glob("*.tar.gz")
    with tarfile.open(sdist) as tree:
        sources = {name.partition("/")[2] for name in tree.getnames()}
    assert {"README.md", "CHANGELOG.md", "LICENSE", "pyproject.toml", "man/make.py"} <= sources
    assert not [name for name in sources if name.startswith("tests")]
    assert sdist.stat().st_size < _MAX_SDIST_BYTES


def test_installed_commands(built: Built, tmp_path: Path) -> None:
    programs = built.bare / "bin"
    for command in ([programs / "agentdash"], [programs / "python", "-m", "agentdash"]):
        assert run(*command, "--version", cwd=tmp_path) == f"agentdash {__version__}\n"
    for line in ("status --json", "schema status", "config default", "doctor --json"):
        run(programs / "agentdash", *line.split(), cwd=tmp_path)
    assert (built.bare / "share" / "man" / "man1" / "agentdash.1").exists()


def test_installed_demo(built: Built) -> None:
    command = [str(built.bare / "bin" / "agentdash"), "demo", "--speed", "16"]
    with closing(Terminal(command, BARE, columns=120, lines=36)) as terminal:
        terminal.until(lambda: b"blocked sandbox" in terminal.output, "a blocked worker")
        terminal.press(b"\x11")  # ctrl+q
        assert terminal.exit_code() == 0


def test_one_file(built: Built, tmp_path: Path) -> None:
    """It needs nothing but Python."""
    (wheel,) = built.dist.glob("*.whl")
    program = tmp_path / "agentdash.pyz"
    options = ["--quiet", "--console-script", "agentdash", "--output-file"]
    shiv = [built.tools / "bin" / "shiv", *options, program, wheel]
    subprocess.run(shiv, check=True, env=pip_env(), capture_output=True)
    for line, start in (("--version", f"agentdash {__version__}"), ("status --json", "{")):
        said = run(sys.executable, "-I", program, *line.split(), cwd=tmp_path, HOME=str(tmp_path))
        assert said.startswith(start)
