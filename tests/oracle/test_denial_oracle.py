"""What is read of real sandboxes' outputs never contradicts what they refused.

The seeds are fixed; `python -m tests.oracle.denial_probes --seed N --count 5000` runs others,
and prints how much is found.
"""

import subprocess
import sys

import pytest

from tests.oracle.denial_probes import LANDLOCK, generate, run_all, summary

WORKS = {
    "bwrap": ("bwrap", "--ro-bind", "/", "/", "--unshare-user", "--unshare-net", "true"),
    "landlock": ("unshare", "-n", sys.executable, str(LANDLOCK), "/tmp", "true"),
}
"""What fails where a machine has no such sandbox: user namespaces may be off, a kernel without Landlock."""


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("sandboxes", "seed", "count"),
    [
        (("bwrap", "none"), 20_261_122, 60),
        (("landlock", "none"), 20_261_122, 60),
        (("codex",), 169, 40),  # which refuses sockets (EPERM), as bubblewrap alone does not
    ],
    ids=["bwrap", "landlock", "codex"],
)
def test_denials_of_a_real_sandbox(sandboxes: tuple[str, ...], seed: int, count: int) -> None:
    if (works := WORKS.get(sandboxes[0])) and subprocess.run(works, check=False, timeout=20).returncode:
        pytest.fail("it does not work here: install bubblewrap, allow user namespaces, run as root")
    results = run_all(generate(seed, count, sandboxes))
    line = summary(results)
    contradicted = [
        f"probe {r.probe.number} ({r.probe.sandbox}): {r.false}\n{r.probe.script}\n{r.output[-600:]}"
        for r in results
        if r.false
    ]
    assert not contradicted, "\n\n".join((line, *contradicted))
    assert sum(len(r.denials) for r in results) > len(results) / 5, line
