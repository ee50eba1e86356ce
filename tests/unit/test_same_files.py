"""Files that two live workers have edited: which edits records name, and whose files are the same."""

import pytest
from msgspec.structs import replace

from agentdash.engine.edits import same_files
from agentdash.engine.reduce.thread import reduce_thread
from agentdash.model import events as e
from agentdash.model.changes import Edit, FileChange
from agentdash.model.git import Repository
from agentdash.model.states import State
from agentdash.model.thread import Thread
from agentdash.model.worker import Agent, Assessment, Worker

NOW = 10_000.0
MAIN = Repository("/r", common="/r/.git")
TREE = Repository("/r/.trees/fix", common="/r/.git", worktree="fix")
OTHER = Repository("/s", common="/s/.git")


def worker(name: str, git: Repository | None, *paths: str, at: float = NOW - 60, parent: str = "") -> Worker:
    edits = tuple(Edit(path, at, f"apply_patch update {path}") for path in paths)
    assessment = Assessment(State.RUNNING, at, "")
    return Worker(
        name, "codex-thread", name, Agent("codex"), assessment, git=git, edits=edits, parent=parent or None
    )


@pytest.mark.parametrize(
    ("workers", "expected"),
    [
        ([worker("a", MAIN, "/r/x.py"), worker("b", MAIN, "/r/x.py")], {"a": "x.py b", "b": "x.py a"}),
        ([worker("a", MAIN, "/r/d/x"), worker("b", TREE, "/r/.trees/fix/d/x")], {"a": "d/x b", "b": "d/x a"}),
        ([worker("a", MAIN, "/r/x"), worker("b", MAIN, "/r/y")], {}),
        ([worker("a", MAIN, "/r/x"), worker("b", OTHER, "/s/x")], {}),
        ([worker("a", MAIN, "/r/x"), worker("b", None, "/r/x")], {}),  # not held any more
        ([worker("a", MAIN, "/r/x"), worker("b", MAIN, "/r/x", at=NOW - 1_801)], {}),
        ([worker("a", MAIN, "/r/x"), worker("b", MAIN, "/r/x", parent="a")], {}),
        ([worker("a", MAIN, "/tmp/x"), worker("b", MAIN, "/tmp/x")], {}),
        (
            [worker("p", MAIN), *(worker(name, MAIN, "/r/x", parent="p") for name in "ab")],
            {"a": "x b", "b": "x a"},
        ),
    ],
)
def test_whose_files_are_the_same(workers: list[Worker], expected: dict[str, str]) -> None:
    editors = [each for each in workers if each.edits and each.git]
    found = same_files(editors, {each.id: each for each in workers}, NOW)
    assert {ident: " ".join((file.path, file.name)) for ident, (file,) in found.items()} == expected


def edits(start: e.CallStarted, **ended: object) -> list[str]:
    thread = reduce_thread(Thread("t", cwd="/r"), start)
    end = e.CallEnded(at=2.0, thread="t", call="1", **ended)  # type: ignore[arg-type]
    return [edit.path for edit in reduce_thread(thread, end).edits]


def command(script: str) -> e.CallStarted:
    return e.CallStarted(
        at=1.0, thread="t", call="1", kind="command", tool="exec", text=script, script=script
    )


@pytest.mark.parametrize(
    ("script", "paths"),
    [
        ("sed -i s/a/b/ x.py ../s/y.py", ["/r/x.py", "/s/y.py"]),
        ("sed -i.bak 's|$a|*b|' /r/x.py", ["/r/x.py"]),
        ("sed -i s/a/b/ *.py", []),
        ("sed -i s/a/b/ $F", []),
        ("sed -i s/a/b/ x.py && make", []),
        ("sed -i -e s/a/b/ x.py", []),
        ("sed -n 1,5p x.py", []),
        ("sed -i 's/a/b/ x.py", []),
    ],
)
def test_sed_only_where_the_record_names_the_file(script: str, paths: list[str]) -> None:
    assert edits(command(script), exit_code=0) == paths
    assert edits(command(script), exit_code=1) == []


def test_patches() -> None:
    changes = FileChange("x.py", "update"), FileChange("a", "update", moved_to="b")
    asked = replace(command("update"), kind="patch", tool="apply_patch", changes=changes)
    assert edits(asked) == ["/r/x.py", "/r/b"]
    assert edits(asked, changes=(FileChange("/r/y.py", "add"),)) == ["/r/y.py"]
    assert edits(asked, outcome="refused-by-user") == []
