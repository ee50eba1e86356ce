"""Worker CLIs inside a sandbox: kernel facts, printed denials, remedies."""

from __future__ import annotations

from msgspec.structs import replace

from agentdash.model import events as e
from agentdash.model.process import Kernel
from agentdash.model.state_paths import PathAccess, WriteAccess
from agentdash.model.states import State
from agentdash.model.worker import Worker
from tests.unit.story import HOST, PANE, SANDBOXED, pane, polled, process, worker

LOG = "/home/dev/.local/share/opencode/log/opencode.log"
WORDS = ("Error: Unexpected error", "", f"Unknown: FileSystem.open ({LOG})")  # OpenCode 1.18.33
HOST_SEEN = e.HostSeen(at=80, platform="linux", kernel=HOST)
ONLINE = Kernel(seccomp=2, no_new_privs=True, net=1, mnt=2, pid=2, user=2)
"""Codex 0.169 with the network on."""


def ran(
    *lines: str,
    kernel: Kernel = ONLINE,
    status: int | None = 1,
    agent: str = "opencode",
    width: int = 80,
    env: dict[str, str] | None = None,
) -> Worker:
    """A worker that printed this, and perhaps ended."""
    one = process(11, 10, started=85.0, agent=agent, kernel=kernel, once=True, env=env or {})
    story = [HOST_SEEN, pane(width=width), process(10, started=80.0), one, *polled(110)]
    story.append(e.PaneDrawn(at=111, key=PANE, screen=lines))
    if status is not None:
        ended = pane(width=width, dead=True, dead_status=status)
        story += [
            e.ProcessGone(at=112, key=one.process.key),
            e.PaneSeen(at=112, pane=ended.pane),
            *polled(112),
        ]
    return worker(story)


OUTSIDE = "start it from a shell outside its sandbox"


def remedy_texts(found: Worker) -> list[str | None]:
    return [f.remedy.text if f.remedy else None for f in found.sandbox.findings]


def test_exit_after_denial_names_path_process_and_remedy() -> None:
    found = ran(*WORDS)
    assert (found.state, LOG in found.assessment.why, "exit code 1" in found.assessment.why) == (
        State.BLOCKED_SANDBOX,
        True,
        True,
    )
    assert [(x.source, x.rule) for x in found.assessment.evidence] == [
        ("screen", "denied-filesystem"),
        ("kernel", "in-a-sandbox"),
        ("tmux", "pane-dead"),
    ]
    assert found.assessment.evidence[1].text == "pid 11 (sh): seccomp 2, own user, pid, mount namespaces"
    (finding,) = found.sandbox.findings
    assert (finding.kind, remedy_texts(found)) == (
        "denied-filesystem",
        [f"{OUTSIDE}, or let that sandbox write /home/dev/.local/share/opencode/log"],
    )
    assert (found.sandbox.got.seccomp, found.sandbox.got.network_namespace, found.sandbox.verdict) == (
        2,
        "host",
        "unverified",
    )


def test_denial_that_scrolled_away_still_counts() -> None:
    one = process(11, 10, started=85.0, agent="opencode", kernel=ONLINE)
    story = [
        HOST_SEEN,
        pane(),
        process(10, started=80.0),
        one,
        *polled(110),
        e.PaneDrawn(at=111, key=PANE, screen=WORDS),
    ]
    gone = [e.ProcessGone(at=112, key=one.process.key), *polled(112)]
    cleared = [e.PaneDrawn(at=150, key=PANE, screen=("$ ls",)), *polled(151)]
    assert worker(story, gone).state is State.BLOCKED_SANDBOX
    assert worker(story, gone, cleared).state is State.BLOCKED_SANDBOX


def test_quit_at_rest_is_no_block() -> None:
    one = process(11, 10, started=85.0, agent="claude", kernel=ONLINE)
    quoted = e.PaneDrawn(
        at=111,
        key=PANE,
        screen=("touch: cannot touch '/home/dev/x': Read-only file system", "● Used /tmp instead.", "$"),
    )
    rests = e.ScreenRead(
        at=111, key=PANE, agent="claude", state="completed", rule="claude.finished", text="x"
    )
    story = [HOST_SEEN, pane(), process(10, started=80.0), one, *polled(110), rests, quoted]
    assert worker(story, e.ProcessGone(at=112, key=one.process.key), polled(112)).state is State.EXITED


def retrying(kernel: Kernel, text: str, **env: str) -> Worker:
    one = process(11, 10, started=85.0, agent="opencode", kernel=kernel, env=env)
    reading = e.ScreenRead(
        at=115, key=PANE, agent="opencode", state="failed-provider", rule="opencode.retrying", text=text
    )
    return worker(HOST_SEEN, pane(), process(10, started=80.0), one, polled(110), reading)


def test_unreachable_provider_without_network_is_blocked() -> None:
    text = "Cannot connect to API: Was there a typo in the url or port? [retrying in 6s attempt #4]"
    found = retrying(SANDBOXED, text)
    assert (found.state, remedy_texts(found)) == (
        State.BLOCKED_SANDBOX,
        [f"{OUTSIDE}, or let that sandbox reach the network"],
    )
    marked = retrying(SANDBOXED, text, CODEX_SANDBOX_NETWORK_DISABLED="1")
    assert remedy_texts(marked) == ["[sandbox_workspace_write]\nnetwork_access = true"]
    assert retrying(ONLINE, text, CODEX_SANDBOX_NETWORK_DISABLED="1").state is State.BLOCKED_SANDBOX
    assert retrying(ONLINE, text).state is State.FAILED_PROVIDER
    assert retrying(SANDBOXED, "Rate limit reached [retrying attempt #2]").state is State.FAILED_PROVIDER


GEMINI = PathAccess("/home/dev/.gemini", "settings and sessions", WriteAccess("read-only-mount"), needed=True)


def silent(*paths: PathAccess, at: float, kernel: Kernel = ONLINE, status: int | None = None) -> Worker:
    """`gemini -p` whose state it may perhaps not write: it retries for ever, and prints nothing."""
    one = process(11, 10, started=100.0, agent="gemini", kernel=kernel)
    key = one.process.key
    story = [
        HOST_SEEN,
        pane(),
        process(10, started=80.0),
        e.PaneDrawn(at=101, key=PANE, screen=("$ gemini -p x",)),
        one,
    ]
    story += [e.StatePathsSeen(at=101, key=key, paths=paths), *polled(at)]
    if status is not None:
        ended = e.PaneSeen(at=at, pane=pane(dead=True, dead_status=status).pane)
        story += [e.ProcessGone(at=at, key=key), ended, *polled(at)]
    return worker(story)


def test_standstill_with_a_denied_state_path_is_blocked() -> None:
    assert silent(GEMINI, at=105).state is State.UNKNOWN
    found = silent(GEMINI, at=130)
    assert (found.state, "/home/dev/.gemini" in found.assessment.why) == (State.BLOCKED_SANDBOX, True)
    assert remedy_texts(found) == [f"{OUTSIDE}, or let that sandbox write /home/dev/.gemini"]
    assert silent(GEMINI, at=130, kernel=HOST).state is State.UNKNOWN
    assert silent(replace(GEMINI, needed=False), at=130).state is State.UNKNOWN
    assert silent(at=130).state is State.UNKNOWN


def test_silent_exit_with_a_denied_state_path_is_blocked() -> None:
    assert silent(GEMINI, at=103, status=1).state is State.BLOCKED_SANDBOX
    assert silent(GEMINI, at=103, status=0).state is State.EXITED
