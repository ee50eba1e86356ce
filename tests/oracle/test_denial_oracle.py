"""What is read of real sandboxes' outputs never contradicts what they refused.

The seeds are fixed; `python -m tests.oracle.denial_probes --seed N --count 5000` runs others,
and prints how much is found.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.live.clis import cache
from tests.live.codex import native_program
from tests.oracle.denial_probes import Lab, Result, generate, run_all, summary


def _works(*command: str) -> bool:
    if shutil.which(command[0]) is None:
        return False
    return subprocess.run(command, capture_output=True, check=False, timeout=20).returncode == 0


def _sandboxes() -> tuple[str, ...]:
    """Return the sandboxes that this machine has: user namespaces may be off, a kernel without Landlock."""
    helper = str(Path(__file__).with_name("landlock.py"))
    found = ["none"] if _works("setpriv", "--bounding-set", "-all", "true") else []
    if _works("bwrap", "--ro-bind", "/", "/", "--unshare-user", "--unshare-net", "true"):
        found.append("bwrap")
    if _works("unshare", "-n", sys.executable, helper, "/tmp", "true"):
        found.append("landlock")
    return tuple(found)


def check(results: Sequence[Result]) -> None:
    """Assert that nothing was read that is not so."""
    line = summary(results)
    contradicted = [
        f"probe {r.probe.number} ({r.probe.sandbox}): {r.false}\n{r.probe.script}\n{r.output[-600:]}"
        for r in results
        if r.false
    ]
    assert not contradicted, "\n\n".join((line, *contradicted))
    assert sum(len(r.denials) for r in results) > len(results) / 5, line


@pytest.mark.timeout(300)
@pytest.mark.parametrize("sandbox", ["bwrap", "landlock"])
def test_denials_of_a_real_sandbox(sandbox: str) -> None:
    available = _sandboxes()
    if sandbox not in available:
        pytest.fail(f"{sandbox} does not work here: install bubblewrap, allow user namespaces, run as root")
    check(run_all(Lab(cache() / "denials"), generate(20_261_122, 60, (sandbox, "none"))))


@pytest.mark.timeout(300)
def test_denials_of_codex_sandbox() -> None:
    """Sockets are refused here (EPERM), which bubblewrap alone does not do."""
    binary = native_program()
    check(run_all(Lab(cache() / "denials", binary), generate(169, 40, ("codex",))))
