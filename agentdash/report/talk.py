"""The conversation of a family as data: what the exports `talk.md` and `talk.html` render."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from agentdash.engine.snapshot import build_snapshot
from agentdash.model.conversation import Conversation
from agentdash.model.secrets import mask_fields
from agentdash.model.worker import Worker
from agentdash.replay.conversation import ConversationFile
from agentdash.replay.family import Family


class ThreadTalk(msgspec.Struct):
    """The conversation of one thread."""

    worker: Worker | None
    """As of the end; None where its file cannot be read."""
    conversation: Conversation

    @property
    def name(self) -> str:
        """The name of the thread, or its id."""
        return self.worker.name if self.worker else self.conversation.thread


class TalkReport(msgspec.Struct):
    """The conversations of a family."""

    threads: list[ThreadTalk]
    """The requested one first."""

    @property
    def problems(self) -> list[str]:
        """What could not be read."""
        return [
            f"{talk.name}: {talk.conversation.problem}" for talk in self.threads if talk.conversation.problem
        ]


def read_talk(family: Family) -> TalkReport:
    """Return the conversations of a family, read from its files."""
    files = [ConversationFile(path, is_whole=True) for path in family.paths]
    files.sort(key=lambda file: file.thread != family.thread)
    masked: TalkReport = mask_fields(TalkReport([_read(file) for file in files]))
    return masked


def _read(file: ConversationFile) -> ThreadTalk:
    conversation = file.read()
    snapshot = build_snapshot(file.fleet, file.at)
    worker = next((worker for worker in snapshot.workers if worker.id == file.thread), None)
    return ThreadTalk(worker=worker, conversation=conversation)


def heading_facts(talk: ThreadTalk) -> Sequence[str]:
    """Return what is stated of a thread above its conversation: agent, version, model, directory."""
    worker = talk.worker
    if worker is None:
        return ()
    agent = " ".join(filter(None, (worker.agent.name, worker.agent.version)))
    return tuple(filter(None, (agent, worker.model, worker.cwd)))


def gap_words(conversation: Conversation) -> str:
    """Return what is missing at the beginning of a conversation; empty where nothing is."""
    if conversation.dropped:
        return f"{conversation.dropped:,} earlier entries are left out."
    return "" if conversation.is_whole else "The beginning is left out."
