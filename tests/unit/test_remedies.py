"""Remedies: which directory, in which form, and words where nothing narrow enough exists.

`tests/live/test_remedies.py` applies them to the real Codex.
"""

import os
import shlex
import tomllib
from pathlib import Path

import pytest
from msgspec.structs import replace

from agentdash.agents.state_paths import state_paths
from agentdash.collect.clock import SystemClock
from agentdash.collect.sources.denied_paths import DeniedPathSource, path_kinds
from agentdash.engine.judge.findings.remedies import remedy_for
from agentdash.engine.judge.findings.remedy_places import place_of
from agentdash.model import events as e
from agentdash.model.denials import Denial, Operation, PathFacts, PathKind, Remedy
from agentdash.model.policy import Filesystem, Network, Policy, PolicyRule
from agentdash.model.requested import Requested
from agentdash.sandbox.denials.programs import AGENTS
from tests.unit.story import CWD, WORKSPACE, T, begun, called, ended, fleet, worker

FACTS = PathFacts(workspaces=(CWD,))
D = PathKind.DIRECTORY
GONE = PathKind.MISSING


def file_remedy(
    path: str, operation: Operation = "create", *, policy: Policy | None = WORKSPACE, facts: PathFacts = FACTS
) -> Remedy | None:
    denial = Denial(what="filesystem", operation=operation, certainty="certain", quote="x", target=path)
    return remedy_for(denial, policy, facts)


def network_remedy(target: str | None, *, policy: Policy = WORKSPACE) -> Remedy | None:
    denial = Denial(what="network", operation="connect", certainty="certain", quote="", target=target)
    return remedy_for(denial, policy, FACTS)


def settings_once(remedy: Remedy | None) -> dict[str, object]:
    """Return what the options of the command for one run set, as TOML."""
    words = shlex.split(remedy.once.rpartition("&& ")[2])
    assert (words[0], set(words[1::2])) == ("codex", {"-c"})
    return tomllib.loads("\n".join(words[2::2]))


# ---------------------------------------------------------------- places


@pytest.mark.parametrize(
    ("path", "operation", "kinds", "place"),
    [
        ("/data/board/kanban.db", "sqlite", {}, "/data/board"),
        ("/data/board/new/x", "create", {"/data/board/new": GONE, "/data/board": D}, "/data/board"),
        ("/data/board/new", "mkdir", {"/data/board/new": GONE, "/data/board": D}, "/data/board"),
        ("/data/board", "write", {"/data/board": D}, "/data/board"),
        ("/data/sets/board", "delete", {"/data/sets/board": D, "/data/sets": D}, "/data/sets"),
        ("/data/ws/.git/worktrees/w/index.lock", "git", {}, "/data/ws/.git"),
        ("/home/dev/.npm/_cacache/index-v5/ad/51/c7", "create", {}, "/home/dev/.npm/_cacache"),
        ("/home/dev/.npm/_cacache", "mkdir", {"/home/dev/.npm/_cacache": GONE, "/home/dev/.npm": D},
         "/home/dev/.npm"),
    ],
)  # fmt: skip
def test_nearest_existing_directory(
    path: str, operation: Operation, kinds: dict[str, PathKind], place: str
) -> None:
    found = place_of(path, operation, PathFacts(kinds=kinds))
    assert (found.directory, found.create, found.obstacle) == (place, False, None)
    assert found.known is (place in kinds)


WIDE = (
    "/var/x", "/var/lib/dpkg/lock", "/srv/x", "/x", "/data/x", "/run/x/y", "/mnt/disk/x",
    "/media/dev/stick/x",
    "/Volumes/Disk/x", "/home/dev/.bashrc", "/home/x", "/root/.profile", "/Users/dev/.zshrc", "/Users/x",
    "/var/home/dev/x", "/mnt/c/Users/dev/x", "/home/dev/.ssh/known_hosts", "/home/dev/.codex/config.toml",
    "/home/dev/.codex/rules/default.rules", "/home/dev/project/.codex/config.toml", "/home/dev/.aws/x",
    "/home/dev/.config/x.toml", "/home/dev/.local/bin/tool", "/home/dev/.cache/x", "/srv/alice/.bashrc",
    "/private/etc/x", "/Library/x/y",
)  # fmt: skip


@pytest.mark.parametrize("path", WIDE)
@pytest.mark.parametrize("operation", ["create", "delete"])
def test_wide_places_get_words(path: str, operation: Operation) -> None:
    remedy = file_remedy(path, operation)
    assert (remedy.where, remedy.once) == (None, None)
    assert "outside the sandbox" in remedy.text


@pytest.mark.parametrize(
    ("path", "facts", "words"),
    [
        ("/srv/people/alice/x", PathFacts(homes=("/srv/people/alice",)), "is a home directory"),
        ("/srv/people/alice/.config/x", PathFacts(homes=("/srv/people/alice",)), "shared by many programs"),
        ("/srv/people/x", PathFacts(homes=("/srv/people/alice",)), "contains home directories"),
        ("/data/big/x", PathFacts(kinds={"/data/big": PathKind.MOUNT}), "is a whole disk"),
        ("/data/big/x", PathFacts(kinds={"/data/big": PathKind.LINK}), "is a symbolic link"),
    ],
)
def test_places_that_must_not_be_opened(path: str, facts: PathFacts, words: str) -> None:
    remedy = file_remedy(path, facts=facts)
    assert (remedy.once, words in remedy.text) == (None, True)


@pytest.mark.parametrize("path", ["board/x", "~/board/x", "/data/bo…/x", "/data/\ufffd/x"])
def test_inexact_path_has_no_remedy(path: str) -> None:
    assert file_remedy(path) is None


# ---------------------------------------------------------------- forms


def test_configuration_lies_in_the_codex_home() -> None:
    for facts, file in (
        (FACTS, "~/.codex/config.toml"),
        (PathFacts(codex_home="/srv/codex"), "/srv/codex/config.toml"),
        (PathFacts(codex_home="/home/dev/.codex", homes=("/home/dev",)), "~/.codex/config.toml"),
    ):
        remedy = file_remedy("/data/board/x", facts=facts)
        assert (remedy.where or "").startswith(f"{file}, at the end")


@pytest.mark.parametrize(
    "policy",
    [
        replace(WORKSPACE, rules=(*WORKSPACE.rules, PolicyRule("/data/board", "write"))),
        Policy(Filesystem.UNRESTRICTED, Network.ON, enforced_by="nobody"),
        Policy(Filesystem.UNKNOWN),
    ],
)
def test_what_the_policy_allows_has_no_remedy(policy: Policy) -> None:
    assert file_remedy("/data/board/x", policy=policy) is None


def test_missing_names_that_codex_protects() -> None:
    """They are read-only in a workspace that is writable itself."""
    facts = PathFacts(
        kinds={f"{CWD}/{name}": GONE for name in (".git", ".git/config", ".codex", ".codex/x")} | {CWD: D},
        workspaces=(CWD,),
    )
    repository = file_remedy(f"{CWD}/.git/config", facts=facts)
    assert (repository.once or "").startswith(f"mkdir -p {CWD}/.git && codex -c ")
    rules = file_remedy(f"{CWD}/.codex/x", facts=facts)
    assert (rules.where, rules.once) == (None, None)
    assert "credentials or rules" in rules.text


def test_denied_entry_of_a_profile() -> None:
    policy = replace(WORKSPACE, rules=(*WORKSPACE.rules, PolicyRule("/data/board", "deny")))
    remedy = file_remedy("/data/board/x", policy=policy)
    assert (remedy.once, "`deny` entry" in remedy.text) == (None, True)


# ---------------------------------------------------------------- network


def test_network_for_hosts_only() -> None:
    assert settings_once(network_remedy("example.com")) == {
        "sandbox_workspace_write": {"network_access": True}
    }
    for target in (None, "localhost", "127.0.0.1", "::1", "/var/run/docker.sock"):
        remedy = network_remedy(target)
        assert (remedy.where, remedy.once) == (None, None)
        assert "network_access" not in remedy.text


# ---------------------------------------------------------------- the disk, and workers


def test_what_is_at_paths(tmp_path: Path) -> None:
    home, board = tmp_path / "alice", tmp_path / "board"
    home.mkdir()
    (home / ".bashrc").touch()
    board.mkdir()
    (board / "link").symlink_to("/etc")
    os.mkfifo(board / "pipe")
    kinds = path_kinds([str(home / ".bashrc"), str(board / "no/x"), str(board / "link"), str(board / "pipe")])
    names = {path.removeprefix(f"{tmp_path}/"): kind for path, kind in kinds.items() if str(tmp_path) in path}
    del names[str(tmp_path)]
    assert names == {
        "alice": PathKind.HOME,
        "alice/.bashrc": PathKind.FILE,
        "board": PathKind.DIRECTORY,
        "board/no": PathKind.MISSING,
        "board/no/x": PathKind.MISSING,
        "board/link": PathKind.LINK,
        "board/pipe": PathKind.OTHER,
    }


@pytest.mark.parametrize("here", [True, False])
async def test_paths_of_threads_of_this_machine_only(tmp_path: Path, here: bool) -> None:
    cwd, board = str(tmp_path) if here else "/nonexistent/project", tmp_path / "board"
    output = f"touch: cannot touch '{tmp_path}/board/x': Read-only file system"
    policy = replace(WORKSPACE, rules=(PolicyRule("/", "read"), PolicyRule("/nonexistent", "write")))
    begin = [
        replace(event, cwd=cwd) if isinstance(event, e.ThreadStarted | e.PolicySet) else event
        for event in begun(policy=policy)
    ]
    known = fleet(begin, called(text=f"touch {board}/x"), ended(output=output, exit_code=1))
    assert known.threads[T].denials
    board.mkdir()
    source = DeniedPathSource(SystemClock())
    seen = await source.poll(known)
    found = {path: kind for event in seen if isinstance(event, e.PathsSeen) for path, kind in event.paths}
    assert found.get(str(board)) == (PathKind.DIRECTORY if here else None)
    assert await source.poll(known) == []


def test_profile_that_only_the_request_states() -> None:
    """Codex 0.138 to 0.150 apply profiles, and their logs do not name them."""
    asked = Requested(given=replace(WORKSPACE, profile="dev"))
    found = worker(
        begun(version="0.145.0"),
        e.PolicyRequested(at=0.0, worker=T, requested=asked),
        called(text="echo x > /data/board/kanban.db"),
        ended(output="bash: /data/board/kanban.db: Read-only file system", exit_code=1),
    )
    (entry,) = found.sandbox.denials
    expected = {"permissions": {"dev": {"filesystem": {"/data/board": "write"}}}}
    assert settings_once(entry.remedy) == expected


@pytest.mark.parametrize("name", sorted(AGENTS))
def test_only_lists_that_exist_are_named(name: str) -> None:
    denial = Denial(what="filesystem", operation="write", certainty="likely", quote="EROFS", nested=name)
    remedy = remedy_for(denial, WORKSPACE, PathFacts())
    assert (remedy is not None) == (name in state_paths())
    assert remedy is None or f"`agentdash preflight --worker {name}`" in remedy.text


def test_profile_that_hides_the_helper() -> None:
    """Nothing runs under it, in no new Codex either: its entries do not let Codex's own program be read."""
    helper = "/home/dev/.codex/tmp/arg0-linux/codex-arg0x/codex-linux-sandbox"
    quote = f"bwrap: execvp {helper}: No such file or directory"
    denial = Denial(what="sandbox", operation="start", certainty="certain", quote=quote)
    rules = (PolicyRule("/usr", "read"), PolicyRule(CWD, "write"))
    hiding = replace(WORKSPACE, profile="dev", rules=rules)
    found = remedy_for(denial, hiding, PathFacts())
    opened = tomllib.loads(found.text)["permissions"]["dev"]["filesystem"]
    assert opened["/home/dev/.codex/tmp"] == "read"
    for policy in (replace(WORKSPACE, profile="dev"), replace(WORKSPACE, rules=rules)):
        assert remedy_for(denial, policy, PathFacts()) == Remedy("codex doctor")


# ---------------------------------------------------------------- homes


def remedy_text(cwd: str, target: str, script: str, *before: e.Event, path: str = "/x/rollout") -> str:
    """Return the remedy for a file that may not be written, in a session of another machine."""
    policy = replace(WORKSPACE, rules=(PolicyRule("/", "read"), PolicyRule(cwd, "write")))
    found = worker(
        e.FileSeen(thread=T, at=99, path=path, size=1, modified=99),
        e.ThreadStarted(thread=T, at=100, line=1, cwd=cwd, version="0.169.0"),
        e.TurnStarted(thread=T, at=100, line=2),
        e.PolicySet(thread=T, at=100, line=3, policy=policy, origin="turn_context", cwd=cwd),
        *before,
        replace(called(text=script), cwd=cwd),
        ended(output=f"touch: cannot touch '{target}': Read-only file system", exit_code=1),
    )
    (entry,) = found.sandbox.denials
    return entry.remedy.text


PRINTED = (
    called("c0", "env", at=100.5),
    ended("c0", "PATH=/bin\nHOME=/p/people/ann\nPWD=/data/x\n", at=100.6),
)


@pytest.mark.parametrize(
    ("cwd", "target", "script", "before", "path"),
    [
        ("/home/ann/proj", "/home/ann/notes", "touch /home/ann/notes", (), "/x/rollout"),
        ("/mnt/c/Users/ann/p", "/mnt/c/Users/ann/notes", "touch ../notes", (), "/x/rollout"),
        ("/p/people/ann/proj", "/p/people/ann/notes", "touch ../notes", (), "/x/rollout"),
        ("/data/x", "/p/people/ann/notes", "touch /p/people/ann/notes", PRINTED, "/x/rollout"),
        ("/data/x", "/p/people/ann/notes", "touch ~/notes", (), "/x/rollout"),
        ("/data/x", "/p/people/ann/notes", 'touch "$HOME/notes"', (), "/x/rollout"),
        ("/data/x", "/p/people/ann/notes", "touch $FILE", (), "/p/people/ann/.codex/sessions/x"),
    ],
)
def test_no_home_becomes_a_writable_root(
    cwd: str, target: str, script: str, before: tuple[e.Event, ...], path: str
) -> None:
    text = remedy_text(cwd, target, script, *before, path=path)
    assert "writable_roots" not in text
    assert text.startswith("approve that command")


# ---------------------------------------------------------------- what no setting opens


@pytest.mark.parametrize(
    ("excluded", "script", "is_named"),
    [
        ("git", "git init /x", True),
        ("git *", "git init /x", True),
        ("git init:*", "git init /x", True),
        ("gi", "git init /x", False),
    ],
)
def test_excluded_command_that_ran_inside(excluded: str, script: str, is_named: bool) -> None:
    by_agent = replace(WORKSPACE, enforced_by="agent")
    denial = Denial("filesystem", "mkdir", "certain", "EROFS", "/x/.git")
    found = remedy_for(denial, by_agent, PathFacts(excluded=(excluded,)), script=script)
    assert (f"`{excluded}`" in found.text) is is_named
