"""`codex exec --remote`: a server runs the thread, in a directory of its own (0.171)."""

import pytest

from agentdash.model import events as e
from agentdash.model.worker import Worker
from tests.unit.story import CWD, PANE, T, begun, pane, process, snapshot_after

SERVER = ("codex", "app-server", "--listen", "ws://127.0.0.1:4100")
REMOTE = ("codex", "exec", "--remote", "ws://127.0.0.1:4100", "go")


def workers(
    argv: tuple[str, ...] = REMOTE,
    *,
    cwd: str = "/home/dev/other",
    rows: tuple[str, ...] = (f"thread id: {T}",),
) -> list[Worker]:
    once = "exec" in argv
    story = [
        begun(),
        pane(),
        e.PaneDrawn(at=101.0, key=PANE, screen=rows),
        process(10, started=80.0),
        process(11, 10, started=95.0, agent="codex", cwd=cwd, argv=argv, once=once),
        process(50, started=90.0, argv=SERVER),
        e.LocksSeen(at=110.0, holders={T: 50}),
        e.ProcessesCounted(at=110.0),
    ]
    return list(snapshot_after(*story).workers)


@pytest.mark.parametrize(
    ("more", "number", "has_finding"),
    [
        ({}, 1, True),
        ({"argv": (*REMOTE[:2], "--remote=unix://", "go")}, 1, True),
        ({"cwd": CWD}, 1, False),
        ({"argv": ("codex", "exec", "go")}, 2, False),  # runs its own thread, and prints another's id
        ({"rows": (f"thread id: {T[:-1]}0",)}, 2, False),
        ({"rows": (f"  thread id: {T}",)}, 2, False),
    ],
)
def test_the_thread_is_in_the_pane_of_its_client(
    more: dict[str, tuple[str, ...]], number: int, has_finding: bool
) -> None:
    found = workers(**more)
    assert len(found) == number
    kinds = [finding.kind for each in found for finding in each.sandbox.findings]
    assert kinds == (["requested-not-configured"] if has_finding else [])
    if has_finding:
        (finding,) = found[0].sandbox.findings
        assert (finding.fields[0].expected, finding.fields[0].actual) == ("/home/dev/other", CWD)
