"""What tool calls changed: by real sessions whose workspaces are known, and constructed patches."""

import json

import pytest

from agentdash.agents.claude.transcript import tools as claude
from agentdash.agents.codex.rollout.tools import applied_changes, describe, describe_custom, patch_changes
from agentdash.model.changes import Diff, FileChange, file_changes, whole_file
from agentdash.model.thread import Call
from agentdash.replay.conversation import ConversationFile
from tests.unit.captures import CHANGE_LOGS

BEFORE = {
    "app.py": "".join(f"line {number}\n" for number in range(1, 31)),
    "old.txt": "old\n",
    "moved.txt": "one\ntwo\nthree\n",
}
"""The files of the workspace before each of the sessions."""
SESSIONS = sorted(path.name for path in CHANGE_LOGS.iterdir())
ROOT = "/home/dev/project/"


def calls(name: str) -> list[Call]:
    (log,) = (CHANGE_LOGS / name).glob("*.jsonl")
    return list(ConversationFile(log).read().calls)


def patched(text: str, diff: str) -> str:
    """Apply a diff to a text, by what it has around the changes: an independent reading of the format."""
    lines = text.splitlines()
    hunks: list[list[str]] = [[]]
    for line in diff.split("\n"):
        hunks += [[]] if line.startswith("@@") else []
        hunks[-1] += [] if line.startswith("@@") else [line]
    at = 0
    for hunk in filter(None, hunks):
        old = [line[1:] for line in hunk if line[0] in "- "]
        at = next(i for i in range(at, len(lines) + 1) if lines[i : i + len(old)] == old)
        lines[at : at + len(old)] = [line[1:] for line in hunk if line[0] in "+ "]
    return "".join(f"{line}\n" for line in lines)


@pytest.mark.parametrize("name", SESSIONS)
def test_changes_lead_to_the_files_that_are_there(name: str) -> None:
    files = dict(BEFORE)
    changed = 0
    for call in calls(name):
        for change in call.changes if call.outcome and not call.failed else ():
            changed += 1
            path = change.path.removeprefix(ROOT)
            if change.kind == "delete":
                del files[path]
            else:
                target = (change.moved_to or change.path).removeprefix(ROOT)
                files[target] = patched(files.pop(path, ""), change.diff)
    after = json.loads((CHANGE_LOGS / name / "after.json").read_text("utf-8"))
    assert after.pop("shell.txt") == "by the shell\n"  # written by a command, which is no patch
    assert files == after
    assert changed >= 3


@pytest.mark.parametrize("name", SESSIONS)
def test_commands_have_their_outcome_and_time(name: str) -> None:
    *_, last = (call for call in calls(name) if call.kind == "command")
    assert last.exit_code == 3
    assert last.took is not None
    assert 0.3 <= last.took < 60


PATCH = """*** Begin Patch
*** Update File: a b.py
@@ def f():
 x
-old

+new
*** End of File
*** Add File: new.txt
+one
+
*** Delete File: gone.txt
*** End Patch"""
CHANGES = (
    FileChange(path="a b.py", kind="update", diff="@@ def f():\n x\n-old\n \n+new", added=1, removed=1),
    FileChange(path="new.txt", kind="add", diff="+one\n+", added=2),
    FileChange(path="gone.txt", kind="delete"),
)


def test_patch_text() -> None:
    assert patch_changes(PATCH) == CHANGES
    assert patch_changes(f"cd x && apply_patch <<'EOF'\n{PATCH}\nEOF\n") == CHANGES
    assert patch_changes("no patch") == ()
    assert patch_changes("*** Begin Patch\n*** Add File: torn.txt\n+half") == (
        FileChange(path="torn.txt", kind="add", diff="+half", added=1),
    )


@pytest.mark.parametrize(
    "tool",
    [
        describe("apply_patch", None, {"input": PATCH}),
        describe("apply_patch", None, json.dumps({"input": PATCH})),
        describe("shell", None, {"command": ["apply_patch", PATCH]}),
        describe("shell", None, {"command": ["bash", "-lc", f"apply_patch <<'EOF'\n{PATCH}\nEOF"]}),
        describe("exec_command", None, {"cmd": f"apply_patch <<'EOF'\n{PATCH}\nEOF"}),
        describe_custom("apply_patch", None, PATCH),
        describe_custom("exec", None, f"await tools.apply_patch({json.dumps(PATCH)}); text('ok')"),
    ],
)
def test_every_form_of_a_call(tool: object) -> None:
    assert (tool.kind, tool.changes) == ("patch", CHANGES)


def test_applied_changes_of_old_events() -> None:
    new = FileChange(path="/a", kind="add", diff="+x", added=1)
    diff = "@@ -1 +1 @@\n-x\n+y"
    moved = FileChange(path="/b", kind="update", diff=diff, moved_to="/c", added=1, removed=1)
    detail = {"unified_diff": f"{diff}\n", "move_path": "/c"}
    assert applied_changes({"/a": {"add": {"content": "x\n"}}, "/b": {"update": detail}}) == (new, moved)
    typed = {"/a": {"type": "add", "content": "x"}, "/b": detail | {"type": "update"}}
    assert applied_changes(typed) == (new, moved)
    odd = {"/a": None, "/b": {"type": "update"}, "/c": {"type": 1}}
    assert applied_changes(odd) == (FileChange(path="/b", kind="update"),)


def test_claude_asks_without_context() -> None:
    edits = {"file_path": "/a", "edits": [{"old_string": "x\ny", "new_string": "z"}, {"new_string": "n\n"}]}
    assert claude.asked_changes("MultiEdit", edits) == (
        FileChange(path="/a", kind="update", diff="@@\n-x\n-y\n+z\n@@\n+n", added=2, removed=2),
    )
    assert claude.asked_changes("Write", {"file_path": "/a", "content": 5}) == (
        FileChange(path="/a", kind="update"),
    )
    assert claude.asked_changes("Edit", {"file_path": None}) == ()
    for broken in (b"{", b'{"structuredPatch": 1}', b'{"filePath": "/a", "structuredPatch": [1, {}]}'):
        assert not any(change.diff for change in claude.applied_changes(broken))


def test_long_diffs_are_cut_and_counted_whole() -> None:
    (short,) = file_changes([whole_file("/a", "add", "x\n")])
    assert not short.is_cut
    (cut,) = file_changes([whole_file("/a", "add", "line\n" * 20_000)])
    assert (cut.is_cut, cut.added) == (True, 20_000)
    assert len(cut.diff) < 33_000
    many = file_changes([Diff(path=str(n), kind="update", lines=["+" + "x" * 30_000]) for n in range(20)])
    assert len(many) == 20
    assert 0 < sum(bool(change.diff) for change in many) < 20
    assert all(change.added == 1 and (change.diff or change.is_cut) for change in many)
