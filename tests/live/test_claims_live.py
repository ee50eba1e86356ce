"""A worker that names another's thread decides nothing."""

from __future__ import annotations

import sys

import pytest

from agentdash.model.worker import Worker
from tests.live.codex import UNTIL_LET_GO, VERSION
from tests.live.conftest import OpenLab
from tests.live.watched import Watched, is_judged, watching

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the environment of processes is Linux's")

CASES = [("exec", "0.169.0"), ("exec", VERSION), ("tui", VERSION)]
FORGE = "CODEX_SANDBOX=seatbelt CODEX_THREAD_ID={} sh -c '{}'"


async def observed(watched: Watched, thread: str | None = None, *, parent: bool | None = None) -> Worker:
    """Wait for a live command of a thread, and for its verdict."""
    return await watched.until(
        lambda w: (
            w.kind == "codex-thread"
            and thread in (None, w.id)
            and parent in (None, w.parent is not None)
            and bool(w.pids)
            and w.sandbox.got.sandboxed is not None
            and is_judged(w)
        )
    )


@pytest.mark.parametrize(("how", "version"), CASES)
async def test_a_worker_names_the_thread_of_another(how: str, version: str, codex: OpenLab) -> None:
    """Both run in one home: where these are TUIs, a daemon is the parent of the commands of both."""
    script = {"victim": [{"run": UNTIL_LET_GO}, {"say": "all done"}]}
    lab = codex(script, version=version)
    async with watching(lab) as watched:
        if how == "tui":
            (await lab.tui()).submit("[[victim]] go")
        else:
            lab.exec("[[victim]] go")
        found = await observed(watched)
        assert (found.sandbox.verdict, found.sandbox.findings) == ("match", ())
        forged = FORGE.format(found.id, UNTIL_LET_GO)
        lab.model.script = {**script, "forger": [{"run": forged}, {"say": "all done"}]}
        if how == "tui":
            (await lab.tui()).submit("[[forger]] go")
        else:
            lab.exec("[[forger]] go", "-s", "danger-full-access")
        named = await watched.until(
            lambda w: w.id == found.id and any("not counted" in t.by for t in w.links)
        )
        assert (named.sandbox.verdict, named.sandbox.findings) == ("match", ())
        lab.let_go()
