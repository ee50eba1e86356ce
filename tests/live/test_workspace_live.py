"""Side chats of a real Codex: one pane, many threads (0.171)."""

from __future__ import annotations

from agentdash.model.states import State
from tests.live.conftest import OpenLab
from tests.live.watched import watching

ESCALATED = {"escalate": "must write outside"}


async def test_a_side_chat_asks_beside_its_conversation(codex: OpenLab) -> None:
    script = {
        "main": [{"say": "main done"}],
        "side": [{"run": "touch $HOME/side.txt", **ESCALATED}, {"say": "side done"}],
    }
    lab = codex(script, version="0.171.0")
    async with watching(lab) as watched:
        pane = await lab.tui("-s", "workspace-write", "-a", "on-request", size=(140, 40))
        pane.submit("[[main]] the conversation")
        await watched.until(lambda w: w.state is State.COMPLETED and w.pane is not None)
        pane.keys("C-x")
        await pane.shows("Open in sidebar")
        pane.keys("s")
        await pane.shows("New side chat")
        pane.keys("Enter")
        await pane.shows("Ask a follow-up question")
        pane.submit("[[side]] the side chat")
        asking = await watched.until(
            lambda w: w.state is State.WAITING_APPROVAL and w.part == "side chat, in front"
        )
        assert asking.name == "[[side]] the side chat"
        found = await watched.until(lambda w: w.part == "main conversation, not in front")
        assert (found.state, found.pane) == (State.COMPLETED, asking.pane)
        snapshot = watched.snapshot
        assert snapshot is not None
        assert {worker.id for worker in snapshot.workers} == {asking.id, found.id}
        await pane.answer("Would you like to run", "y")
        await watched.until(lambda w: w.id == asking.id and w.state is State.COMPLETED)
