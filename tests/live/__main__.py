"""Measure releases of the worker CLIs: `python -m tests.live [CLI[@VERSION] ...]`.

By default `latest` of each, as npm serves it. A release is installed, and the tests of states and sandboxes
are run with it: what they assert is what the release does that was measured last (`clis.py`), so that a test
that fails is a difference. Exit code 1 where there is one, 2 where a release cannot be installed.
"""

# ruff: noqa: T201 - it prints its rows

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

from tests.live.clis import CLIS, VARIABLE, SetupError, install

_HERE: Final = Path(__file__).parent
_MEASURES: Final = {
    "codex": (
        "test_states.py::test_codex_tui",
        "test_states.py::test_codex_exec",
        "test_truth.py",
        "test_recorded.py",
        "test_requested.py",
        "test_reports.py",
        "test_allowed.py",
        "test_unseen.py",
    ),
    "claude": ("test_claude_live.py",),
    "opencode": ("test_states.py::test_opencode_tui", "test_workers_live.py"),
    **dict.fromkeys(("gemini", "qwen", "kilo", "copilot", "srt"), ("test_workers_live.py",)),
}
"""The tests of each CLI."""


def differences(cli: str, version: str, workers: int) -> Iterator[str | None]:
    """Run the tests of a CLI with a release; yield for each what differs, or None."""
    tests = [str(_HERE / test) for test in _MEASURES[cli]]
    chosen = ["-k", cli] if "test_workers_live.py" in _MEASURES[cli] else []
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        options = ["-q", f"--numprocesses={workers}", "--dist=worksteal", f"--junitxml={report}", *chosen]
        subprocess.run(
            [sys.executable, "-m", "pytest", *options, *tests],
            cwd=_HERE.parents[1],
            env={**os.environ, "AGENTDASH_MATRIX": "all", VARIABLE.format(cli.upper()): version},
            stdout=subprocess.DEVNULL,
            check=False,
        )
        if not report.exists():
            yield "the tests cannot be run"
            return
        for case in ET.parse(report).iter("testcase"):
            failed = [*case.iter("failure"), *case.iter("error")]
            words = " ".join((failed[0].get("message") or "").split()) if failed else ""
            yield f"{case.get('name')}: {words:.300}" if failed else None


def measure(cli: str, version: str, workers: int) -> int:
    """Print a row of a release, and one of each difference; return the exit code."""
    name = f"{cli} {version}"
    try:
        install(cli, version)
    except SetupError as error:
        print(f"{name}: {error}", flush=True)
        return 2
    found = list(differences(cli, version, workers))
    wrong = [each for each in found if each is not None]
    as_before = f"{len(found) - len(wrong)} of {len(found)} as {CLIS[cli].measured}"
    print(f"{name}: {as_before}", *wrong, sep="\n    ", flush=True)
    return int(bool(wrong) or not found)


def main() -> int:
    """Measure what the arguments name; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.live", description=__doc__)
    parser.add_argument("releases", nargs="*", metavar="CLI[@VERSION]", help=f"of {', '.join(_MEASURES)}")
    parser.add_argument("--numprocesses", type=int, default=2, help="tests at once")
    given = parser.parse_args()
    code = 0
    for each in given.releases or _MEASURES:
        cli, _, version = each.partition("@")
        if cli not in _MEASURES:
            parser.error(f"no such CLI: {cli}")
        if version in ("", "latest"):
            view = ["npm", "view", CLIS[cli].package, "version"]
            version = subprocess.run(view, capture_output=True, text=True, check=False).stdout.strip()
        if not version:
            print(f"{cli}: npm serves no release", flush=True)
            code = 2
        else:
            code = max(code, measure(cli, version, given.numprocesses))
    return code


if __name__ == "__main__":
    sys.exit(main())
