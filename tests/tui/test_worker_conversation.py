"""The tabs Talk, Commands and Changes, and the reading of the session's file behind them."""

import time

import pytest
from msgspec.structs import replace

from agentdash.model.changes import FileChange
from agentdash.model.conversation import Conversation, ConversationTurn, Message
from agentdash.model.denials import Denial
from agentdash.model.events import Escalation
from agentdash.replay.conversation import ConversationFile
from agentdash.tui.primitives.lines import Lines
from agentdash.tui.primitives.spans import plain, width
from agentdash.tui.worker.conversation import absent_lines, conversation_tab
from tests.unit.captures import CHANGE_LOGS

from . import sample_fleet
from .rendering import LOOK, text
from .sample_fleet import BY_NAME, SNAPSHOT, ran
from .test_transport import replay_app

NOW = sample_fleet.NOW
(LOG,) = (CHANGE_LOGS / "codex-0.169.0").glob("*.jsonl")
DENIAL = Denial("filesystem", "write", "certain", "Read-only file system")
CHANGE = FileChange(path="/w/a.py", kind="update", diff="@@\n-old\n+new\n ctx", added=1, removed=1)
ENTRIES = (
    Message(at=NOW - 60, role="user", text="make it\nwork"),
    ran(
        "a",
        50,
        "make all",
        took=2,
        exit_code=2,
        output="long\noutput",
        denials=(DENIAL,),
        escalation=Escalation("escalated", "to install"),
    ),
    ran("b", 40, "update a.py", took=1, kind="patch", cwd="/w", changes=(CHANGE,)),
    Message(at=NOW - 30, role="agent", text="It works."),
    ran("c", 9, "sleep 60"),
)
TALK = Conversation("01a1fa8b-2cba", turns=(ConversationTurn(number=1, at=NOW - 60, entries=ENTRIES),))


def lines_of(tab, talk=TALK, cells=60):
    lines = conversation_tab(tab, talk, cells, LOOK)
    assert all(width(line) <= cells for line in lines)
    assert not any("\n" in plain(line) for line in lines)
    return [line.rstrip() for line in text(lines).splitlines()]


def test_talk_has_messages_whole_and_outputs_folded():
    lines = lines_of("Talk")
    assert lines[0].startswith("turn 1")
    assert lines[1:3] == ["you: make it", "     work"]
    assert "  $ make all" in lines[4]
    assert lines[4].endswith("exit 2 2.0s")
    assert lines[5] == "    denied: Read-only file system"
    assert "agent: It works." in lines
    assert lines[-1].endswith("running 9s")
    assert not any("output" in line for line in lines)


def test_commands_newest_first_with_outcome_and_denial():
    lines = lines_of("Commands")
    assert "$ sleep 60" in lines[0]
    assert lines[1].endswith("exit 2 2.0s")
    assert [line.strip() for line in lines[2:]] == [
        "asked to leave the sandbox: to install",
        "denied: Read-only file system",
    ]


def test_changes_have_toned_diffs():
    lines = conversation_tab("Changes", TALK, 60, LOOK)
    assert plain(lines[1]).startswith("a.py")
    assert plain(lines[1]).endswith("updated +1 -1")
    assert [(plain(line), line[-1].tone) for line in lines[2:6]] == [
        ("  @@", "muted"),
        ("  -old", "stuck"),
        ("  +new", "live"),
        ("   ctx", ""),
    ]


@pytest.mark.parametrize("tab", ["Talk", "Commands", "Changes"])
def test_what_is_missing_is_stated(tab):
    assert "--export talk.html" in " ".join(lines_of(tab, replace(TALK, is_whole=False)))
    assert "--export talk.html" not in " ".join(lines_of(tab))
    assert "cannot be read to its end: gone" in " ".join(lines_of(tab, replace(TALK, problem="gone")))
    assert lines_of(tab, Conversation(thread="t"))


def test_why_there_is_no_conversation():
    worker = replace(SNAPSHOT.workers[0], file="/x", calls=())
    for changed, words in (
        (replace(worker, host="box"), "on box"),
        (replace(worker, file=None), "no session file"),
        (replace(worker, kind="pane"), "no session file"),
        (worker, "Reading"),
    ):
        assert words in text(absent_lines("Talk", changed, 80, LOOK))


# ---------------------------------------------------------------- reading


async def shown(pilot, app):
    """Return the lines of the open tab, once the file has been read."""
    for _ in range(200):
        await pilot.pause(0.05)
        tab = app.screen.query_one("#tab", Lines)
        lines = [plain(tab.line_at(y)) for y in range(tab.virtual_size.height)]
        if lines and "Reading" not in lines[0]:
            return lines
    raise AssertionError(lines)


async def test_the_file_is_read_when_a_tab_needs_it():
    worker = replace(BY_NAME["main"], file=str(LOG), id="01a202af-1c23-73c1-8e4b-b115acf80af2")
    snapshot = replace(SNAPSHOT, workers=(worker,))
    app = sample_fleet.dashboard(snapshot)
    async with app.run_test(size=(100, 40)) as pilot:
        await pilot.pause()
        await pilot.press("enter")
        assert app._conversation.found(worker) is None
        app.action_tab_named("Commands")
        lines = await shown(pilot, app)
        assert "exit 3" in lines[0]
        app.action_tab_named("Changes")
        assert any("docs/new.md" in line for line in await shown(pilot, app))


async def test_a_replay_shows_nothing_later_than_its_time():
    app = replay_app("0.169.0", "workspace-write", finding=0)
    player = app._player
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        player.seek(1.0)
        await pilot.press("enter")
        app.action_tab_named("Commands")
        everything = await shown(pilot, app)
        player.seek(0.5)
        app.draw()
        for _ in range(200):
            await pilot.pause(0.05)
            if (now := await shown(pilot, app)) != everything:
                break
        assert 1 <= sum("$" in line for line in now) < sum("$" in line for line in everything)


def test_a_growing_file_is_read_on(tmp_path):
    lines = LOG.read_bytes().splitlines(keepends=True)
    growing = tmp_path / LOG.name
    growing.write_bytes(b"")
    file = ConversationFile(growing)
    for number in range(len(lines)):
        with growing.open("ab") as written:
            written.write(lines[number])
        found = file.read()
    assert found == ConversationFile(LOG).read()
    growing.write_bytes(b"".join(lines[:20]))  # cut
    assert file.read() == ConversationFile(growing).read() != found
    growing.unlink()
    assert file.read().problem == "No such file or directory"


def test_of_a_large_file_the_newest_part_is_read(tmp_path):
    head, *rest = LOG.read_bytes().splitlines(keepends=True)
    said = b'{"timestamp":"2026-11-22T09:56:00.400Z","type":"event_msg","payload":{"type":"agent_message",'
    padding = [said + b'"message":"' + b"x" * 100_000 + b'"}}\n'] * 240
    large = tmp_path / LOG.name
    large.write_bytes(head + b"".join([*rest[:5], *padding, *rest[5:]]))
    found, whole = ConversationFile(large).read(), ConversationFile(LOG).read()
    assert not found.is_whole
    assert [call.text for call in found.commands] == [call.text for call in whole.commands]
    assert ConversationFile(large).read(time.time()).is_whole
