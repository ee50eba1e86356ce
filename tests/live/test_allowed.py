"""What was allowed in a real Codex 0.171 is no danger: by a rule, by a grant, and in memory of its own."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from agentdash.agents.codex.command_rules import parse_rules
from agentdash.collect.processes import linux
from agentdash.model.command_rules import CommandRules
from agentdash.model.state_paths import MountTable
from tests.live.clis import new_root
from tests.live.codex import UNTIL_LET_GO, install
from tests.live.conftest import OpenLab
from tests.live.programs import run
from tests.live.watched import is_observed, kinds, watching

RULES = 'prefix_rule(pattern=["tail"], decision="allow")\nprefix_rule(pattern=["git", ["fetch", "pull"]])\n'


@pytest.mark.parametrize(
    ("command", "is_out", "verdict"), [("tail -f x", True, "unverified"), ("tail -f x | cat", False, "match")]
)
async def test_rules(codex: OpenLab, command: str, is_out: bool, verdict: str) -> None:
    lab = codex({"p": [{"run": command}, {"say": "done"}]})
    (lab.workspace / "x").touch()
    (lab.home / "rules").mkdir()
    (lab.home / "rules/default.rules").write_text(RULES)
    async with watching(lab) as watched:
        lab.exec("[[p]] go")
        place = f"{lab.home}/rules/default.rules:1"
        worker = await watched.until(
            is_observed,
            lambda each: bool(each.sandbox.requested),
            lambda each: any(place in found.text for found in each.sandbox.evidence) is is_out,
            verdict=verdict,
            kind="codex-thread",
        )
        assert worker.sandbox.got.sandboxed is not is_out
        assert kinds(worker) == set()


async def test_grants(codex: OpenLab) -> None:
    board = new_root()
    wanted = {"network": {"enabled": True}, "file_system": {"write": [str(board)]}}
    ask = {"tool": "request_permissions", "args": {"reason": "to fetch", "permissions": wanted}}
    script = {
        "p": [ask, {"run": f"touch {board}/x; {UNTIL_LET_GO}"}, {"say": "one"}],
        "q": [{"run": "rm go; " + UNTIL_LET_GO}, {"say": "two"}],
    }
    features = "features.request_permissions_tool = true\nsuppress_unstable_features_warning = true"
    lab = codex(script, features)
    async with watching(lab) as watched:
        pane = await lab.tui()
        pane.submit("[[p]] go")
        await pane.answer("Would you like to grant these permissions?", "y")
        worker = await watched.until(is_observed, kind="codex-thread")
        told = worker.sandbox.configured
        assert told is not None
        assert (told.network, told.may_write(f"{board}/y"), kinds(worker)) == ("on", True, set())
        assert (board / "x").exists()
        lab.let_go()
        ended = await watched.until(lambda each: each.kind == "codex-thread" and len(each.policies) == 3)
        assert [period.origin for period in ended.policies[1:]] == ["request_permissions", "end of the grant"]
        pane.submit("[[q]] go")
        again = await watched.until(is_observed, lambda each: each.sandbox.got.network_namespace == "own")
        assert kinds(again) == set()
    (board / "x").unlink()
    board.rmdir()


async def test_a_root_in_memory_is_no_danger(codex: OpenLab) -> None:
    lab = codex(
        {"p": [{"run": f"echo x > $HOME/lost; {UNTIL_LET_GO}"}, {"say": "done"}]},
        'default_permissions = "rw"',
    )
    readable = (install().parents[2], lab.home / "tmp")
    with (lab.home / "config.toml").open("a") as config:
        config.write('[permissions.rw.filesystem]\n":minimal" = "read"\n')
        config.writelines(f'"{path}" = "read"\n' for path in readable)
        config.write('[permissions.rw.filesystem.":workspace_roots"]\n"." = "write"\n')
    async with watching(lab) as watched:
        lab.exec("[[p]] go", "--color", "never")
        worker = await watched.until(is_observed, kind="codex-thread")
        assert (worker.sandbox.verdict, kinds(worker)) == ("match", set())
        assert any("is lost" in each.text for each in worker.sandbox.evidence)
        lab.let_go()
    assert not (lab.user / "lost").exists()


# ---------------------------------------------------------------- against what is measured

GIT = 'prefix_rule(pattern=["git"])\n'
OPT = GIT + 'host_executable(name="git", paths=["/opt/git"])'
DECIDED = [
    ('prefix_rule(pattern=["git", ["fetch", "pull"]])', "git pull -v"),
    ('prefix_rule(pattern=["git", ["fetch", "pull"]])', "git push"),
    (GIT + 'prefix_rule(pattern=["git", "push"], decision="prompt")', "git push"),
    (GIT + 'prefix_rule(pattern=["git", "push"], decision="forbidden")', "git push"),
    (GIT, "/usr/bin/git x"),
    (OPT, "/usr/bin/git x"),
    (OPT, "/opt/git x"),
    ('prefix_rule(pattern=["/usr/bin/git"])', "git x"),
    ('prefix_rule(pattern=["git", "a", "b"])', "git a"),
]


def test_decisions_are_those_of_codex(tmp_path: Path) -> None:
    """`codex execpolicy check` decides on words; what a script is divided into was measured by running it."""
    check = [install(), "execpolicy", "check", "--resolve-host-executables", "--rules"]
    for number, (text, command) in enumerate(DECIDED):
        file = tmp_path / f"{number}.rules"
        file.write_text(text)
        done = run([*check, file, *command.split()], check=True)
        read = parse_rules(text, str(file))
        found = CommandRules(read.rules, read.programs).letting_out(command)
        assert (found is not None) is (json.loads(done.stdout).get("decision") == "allow"), (text, command)


OVERLAY = "lowerdir=D,upperdir=U/up,workdir=U/work"


@pytest.mark.parametrize(
    ("mounting", "is_lost"),
    [
        ("mount -t tmpfs x D", True),
        (f"mount -t tmpfs x U && mkdir U/up U/work && mount -t overlay x -o {OVERLAY} D", True),
        ("mount --bind U D", False),
        ("mount --bind S D", False),  # of a tmpfs that the user has: /dev/shm
        ("true", False),
    ],
)
def test_what_is_lost(tmp_path: Path, mounting: str, is_lost: bool) -> None:
    place, other = tmp_path / "place", tmp_path / "other"
    place.mkdir()
    other.mkdir()
    shared = Path(f"/dev/shm/agentdash-{os.getpid()}")
    shared.mkdir()
    script = mounting.replace("D", str(place)).replace("U", str(other)).replace("S", str(shared))
    script = f"{script} && echo x > {place}/made; echo ready; exec cat"
    argv = ["unshare", "-r", "-m", "--propagation", "private", "sh", "-ec", script]
    try:
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            table = MountTable(linux.mounts(process.pid) or ())
            assert table.is_lost(f"{place}/made", None) is is_lost
            process.communicate()
        kept = [folder for folder in (place, other, shared) if (folder / "made").exists()]
        assert bool(kept) is not is_lost
    finally:
        (shared / "made").unlink(missing_ok=True)
        shared.rmdir()
