"""Fixtures of the live tests. They fail, rather than skip, where npm or tmux is missing."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from subprocess import CalledProcessError
from typing import Any, TypeVar

import pytest

from tests.live.codex import Lab, install
from tests.live.patience import scaled, slowness
from tests.live.tmux import ScriptedLab

# readline, which pytest imports, sets them for the workers of xdist: each terminal would be drawn as 80x24
for _name in ("COLUMNS", "LINES"):
    os.environ.pop(_name, None)

if sys.platform != "linux":  # /proc, namespaces and bubblewrap
    collect_ignore_glob = ["test_*", "hands"]

AnyLab = TypeVar("AnyLab", bound=ScriptedLab)
Keep = Callable[[AnyLab], AnyLab]
OpenLab = Callable[..., Lab]
"""`codex(script, config="", version=...) -> Lab`"""
Screens = Callable[[], dict[str, str]]
"""Returns the text of panes by name."""
_TEST_LIMIT_S = 600
"""On a quiet machine: the first test may have to download a Codex."""
_SCREENS = pytest.StashKey[list[Screens]]()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Set the time limit of each live test."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(scaled(_TEST_LIMIT_S)))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print by which factor time limits were scaled."""
    terminalreporter.write_line(f"live tests: this machine is {slowness():.1f} times slower than a quiet one")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Add the screens of all panes to the report of a failure."""
    report: pytest.TestReport = yield
    if report.failed and report.when == "call":
        for screens in item.stash.get(_SCREENS, []):
            with suppress(CalledProcessError, OSError):  # the tmux server may be gone
                report.sections += [(f"screen of {pane}", text) for pane, text in screens().items()]
    return report


@pytest.fixture
def report_screens(request: pytest.FixtureRequest) -> Callable[[Screens], None]:
    """Register a function whose screens are printed if the test fails."""
    registered: list[Screens] = request.node.stash.setdefault(_SCREENS, [])
    return registered.append


@pytest.fixture
def keep(report_screens: Callable[[Screens], None]) -> Iterator[Keep[Any]]:
    """Return a function that takes a lab, and returns it: after the test, all ends that runs in it."""
    with ExitStack() as labs:

        def keep(lab: AnyLab) -> AnyLab:
            labs.callback(lab.close)
            report_screens(lab.screens)
            return lab

        yield keep


@pytest.fixture
def codex(keep: Keep[Lab]) -> OpenLab:
    """Return a function that opens a lab."""
    return lambda script, config="", **version: keep(Lab(install(**version), script, config))
