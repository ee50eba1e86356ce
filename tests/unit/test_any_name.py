"""Session logs under any name, and from the standard input: replayed, exported and checked as any other."""

import json
import shutil
from pathlib import Path
from typing import NamedTuple

import click
import pytest
import zstandard
from click.testing import CliRunner

from agentdash.agents.codex.home import CodexHome, thread_id
from agentdash.agents.session_logs import log_of
from agentdash.cli import app
from agentdash.replay.family import find_family
from tests.unit.rollout_files import DATA, VERSIONS, files

NO_HOME = CodexHome(Path("/nonexistent"))
TRANSCRIPTS = sorted((DATA / "claude").glob("*/*/**/*.jsonl"))
assert TRANSCRIPTS


@pytest.fixture(autouse=True)
def _own_state(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep the digests of these audits out of the user's own state."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))


class Done(NamedTuple):
    """A command that has ended."""

    code: int
    out: str
    err: str = ""


def run(*arguments: object, stdin: bytes | None = None) -> Done:
    done = CliRunner().invoke(app, [*map(str, arguments)], input=stdin, standalone_mode=False)
    if done.exception is not None:
        assert isinstance(done.exception, click.UsageError)
        return Done(2, str(done.exception))
    return Done(done.return_value, done.stdout, done.stderr)


def check_of(*arguments: object, stdin: bytes | None = None) -> dict[str, tuple[str, str, str]]:
    document = json.loads(run("check", *arguments, "--json", stdin=stdin).out)
    return {
        thread["id"]: (thread["state"], thread["verdict"], thread["agent"]) for thread in document["threads"]
    }


def test_thread_of_a_transcript_is_in_its_first_lines(tmp_path: Path) -> None:
    for number, path in enumerate(TRANSCRIPTS):
        named = log_of(path)
        copied = log_of(Path(shutil.copy(path, tmp_path / f"attached {number}.jsonl")))
        assert named is not None
        assert copied is not None
        assert (copied.thread, copied.agent) == (named.thread, "claude")


@pytest.mark.parametrize("version", VERSIONS)
def test_check_of_another_name(version: str, tmp_path: Path) -> None:
    (path,) = files(version, "kanban-board")
    expected = check_of(path)
    assert thread_id(path) in expected
    content = path.read_bytes()
    copied = tmp_path / "rollout.jsonl"
    copied.write_bytes(content)
    packed = tmp_path / "packed" / "attached.jsonl.zst"
    packed.parent.mkdir()
    packed.write_bytes(zstandard.compress(content))
    assert check_of(copied) == expected
    assert check_of(packed) == expected
    assert check_of(packed.parent) == expected
    assert check_of("-", stdin=content) == expected
    assert check_of("-", stdin=packed.read_bytes()) == expected


def test_export_of_another_name_and_of_standard_input(tmp_path: Path) -> None:
    (path,) = files("0.169.0", "kanban-board")
    copied = Path(shutil.copy(path, tmp_path / "session (1).jsonl"))
    exports = [tmp_path / f"{number}.md" for number in range(3)]
    assert run("replay", path, "--export", exports[0]).code == 0
    assert run("replay", copied, "--export", exports[1]).code == 0
    assert run("replay", "-", "--export", exports[2], stdin=path.read_bytes()).code == 0
    texts = [export.read_text() for export in exports]
    assert "blocked-sandbox" in texts[0]
    assert texts == [texts[0]] * 3


def test_family_of_attached_files(tmp_path: Path) -> None:
    family = files("0.169.0", "spawn")
    for number, path in enumerate(family):
        shutil.copy(path, tmp_path / f"attached {number}.jsonl")
    shutil.copy(files("0.169.0", "full-access")[0], tmp_path / "other.jsonl")
    (tmp_path / "notes.jsonl").write_text('{"a": 1}\n')
    found = find_family(NO_HOME, str(tmp_path / "attached 1.jsonl"))
    assert [path.name for path in found.paths] == ["attached 0.jsonl", "attached 1.jsonl", "attached 2.jsonl"]
    assert found.thread == thread_id(family[1])


@pytest.mark.parametrize("content", [b"", b"hello\n", b'{"a":1}\n', b"\xff" * 100, b"[" * 100_000])
def test_what_is_no_session_log_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(content)
    out = tmp_path / "x.md"
    for target, stdin in ((path, None), ("-", content)):
        named = "<stdin>" if stdin is not None else path.name  # not the path of a copy
        refused = run("replay", target, "--export", out, stdin=stdin)
        assert named in refused.out
        assert named in run("check", target, stdin=stdin).err
        assert "agentdash-" not in refused.out
        assert (refused.code, "no session log" in refused.out) == (2, True)
        assert run("check", target, stdin=stdin).code == 2
    assert not out.exists()


def test_directory_with_files_that_are_no_logs(tmp_path: Path) -> None:
    """They may be logs that were damaged: a directory with them is not clean."""
    shutil.copy(files("0.169.0", "full-access")[0], tmp_path)
    (tmp_path / "notes.txt").write_text("no log by its name\n")
    (tmp_path / "session_index.jsonl").write_text('{"id":"x","thread_name":"y"}\n')
    assert run("check", tmp_path).code == 0
    (tmp_path / "truncated.jsonl").write_text("")
    done = run("check", tmp_path)
    assert (done.code, "truncated.jsonl" in done.err) == (2, True)
