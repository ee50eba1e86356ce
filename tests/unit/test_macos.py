"""What macOS tells of a sandbox, asked of a library that is made up: the real one is only there."""

from __future__ import annotations

import subprocess
import sys

import pytest

from agentdash.collect.processes import macos, portable
from agentdash.model.process import Kernel


class Library:
    """Answers as libSystem does."""

    def __init__(self, **answers: int) -> None:
        self.asked: list[tuple[object, ...]] = []
        self._answers = answers

    def sandbox_check(self, pid: int, operation: None, filter_type: int) -> int:
        self.asked.append((pid, operation, filter_type))
        return self._answers.get(f"p{pid}", -1)


@pytest.mark.parametrize(("pid", "known"), [(10, True), (11, False), (12, None), (13, None)])
def test_sandboxed_or_not_or_not_known(pid: int, known: bool | None) -> None:
    library = Library(p10=1, p11=0, p12=7)
    assert macos.sandboxed(pid, library) is known
    assert library.asked == [(pid, None, 0)]


def test_a_system_without_the_function() -> None:
    assert macos.sandboxed(1, object()) is None  # type: ignore[arg-type]


@pytest.mark.skipif(sys.platform == "darwin", reason="there it is")
def test_a_system_without_the_library() -> None:
    assert macos.sandboxed(1) is None
    assert portable.kernel(1) is None


def test_what_it_says_is_a_kernel_fact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(macos, "_system", lambda: Library(p10=1, p11=0))
    assert (portable.kernel(10), portable.kernel(11), portable.kernel(12)) == (
        Kernel(sandboxed=True),
        Kernel(sandboxed=False),
        None,
    )


@pytest.mark.skipif(sys.platform != "linux", reason="of Linux")
def test_nothing_of_macos_is_imported_on_linux() -> None:
    code = "import sys, agentdash.collect.live; print({'agentdash.collect.processes.macos', 'agentdash.collect.processes.portable'} & sys.modules.keys())"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        == "set()\n"
    )
