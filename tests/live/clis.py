"""The CLIs that the live tests drive: their packages, the releases, and where they are installed.

They are installed once with npm, into $AGENTDASH_TEST_CACHE or ~/.cache/agentdash-tests.
"""

import fcntl
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

import pytest


class Cli(NamedTuple):
    """A CLI of npm."""

    package: str
    measured: str
    """The newest release that was measured: its states and sandboxes are what the tests assert."""


CLIS: Final = {
    "codex": Cli("@openai/codex", "0.171.0"),
    "claude": Cli("@anthropic-ai/claude-code", "2.1.332"),
    "gemini": Cli("@google/gemini-cli", "0.61.0"),
    "qwen": Cli("@qwen-code/qwen-code", "0.24.4"),
    "opencode": Cli("opencode-ai", "1.18.33"),
    "kilo": Cli("@kilocode/cli", "7.7.7"),
    "copilot": Cli("@github/copilot", "1.0.102"),
    "srt": Cli("@anthropic-ai/sandbox-runtime", "0.0.83"),
    "ccusage": Cli("ccusage", "20.0.24"),
}
VARIABLE: Final = "AGENTDASH_TEST_{}"
"""Names the release of a CLI that the tests drive, where that is another than the measured one."""


class SetupError(pytest.fail.Exception):
    """The machine lacks something that a live test needs: the test fails with this message alone."""

    def __init__(self, message: str) -> None:
        super().__init__(message, pytrace=False)


def release(cli: str) -> str:
    """Return the release to drive: the measured one, or the one that `python -m tests.live` measures."""
    return os.environ.get(VARIABLE.format(cli.upper())) or CLIS[cli].measured


def cache() -> Path:
    """Return the directory of installed CLIs and labs; below /tmp Codex refuses to run its helpers."""
    named = os.environ.get("AGENTDASH_TEST_CACHE")
    directory = Path(named) if named else Path.home() / ".cache" / "agentdash-tests"
    directory.mkdir(parents=True, exist_ok=True)
    return directory.resolve()


def new_root() -> Path:
    """Create the directory of a lab. Its name looks like a token of GitHub, and has to be known exactly
    nevertheless: homes, logs and policies are found by it."""
    return Path(tempfile.mkdtemp(prefix="ghr_", dir=cache()))


def install(cli: str, version: str | None = None) -> Path:
    """Install a release of a CLI, unless it is installed, and return the path of its command.

    Raises:
        SetupError: npm is missing, or fails.
    """
    package, version = CLIS[cli].package, version or release(cli)
    place = cache() / f"{package.rpartition('/')[2]}-{version}"
    binary = place / "node_modules" / ".bin" / cli
    with (cache() / f"{place.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # parallel test processes install it once
        if binary.exists():
            return binary
        npm = shutil.which("npm")
        if npm is None:
            raise SetupError(f"the live tests need npm on PATH, to install {package} {version}")
        place.mkdir(exist_ok=True)
        quiet = ("--no-audit", "--no-fund", "--loglevel=error")
        done = subprocess.run(
            [npm, "install", "--prefix", str(place), *quiet, f"{package}@{version}"],
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        if done.returncode or not binary.exists():
            shutil.rmtree(place)
            raise SetupError(
                f"npm could not install {package} {version}: {' '.join(done.stderr.split())[-300:]}"
            )
    return binary
