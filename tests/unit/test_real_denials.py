"""What real sessions contain: forms of denials, with controls in which the same words mean something else."""

from typing import Any

import pytest

from agentdash.engine.judge.findings.verdict import Surroundings, judge_sandbox
from agentdash.engine.reduce.fleet import reduce
from agentdash.model.denials import PathFacts
from agentdash.model.fleet import Fleet
from agentdash.model.policy import Filesystem, Network, Policy, PolicyRule
from agentdash.model.states import State
from agentdash.model.thread import Thread
from agentdash.model.worker import Assessment
from agentdash.sandbox.denials import find_denials
from tests.unit.rollout_files import THREAD, answer, call, line, meta, read

HOME, CWD = "/home/u", "/home/u/proj"
POLICY = Policy(
    filesystem=Filesystem.WORKSPACE,
    network=Network.OFF,
    rules=(PolicyRule("/", "read"), PolicyRule(CWD, "write"), PolicyRule("/tmp", "write")),
)
FULL = Policy(filesystem=Filesystem.UNRESTRICTED, network=Network.ON, enforced_by="nobody")
SUDO = 'sudo: The "no new privileges" flag is set, which prevents sudo from running as root.\n'
BREW = "/opt/homebrew/Library/Homebrew/cmd/shellenv.sh: line 18: /bin/ps: Operation not permitted\n"
Found = list[tuple[str, str | None, str]]

FORMS: list[tuple[str, str, dict[str, Any], Found]] = [
    # executions, which are no writes
    ("npm run build", BREW + "src/a.ts(1,2): error TS7016\n", {}, [("exec", "/bin/ps", "likely")]),
    ("cat notes.md", "# Notes\n" + BREW, {}, []),
    ("ps -p 1", "zsh:1: operation not permitted: ps\n", {}, [("exec", "ps", "certain")]),
    ("echo x > /etc/x", "zsh:1: operation not permitted: /etc/x\n", {}, [("write", "/etc/x", "certain")]),
    ("env ps aux", "env: ps: Operation not permitted\n", {}, [("exec", "ps", "certain")]),
    ("node run.js", "Error: spawn /bin/ps EPERM\n", {}, [("exec", "/bin/ps", "certain")]),
    ("cp a /usr/bin/a", "cp: /usr/bin/a: Operation not permitted\n", {},
     [("write", "/usr/bin/a", "certain")]),
    ("killall node", "killall: could not sysctl(KERN_PROC): Operation not permitted\n", {},
     [("exec", "killall", "certain")]),
    ("ps aux", "zsh:1: operation not permitted: ps\n", {"policy": FULL}, []),
    # no rights beyond those of the command
    ("go version", "cannot set privileged capabilities: Operation not permitted\n", {},
     [("exec", "go", "certain")]),
    ("sudo apt update", SUDO, {}, [("exec", "sudo", "certain")]),
    ("cat log", SUDO, {}, []),
    # of which Codex 0.46 to 0.50 left the reason alone
    ("git fetch --all", "failed in sandbox: Operation not permitted", {"outcome": "denied"},
     [("connect", None, "certain")]),
    ("git fetch ../other", "failed in sandbox: Operation not permitted", {"outcome": "denied"}, []),
    ("pytest -q", "failed in sandbox: 1 error in 0.1s", {"outcome": "denied"}, []),
    # a marker file of uv is no repository
    ("uv pip install x",
     "error: Failed to initialize cache at `/home/u/.cache/uv`\n"
     "  Caused by: failed to open file `/home/u/.cache/uv/sdists-v9/.git`: Permission denied (os error 13)\n",
     {}, [("write", "/home/u/.cache/uv", "likely")]),
    ("git commit -m x", "fatal: Unable to create '/home/u/proj/.git/index.lock': Read-only file system\n", {},
     [("git", "/home/u/proj/.git/index.lock", "certain")]),
]  # fmt: skip


@pytest.mark.parametrize(("script", "output", "more", "expected"), FORMS, ids=lambda value: str(value)[:40])
def test_forms(script: str, output: str, more: dict[str, Any], expected: Found) -> None:
    known: dict[str, Any] = {"exit_code": 1, "outcome": "ended", "policy": POLICY, "cwd": CWD, "home": HOME}
    found = find_denials(script, output, **{**known, **more})
    assert [(each.operation, each.target, each.certainty) for each in found] == expected


# ---------------------------------------------------------------- a process and its polls

CACHE = "/Users/u/Library/Caches/Yarn"
WARNING = f'warning Skipping preferred cache folder "{CACHE}" because it is not writable.\n'
OFFLINE = "npm http fetch GET https://packages.example.org/left-pad attempt 1 failed with EAI_AGAIN\n"


def chunk(text: str, *, code: int | None = None, command: str = "") -> str:
    ended = "Process running with session ID 91" if code is None else f"Process exited with code {code}"
    return f"{command}Chunk ID: a1\nWall time: 1.0 seconds\n{ended}\nOriginal token count: 1\nOutput:\n{text}"


def session(*lines: bytes, network: bool = False, approval: str = "on-request") -> Thread:
    policy = {"type": "workspace-write", "network_access": network}
    context = line("turn_context", {"cwd": CWD, "approval_policy": approval, "sandbox_policy": policy})
    return reduce(Fleet(), read(meta(cwd=CWD, cli_version="0.118.0"), context, *lines)).threads[THREAD]


def process(script: str, *outputs: str) -> Thread:
    """Return the thread of a process that is polled once for each further output."""
    lines = [call("exec_command", {"cmd": script}, id_="c0"), answer(outputs[0], id_="c0")]
    for number, output in enumerate(outputs[1:], 1):
        lines.append(call("write_stdin", {"session_id": 91, "chars": ""}, id_=f"c{number}"))
        lines.append(answer(output, id_=f"c{number}"))
    return session(*lines)


PREFIX = "Command: /bin/zsh -lc 'yarn build'\n"


@pytest.mark.parametrize(
    ("outputs", "expected"),
    [
        ((chunk(WARNING, command=PREFIX), chunk("Done.\n", code=0, command=PREFIX)), [("write", True)]),
        ((chunk(WARNING), chunk("Done.\n", code=0)), [("write", True)]),
        ((chunk(WARNING + "Done.\n", code=0),), [("write", True)]),
        ((chunk(WARNING), chunk("error Command failed.\n", code=1)), [("write", False)]),
        ((chunk(OFFLINE), chunk(OFFLINE)), [("resolve", False)]),
        ((chunk(""), chunk(OFFLINE), chunk("npm error network\n", code=1)), [("resolve", False)]),
        ((chunk(""), chunk("Done.\n", code=0)), []),
    ],
)
def test_a_process_over_all_its_polls(outputs: tuple[str, ...], expected: list[tuple[str, bool]]) -> None:
    thread = process("npm install", *outputs)
    assert [(entry.operation, entry.got_past) for entry in thread.denials] == expected
    assert {id_ for entry in thread.denials for id_ in entry.calls} <= {"c0"}


REPORT = '{"status": {"completed": "Not tested: `npm install` failed with `EAI_AGAIN`"}}'


@pytest.mark.parametrize("tool", ["close_agent", "send_input", "resume_agent", "wait", "web_search"])
def test_what_children_and_documents_say_is_no_denial(tool: str) -> None:
    assert not session(call(tool, {"id": "x"}), answer(REPORT)).denials


# ---------------------------------------------------------------- what a session shows of its sandbox

MOUNTS = f"--ro-bind / / --bind /tmp /tmp --bind {CWD} {CWD} --unshare-pid --unshare-net --proc /proc"
HELPER = "/usr/bin/codex-linux-sandbox --apply-seccomp-then-exec"
PS = "ps -ef | rg bwrap"
BWRAP = f"u    1    0  0 19:23 ?  00:00:00 bwrap {MOUNTS} -- {HELPER} -- /bin/bash -lc {PS}\n"
PROFILE = (
    '{"type":"managed","file_system":{"type":"restricted","entries":[{"path":{"type":"special","value":'
    '{"kind":"root"}},"access":"read"},{"path":{"type":"path","path":"/home/u/proj"},"access":"write"},'
    '{"path":{"type":"special","value":{"kind":"slash_tmp"}},"access":"write"}]},"network":"restricted"}'
)
OF_0_171 = (
    f"u 1 0 0 19:23 ? 00:00:00 codex-linux-sandbox --command-cwd {CWD} --permission-profile {PROFILE}"
    f" -- /bin/bash -lc {PS}\n"
)
LINUX = (
    "failed in sandbox LinuxSeccomp with execution error: sandbox denied exec error, exit code: 2, stdout: x"
)
OUTSIDE = "failed in sandbox None with execution error: command timed out"
DENIED = (
    'exec_command failed for `/bin/zsh -lc ps`: CreateProcess { message: "Codex(Sandbox(Denied { output: '
    'ExecToolCallOutput { exit_code: 1, aggregated_output: StreamOutput { text: \\"zsh:1: operation not '
    'permitted: ps\\\\n\\", truncated_after_lines: None } } }))" }'
)
ESCALATED = {"sandbox_permissions": "require_escalated", "justification": "x"}
UNRESOLVED = "fatal: unable to access 'https://github.com/a/b/': Could not resolve host: github.com\n"
PUSHED = "To https://github.com/a/b.git\n   1..2  main -> main\n"
Ran = tuple[str, str, int]
ENDED = Assessment(State.COMPLETED, None, "")


@pytest.mark.parametrize(
    ("ran", "more", "verdict"),
    [
        ([(PS, BWRAP, 0)], {}, "match"),
        ([(PS, OF_0_171, 0)], {}, "match"),
        ([("cat ps.txt", BWRAP, 0)], {}, "unverified"),
        ([(PS, BWRAP.replace("    1    0", "   71   42"), 0)], {}, "unverified"),
        ([(PS, BWRAP, 0)], {"network": True}, "mismatch"),
        ([("pytest -q", LINUX, -1)], {}, "unverified"),
        ([("ps", DENIED, -1)], {}, "unverified"),
        ([("sleep 99", OUTSIDE, -1)], {}, "unverified"),
        ([("ss -ltn", "Cannot open netlink socket: Operation not permitted\n", 1)], {}, "match"),
        ([("git push", UNRESOLVED, 128)], {}, "unverified"),
        ([("git push", UNRESOLVED, 128), ("git push", PUSHED, -2)], {}, "match"),
        ([("git push", PUSHED, 0)], {"network": True}, "match"),
        ([("git push ../b", "To ../b\n", 0)], {"network": True}, "unverified"),
        ([("cat push.log", PUSHED, 0)], {"network": True}, "unverified"),
        ([("git push", PUSHED, 0)], {}, "mismatch"),
        ([("git push", PUSHED, 0)], {"approval": "on-failure"}, "unverified"),
        ([("curl -I http://localhost:3000/", "HTTP/1.1 200 OK\n", 0)], {}, "unverified"),
        ([("curl -sI https://example.com/", "HTTP/2 200\n", 0)], {"network": True}, "match"),
    ],
)
def test_verdicts_of_what_a_session_shows(ran: list[Ran], more: dict[str, Any], verdict: str) -> None:
    """An exit code of -1: Codex wraps the output; -2: the call was escalated."""
    lines: list[bytes] = []
    for number, (script, output, code) in enumerate(ran):
        lines.append(
            call("exec_command", {"cmd": script, **(ESCALATED if code == -2 else {})}, id_=f"c{number}")
        )
        lines.append(answer(output if code == -1 else chunk(output, code=max(code, 0)), id_=f"c{number}"))
    thread = session(*lines, **more)
    in_home = Surroundings(places=PathFacts(codex_home="/home/u/.codex"))
    assert judge_sandbox(thread, ENDED, in_home).verdict == verdict
