"""The package: built, installed into an empty environment, and run from there."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from contextlib import closing
from pathlib import Path

import pytest

from agentdash import __version__
from tests.live.terminal import Terminal

ROOT = Path(__file__).parents[2]
_MAN_PAGE = f"agentdash_tui-{__version__}.data/data/share/man/man1/agentdash.1"
_MAX_SDIST_BYTES = 2_000_000
BARE = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "TERM": "xterm-256color", "LANG": "C.UTF-8"}


def pip_env() -> dict[str, str]:
    """Return the environment variables without those by which the new environment would see this one."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an environment with what builds packages."""
    venv = tmp_path_factory.mktemp("tools")
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    subprocess.run(
        [venv / "bin" / "pip", "install", "--quiet", "hatchling>=1.27", "shiv"], check=True, env=pip_env()
    )
    return venv


@pytest.fixture(scope="module")
def dist(tools: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the sdist and the wheel, and return their directory."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [tools / "bin" / "python", "-m", "hatchling", "build", "-d", folder],
        check=True,
        cwd=ROOT,
        capture_output=True,
    )
    return folder


@pytest.fixture(scope="module")
def bare(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install agentdash from the sdist into a new environment, and return it."""
    venv = tmp_path_factory.mktemp("bare")
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    (sdist,) = dist.glob("*.tar.gz")
    subprocess.run([venv / "bin" / "pip", "install", "--quiet", str(sdist)], check=True, env=pip_env())
    return venv


def test_contents_of_wheel_and_sdist(dist: Path) -> None:
    (wheel,) = dist.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    tracked = subprocess.run(
        ["git", "ls-files", "agentdash"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\n")
    assert packed == {*filter(None, tracked), _MAN_PAGE}
    assert {
        "agentdash/py.typed",
        "agentdash/demo/day.toml",
        "agentdash/tui/agentdash.tcss",
        "agentdash/agents/codex.toml",
    } <= packed
    (sdist,) = dist.glob("*.tar.gz")
    with tarfile.open(sdist) as tree:
        sources = {name.partition("/")[2] for name in tree.getnames()}
    assert {"README.md", "CHANGELOG.md", "LICENSE", "pyproject.toml", "man/make.py"} <= sources
    assert not [name for name in sources if name.startswith("tests")]
    assert sdist.stat().st_size < _MAX_SDIST_BYTES


def test_installed_commands(bare: Path, tmp_path: Path) -> None:
    for command in ([bare / "bin" / "agentdash"], [bare / "bin" / "python", "-m", "agentdash"]):
        done = subprocess.run(
            [*command, "--version"], capture_output=True, text=True, env=BARE, cwd=tmp_path, check=True
        )
        assert done.stdout == f"agentdash {__version__}\n"
    for arguments in (
        ["status", "--json"],
        ["schema", "status"],
        ["config", "default"],
        ["doctor", "--json"],
    ):
        subprocess.run(
            [bare / "bin" / "agentdash", *arguments], capture_output=True, env=BARE, cwd=tmp_path, check=True
        )
    assert (bare / "share" / "man" / "man1" / "agentdash.1").exists()


def test_installed_demo(bare: Path) -> None:
    command = [str(bare / "bin" / "agentdash"), "demo", "--speed", "16"]
    with closing(Terminal(command, BARE, columns=120, lines=36)) as terminal:
        terminal.until(lambda: b"blocked sandbox" in terminal.output, "a blocked worker")
        terminal.press(b"\x11")  # ctrl+q
        assert terminal.exit_code() == 0


def test_one_file(tools: Path, dist: Path, tmp_path: Path) -> None:
    """It needs nothing but Python."""
    (wheel,) = dist.glob("*.whl")
    program = tmp_path / "agentdash.pyz"
    subprocess.run(
        [tools / "bin" / "shiv", "--console-script", "agentdash", "--output-file", program, "--quiet", wheel],
        check=True,
        env=pip_env(),
        capture_output=True,
    )
    for arguments, start in ((["--version"], f"agentdash {__version__}"), (["status", "--json"], "{")):
        done = subprocess.run(
            [sys.executable, "-I", program, *arguments],
            capture_output=True,
            text=True,
            env=BARE | {"HOME": str(tmp_path)},
            check=True,
        )
        assert done.stdout.startswith(start)
