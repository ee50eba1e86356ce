"""The macOS sandbox check with a fake library: the real one exists on macOS only."""

import subprocess
import sys

import pytest

from agentdash import macos
from agentdash.collect.processes import portable
from agentdash.model.process import Kernel


class Library:
    """A fake libSystem."""

    def __init__(self, **results: int) -> None:
        self.calls: list[tuple[object, ...]] = []
        self._results = results

    def sandbox_check(self, pid: int, operation: None, filter_type: int) -> int:
        self.calls.append((pid, operation, filter_type))
        return self._results.get(f"p{pid}", -1)


@pytest.mark.parametrize(("pid", "expected"), [(10, True), (11, False), (12, None), (13, None)])
def test_sandboxed_not_sandboxed_unknown(pid: int, expected: bool | None) -> None:
    library = Library(p10=1, p11=0, p12=7)
    assert macos.sandboxed(pid, library) is expected
    assert library.calls == [(pid, None, 0)]


def test_sandbox_is_a_kernel_fact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(macos, "_system", lambda: Library(p10=1, p11=0))
    known = [Kernel(sandboxed=True), Kernel(sandboxed=False), None]
    assert [portable.kernel(pid) for pid in (10, 11, 12)] == known


@pytest.mark.skipif(sys.platform != "linux", reason="Linux only")
def test_psutil_stands_in_for_proc_on_macos_only() -> None:
    code = "import sys, agentdash.collect.live\nprint('agentdash.collect.processes.portable' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
