"""Findings about the sandbox of Claude Code, from recorded transcripts with known truth and from settings."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agentdash.agents.claude.home import thread_id
from agentdash.agents.claude.settings import ClaudeRequests, parse_arguments, parse_role, read_request
from agentdash.agents.claude.transcript.reader import TranscriptReader
from agentdash.agents.launchers import read_launcher
from agentdash.collect.processes.env_filter import filter_environment
from agentdash.engine.reduce.fleet import reduce
from agentdash.engine.snapshot import build_snapshot
from agentdash.model import events as e
from agentdash.model.evidence import EvidenceSource
from agentdash.model.findings import FindingKind
from agentdash.model.fleet import Fleet
from agentdash.model.observation import SandboxObservation
from agentdash.model.policy import Filesystem, Network
from agentdash.model.process import Process, ProcessKey
from agentdash.model.requested import RequestField, RequestLayer
from agentdash.model.worker import Worker

DATA = Path(__file__).parents[1] / "data" / "claude"
LONG_AGO = 1_700_000_000
NOW = 1_800_000_000.0


def workers_of(
    tmp_path: Path, version: str, case: str, *, settings: str | None = None, written: float = LONG_AGO
) -> list[Worker]:
    """Return the workers of a recorded case, as after its end, with settings that were written then."""
    home = tmp_path / "home"
    shutil.copytree(DATA / version / case, home)
    if settings is not None:
        (home / "settings.json").write_text(settings)
    for path in [home / "settings.json", *home.glob("agents/*")]:
        os.utime(path, (written, written))
    fleet = Fleet()
    for path in sorted(home.glob("projects/**/*.jsonl"), key=lambda path: len(path.parts)):
        thread = thread_id(path) or ""
        seen = e.FileSeen(at=NOW, thread=thread, path=str(path), size=1, modified=NOW)
        fleet = reduce(fleet, [seen, *TranscriptReader(thread).read(path.read_bytes().splitlines())])
        request = ClaudeRequests().read_past(fleet.threads[thread], NOW)
        if request is not None:
            fleet = reduce(fleet, [e.PolicyRequested(at=NOW, worker=thread, requested=request)])
    return list(build_snapshot(reduce(fleet, [e.ProcessesCounted(at=NOW)]), NOW).workers)


def kinds_of(worker: Worker) -> set[FindingKind]:
    return {f.kind for f in worker.sandbox.findings if f.severity != "info"}


SILENT, COMMAND = FindingKind.SANDBOX_SILENTLY_OFF, FindingKind.SANDBOX_OFF_FOR_COMMAND


DENIED = {FindingKind.DENIED_FILESYSTEM}
CASES: list[tuple[str, set[FindingKind], set[FindingKind]]] = [
    ("off", set(), set()),
    ("on", set(), DENIED),
    ("on-without-bwrap", {SILENT}, {SILENT}),  # the command printed what the kernel has of it
    ("on-cannot-start", {SILENT}, {SILENT}),
    ("off-for-command", set(), {COMMAND}),  # of older ones nothing states which sandbox there was to leave
    ("excluded-command", set(), {COMMAND}),
    ("network-denied", set(), {FindingKind.DENIED_NETWORK}),
    ("provider-fails", set(), set()),
]
"""Findings in transcripts before 2.1.330, which do not describe the sandbox, and since then."""


@pytest.mark.parametrize("version", ["2.1.197", "2.1.240", "2.1.330"])
@pytest.mark.parametrize(("case", "older", "newer"), CASES)
def test_findings_of_recorded_cases(
    tmp_path: Path, version: str, case: str, older: set[FindingKind], newer: set[FindingKind]
) -> None:
    (worker,) = workers_of(tmp_path, version, case)
    kinds = newer if version == "2.1.330" else older
    assert kinds_of(worker) == kinds
    assert (worker.sandbox.verdict == "mismatch") is bool(kinds & {SILENT, COMMAND})
    assert version == "2.1.330" or kinds or worker.sandbox.verdict == "unverified"


@pytest.mark.parametrize(("version", "escalates"), [("2.1.197", True), ("2.1.240", True), ("2.1.330", False)])
def test_mode_of_a_sub_agent(tmp_path: Path, version: str, escalates: bool) -> None:
    """2.1.330 refuses the calls of the sub-agent; before it runs them without a question."""
    session, child = workers_of(tmp_path, version, "child-mode")
    assert kinds_of(session) == set()
    assert (FindingKind.CHILD_MODE_ESCALATED in kinds_of(child)) is escalates
    wrote = json.loads((DATA / version / "child-mode" / "truth.json").read_text())["wrote"]
    assert wrote is escalates


@pytest.mark.parametrize(
    "settings", ["{}", '{"sandbox": {"enabled": false}}', "{broken", '{"sandbox": {"enabled": "yes"}}']
)
def test_nothing_is_stated_of_a_sandbox_that_is_not_switched_on(tmp_path: Path, settings: str) -> None:
    (worker,) = workers_of(tmp_path / "a", "2.1.330", "on-without-bwrap", settings=settings)
    (newer,) = workers_of(tmp_path / "b", "2.1.330", "on-without-bwrap", written=NOW)  # than the session
    assert worker.sandbox.findings == newer.sandbox.findings == ()


# ---------------------------------------------------------------- settings and arguments


def write(path: Path, settings: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(settings if isinstance(settings, str) else json.dumps(settings))


def asked(tmp_path: Path, *argv: str) -> Any:
    home, cwd = tmp_path / "u" / ".claude", tmp_path / "ws"
    return read_request(parse_arguments(["claude", *argv]), str(home), str(cwd), Path("/"))


def test_later_files_outrank_earlier_ones(tmp_path: Path) -> None:
    on, off = {"sandbox": {"enabled": True}}, {"sandbox": {"enabled": False}}
    write(tmp_path / "u/.claude/settings.json", on)
    assert asked(tmp_path).policy.filesystem is Filesystem.WORKSPACE
    write(tmp_path / "ws/.claude/settings.json", off)
    assert asked(tmp_path).policy.filesystem is Filesystem.UNRESTRICTED
    write(tmp_path / "ws/.claude/settings.local.json", on)
    found = asked(tmp_path)
    assert (found.policy.filesystem, found.policy.network) == (Filesystem.WORKSPACE, Network.MEDIATED)
    origin = found.origin(RequestField.FILESYSTEM)
    assert origin.layer is RequestLayer.PROJECT
    assert origin.file == str(tmp_path / "ws/.claude/settings.local.json")
    assert asked(tmp_path, "--settings", json.dumps(off)).policy.is_full_access
    assert asked(tmp_path, "--setting-sources", "project").policy.is_full_access


def test_parts_of_a_request(tmp_path: Path) -> None:
    write(
        tmp_path / "u/.claude/settings.json",
        {
            "sandbox": {
                "enabled": True,
                "filesystem": {"allowWrite": ["~/state", "/srv/x", "sub"]},
                "excludedCommands": ["docker *"],
            },
            "permissions": {"defaultMode": "acceptEdits"},
            "env": {"SECRET": "s3cret"},
        },
    )
    found = asked(tmp_path)
    own = {str(tmp_path / each) for each in ("ws", "u/state", "ws/sub")}
    assert set(found.policy.writable_roots) == own | {"/srv/x"}
    assert found.policy.approval == "acceptEdits"
    assert found.excluded == ("docker *",)
    assert "s3cret" not in repr(found)


def asked_in(cwd: Path, **env: str) -> Any:
    """Return what a process with this environment asks for."""
    kept = filter_environment(env.items())
    process = Process(ProcessKey(5, NOW), 1, "claude", ("claude", "-p", "x"), env=kept, cwd=str(cwd))
    return ClaudeRequests().read(process, None, Path("/"), NOW)


def test_other_platforms_switch_it_on_elsewhere(tmp_path: Path) -> None:
    write(tmp_path / "u/.claude/settings.json", {"sandbox": {"enabled": True, "enabledPlatforms": ["wsl"]}})
    assert asked(tmp_path).policy.is_full_access


def test_file_that_cannot_be_parsed_leaves_the_sandbox_open(tmp_path: Path) -> None:
    write(tmp_path / "u/.claude/settings.json", {"sandbox": {"enabled": True}})
    write(tmp_path / "ws/.claude/settings.json", "{")
    found = asked(tmp_path, "--permission-mode", "plan")
    assert [origin.field for origin in found.origins] == [RequestField.APPROVAL]
    assert found.policy.filesystem is Filesystem.UNKNOWN


def test_environment_places_the_configuration(tmp_path: Path) -> None:
    write(tmp_path / "c/settings.json", {"sandbox": {"enabled": True}})
    found = asked_in(tmp_path, HOME="/nonexistent", CLAUDE_CONFIG_DIR=str(tmp_path / "c"))
    assert found.policy.filesystem is Filesystem.WORKSPACE
    assert (found.since, found.is_fixed) == (NOW, True)


def test_role() -> None:
    name, found = parse_role('---\nname: "free"\r\npermissionMode: plan\n---\nx', "free.md")
    assert found is not None
    assert (name, found.policy.approval) == ("free", "plan")
    assert str(found.origins[0]) == "free.md:3: permissionMode: plan"
    assert parse_role("no front matter", "x.md") == (None, None)


# ---------------------------------------------------------------- launchers of the sandbox runtime

SOCKET = "/tmp/claude-http-1.sock"
BWRAP = [
    *("bwrap", "--new-session", "--unshare-net", "--bind", SOCKET, SOCKET),
    *("--setenv", "SANDBOX_RUNTIME", "1", "--setenv", "TMPDIR", "/tmp/claude-0"),
    *("--setenv", "HTTP_PROXY", "http://127.0.0.1:3128", "--ro-bind", "/", "/"),
    *("--bind", "/home/me/ws", "/home/me/ws", "--bind", "/tmp/claude-0", "/tmp/claude-0"),
    *("--ro-bind", "/home/me/ws/.claude", "/home/me/ws/.claude", "--", "/bin/bash", "-c", "x"),
]


def test_policy_of_the_sandbox_runtime() -> None:
    launcher = read_launcher("bwrap", BWRAP)
    assert launcher is not None
    assert launcher.policy is not None
    assert (launcher.policy.filesystem, launcher.policy.network) == (Filesystem.WORKSPACE, Network.MEDIATED)
    assert launcher.policy.writable_roots == ("/home/me/ws", "$TMPDIR")
    assert launcher.policy.may_write("/home/me/ws/.claude/x") is False


def test_capped_arguments_state_no_policy() -> None:
    launcher = read_launcher("bwrap", BWRAP[: BWRAP.index("--")])
    assert launcher is not None
    assert launcher.policy is None


@pytest.mark.parametrize(
    ("argv", "is_setup"),
    [
        (["/bin/sh", "-c", 'eval "$1"', "/bin/sh", "bwrap --new-session --die-with-parent x"], True),
        (["/bin/bash", "-c", "bwrap --new-session --die-with-parent -- /bin/bash -c x"], True),
        (["/bin/bash", "-c", "{ socat TCP6-LISTEN:3128,fork UNIX-CONNECT:/x; } & apply-seccomp x"], True),
        (["socat", "TCP6-LISTEN:3128,fork", f"UNIX-CONNECT:{SOCKET}"], True),
        (["apply-seccomp", "/bin/bash", "-c", "x"], True),
        (["/proc/self/fd/3", "/bin/bash", "-c", "x"], True),
        (["/bin/bash", "-c", "apt install bwrap"], False),
        (["sleep", "3"], False),
        (["socat", "-", "TCP:host:80"], False),
        ([], False),
    ],
)
def test_set_up_of_the_sandbox_is_no_command(argv: list[str], is_setup: bool) -> None:
    name = argv[0].rpartition("/")[2] if argv else "x"
    assert (read_launcher(name, argv) is not None) is is_setup


@pytest.mark.parametrize(
    ("value", "settings", "filesystem", "words"),
    [
        ("1", {"enabled": False}, Filesystem.UNKNOWN, 'over "sandbox": {"enabled": false}'),
        ("true", {}, Filesystem.UNKNOWN, "CLAUDE_CODE_SUBPROCESS_ENV_SCRUB puts commands into a sandbox"),
        ("1", {"enabled": True}, Filesystem.WORKSPACE, '"sandbox": {"enabled": true}'),
        ("0", {"enabled": False}, Filesystem.UNRESTRICTED, '"sandbox": {"enabled": false}'),
    ],
)
def test_variable_that_turns_the_sandbox_on_is_named(
    tmp_path: Path, value: str, settings: dict[str, bool], filesystem: Filesystem, words: str
) -> None:
    write(tmp_path / ".claude/settings.json", {"sandbox": settings})
    found = asked_in(tmp_path, HOME=str(tmp_path), CLAUDE_CODE_SUBPROCESS_ENV_SCRUB=value)
    assert found.policy.filesystem is filesystem
    assert found.origin(RequestField.FILESYSTEM).text.endswith(words)


def test_process_of_a_later_call_seen_while_the_transcript_was_behind() -> None:
    """The call whose sandbox could not be started ran nothing: its process is of the next, equal call."""
    (path,) = (DATA / "2.1.330" / "on-cannot-start").glob("projects/*/*.jsonl")
    fleet = reduce(Fleet(), TranscriptReader("t").read(path.read_bytes().splitlines()))
    thread = fleet.threads["t"]
    assert thread.sandbox_failed is not None
    at, calls = thread.calls[-1].at, (thread.sandbox_failed.call,)
    late = SandboxObservation(EvidenceSource.ENVIRONMENT, 0, sandboxed=False, first=at, last=at, calls=calls)
    assert thread.policies[0].policy.restricts_files
    observed = msgspec.structs.replace(thread, observations=(late,))
    fleet = msgspec.structs.replace(fleet, threads={"t": observed})
    (worker,) = build_snapshot(reduce(fleet, [e.ProcessesCounted(at=NOW)]), NOW).workers
    assert kinds_of(worker) == {SILENT}
    assert worker.sandbox.got.sandboxed is False
