"""Places that are not the user's: what a sandbox has for itself, and what no remedy may open."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from agentdash.engine.judge.findings.remedies import remedy_for
from agentdash.engine.link.process_tree import with_tmpdir
from agentdash.engine.reduce.fleet import reduce
from agentdash.engine.snapshot import build_snapshot
from agentdash.model import events as e
from agentdash.model.denials import Denial, PathFacts
from agentdash.model.fleet import Fleet
from agentdash.model.observation import Applied
from agentdash.model.policy import TMPDIR, Filesystem, Network, Policy, PolicyRule
from agentdash.model.process import Launcher
from agentdash.model.state_paths import Mount, MountTable
from tests.unit.story import (
    CWD,
    HOST,
    SANDBOXED,
    WORKSPACE,
    T,
    begun,
    called,
    ended,
    held,
    process,
    worker,
)

DISK, TMPFS, BIND = "254:0", "0:44", "0:30"


def mount(number: int, point: str, device: str = DISK, fstype: str = "ext4", **more: bool) -> Mount:
    return Mount(number, 0 if number == 1 else 1, point, fstype=fstype, device=device, **more)


def tmpfs(number: int, point: str, *, private: bool = True, fstype: str = "tmpfs") -> Mount:
    return mount(number, point, TMPFS, fstype, private=private)


READ_ONLY_ROOT = mount(1, "/", read_only=True)
WORK = mount(2, CWD)
TMP = mount(3, "/tmp")


@pytest.mark.parametrize(
    ("mounts", "kinds", "lost"),
    [
        ((tmpfs(1, "/"), WORK, TMP), [], "/, /home/dev"),  # `:minimal`, `:root = deny` (0.169, 0.171)
        ((READ_ONLY_ROOT, WORK, TMP, tmpfs(4, "/home/dev"), mount(5, CWD)), [], "/home/dev"),
        ((READ_ONLY_ROOT, WORK, TMP, tmpfs(4, "/dev"), tmpfs(5, "/dev/shm"), tmpfs(6, "/proc")), [], ""),
        (
            (tmpfs(1, "/", private=False), WORK, TMP),
            ["filesystem-wider"],
            "",
        ),  # of the user, mounted outside too
        ((tmpfs(1, "/"), mount(4, "/home/dev"), WORK, TMP), ["filesystem-wider"], "/"),  # the home is let in
        ((READ_ONLY_ROOT, WORK, TMP, mount(4, "/home/dev")), ["filesystem-wider"], ""),
        ((Mount(1, 0, "/", fstype="tmpfs"), Mount(2, 1, CWD), Mount(3, 1, "/tmp")), ["filesystem-wider"], ""),
    ],
)
def test_what_is_mounted_where_it_may_write(mounts: tuple[Mount, ...], kinds: list[str], lost: str) -> None:
    found = worker(
        begun(policy=WORKSPACE),
        called(),
        e.HostSeen(at=90, platform="linux", kernel=HOST),
        process(50, started=90.0, agent="codex"),
        e.MountsSeen(at=103, namespace=2, mounts=mounts),
        process(
            77,
            50,
            started=104.0,
            kernel=SANDBOXED,
            env={"CODEX_THREAD_ID": T, "CODEX_TOOL_CALL_ID": "c1", "HOME": "/home/dev"},
        ),
        held(110),
    ).sandbox
    assert [finding.kind for finding in found.findings] == kinds
    words = f"what it writes to {lost} is lost"
    assert any(words in each.text for each in found.evidence) is bool(lost)


def test_a_root_that_the_cli_has_too_is_its_own() -> None:
    """In a container, whose root is an overlay that agentdash does not have."""
    root = mount(1, "/", "0:50", "overlay", private=True)
    inside = MountTable((root, tmpfs(2, "/x")))
    container = MountTable((root,))
    assert [inside.is_lost(path, container) for path in ("/", "/x/y")] == [False, True]
    assert [inside.is_lost(path, None) for path in ("/", "/x/y")] == [True, True]


# ---------------------------------------------------------------- the temporary directory of a CLI

TOLD = Policy(
    Filesystem.WORKSPACE,
    Network.MEDIATED,
    (PolicyRule("/", "read"), PolicyRule(CWD, "write"), PolicyRule(TMPDIR, "write")),
    enforced_by="agent",
)


def given(*roots: str) -> Policy:
    return replace(TOLD, rules=(*TOLD.rules[:2], *(PolicyRule(root, "write") for root in roots)))


@pytest.mark.parametrize(
    ("above", "own", "roots", "is_wider"),
    [
        ({}, {"TMPDIR": "/tmp/claude-0"}, ("/tmp/claude-0",), False),
        (  # by settings.json, which the environment of its process does not show
            {},
            {"TMPDIR": "/tmp/claude-0", "CLAUDE_CODE_TMPDIR": "/home/dev/scratch/claude-0"},
            ("/home/dev/scratch/claude-0", "/tmp/claude-0"),
            False,
        ),
        (
            {"TMPDIR": "/var/scratch"},
            {"TMPDIR": "/var/scratch/claude-0"},
            ("/var/scratch/claude-0", "/tmp/claude-0"),
            False,
        ),
        (  # the command says that the home is its temporary directory
            {},
            {"TMPDIR": "/tmp/claude-0", "CLAUDE_CODE_TMPDIR": "/home/dev"},
            ("/home/dev", "/tmp/claude-0"),
            True,
        ),
        ({}, {"TMPDIR": "/tmp/claude-0"}, ("/home/dev", "/tmp/claude-0"), True),
    ],
)
def test_scratch_of_claude_code(
    above: dict[str, str], own: dict[str, str], roots: tuple[str, ...], is_wider: bool
) -> None:
    env = {"CLAUDE_CODE_SESSION_ID": T, "HOME": "/home/dev"}
    parts = (
        e.ThreadStarted(thread=T, at=100, line=1, cwd=CWD, version="2.1.332", agent="claude"),
        e.PolicySet(thread=T, at=100, line=2, policy=TOLD, origin="sandbox_instructions", cwd=CWD),
        e.MessageLogged(thread=T, at=100, line=3, role="user", text="go"),
        called(text="sleep 8"),
        e.HostSeen(at=90, platform="linux", kernel=HOST),
        process(50, started=90.0, name="claude", agent="claude", env=above),
        process(60, 50, started=103.0, name="bwrap", launcher=Launcher("bwrap", given(*roots))),
        process(
            77,
            60,
            started=104.0,
            kernel=SANDBOXED,
            argv=("bash", "-c", "eval 'sleep 8'"),
            env={**env, **own, "CLAUDE_CODE_HOST_HTTP_PROXY_PORT": "1"},
        ),
        *held(110),
    )
    (found,) = [each for each in build_snapshot(reduce(Fleet(), parts), 200).workers if each.id == T]
    assert [finding.kind for finding in found.sandbox.findings] == ["filesystem-wider"] * is_wider


def test_one_directory_that_the_policy_does_not_name_is_the_temporary_one() -> None:
    applied = with_tmpdir(Applied("bwrap", given("/real/tmp")), TOLD, "/tmp/link")
    assert applied is not None
    assert applied.policy == TOLD
    home = Applied("bwrap", given("/home/dev"))
    assert with_tmpdir(home, TOLD, "/tmp/link") == home
    both = Applied("bwrap", given("/real/tmp", "/home/dev"))
    assert with_tmpdir(both, TOLD, "/tmp/link") == both


# ---------------------------------------------------------------- homes


def remedy(cwd: str, target: str, script: str, *before: e.Event, path: str = "/x/rollout") -> str:
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
    assert entry.remedy is not None
    return entry.remedy.text


PRINTED = (
    called("c0", "env", at=100.5),
    ended("c0", "PATH=/bin\nHOME=/srv/people/ann\nPWD=/data/x\n", at=100.6),
)


@pytest.mark.parametrize(
    ("cwd", "target", "script", "before", "path"),
    [
        ("/home/ann/proj", "/home/ann/notes", "touch /home/ann/notes", (), "/x/rollout"),
        ("/mnt/c/Users/ann/p", "/mnt/c/Users/ann/notes", "touch ../notes", (), "/x/rollout"),
        ("/srv/people/ann/proj", "/srv/people/ann/notes", "touch ../notes", (), "/x/rollout"),
        ("/data/x", "/srv/people/ann/notes", "touch /srv/people/ann/notes", PRINTED, "/x/rollout"),
        ("/data/x", "/srv/people/ann/notes", "touch ~/notes", (), "/x/rollout"),
        ("/data/x", "/srv/people/ann/notes", 'touch "$HOME/notes"', (), "/x/rollout"),
        (
            "/data/x",
            "/srv/people/ann/notes",
            "touch /srv/people/ann/notes",
            (),
            "/srv/people/ann/.codex/sessions/2026/rollout",
        ),
    ],
)
def test_no_home_becomes_a_writable_root(
    cwd: str, target: str, script: str, before: tuple[e.Event, ...], path: str
) -> None:
    text = remedy(cwd, target, script, *before, path=path)
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
    denial = Denial(
        what="filesystem", operation="mkdir", certainty="certain", quote="EROFS", target="/x/.git"
    )
    found = remedy_for(denial, TOLD, PathFacts(excluded=(excluded,)), script=script)
    assert found is not None
    assert (f"`{excluded}`" in found.text) is is_named
