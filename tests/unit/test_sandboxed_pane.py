"""Worker CLIs inside a sandbox: kernel facts, printed denials, remedies."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from agentdash.model import events as e
from agentdash.model.process import Kernel, ProcessKey
from agentdash.model.state_paths import PathAccess, WriteAccess
from agentdash.model.states import State
from agentdash.model.worker import Worker
from tests.unit.story import HOST, PANE, SANDBOXED, in_pane, pane, polled, worker

LOG = "/home/dev/.local/share/opencode/log/opencode.log"
WORDS = ("Error: Unexpected error", "", f"Unknown: FileSystem.open ({LOG})")  # OpenCode 1.18.33
ONLINE = Kernel(seccomp=2, no_new_privs=True, net=1, mnt=2, pid=2, user=2)
"""Codex 0.169 with the network on."""
OUTSIDE = "start it from a shell outside its sandbox"


def boxed(
    *story: e.Event | Sequence[e.Event], agent: str = "opencode", kernel: Kernel = ONLINE, **env: str
) -> Worker:
    """Return a worker of a pane, in a sandbox unless the kernel is that of the host."""
    host = e.HostSeen(at=80, platform="linux", kernel=HOST)
    return worker(host, in_pane(agent, kernel=kernel, env=env), *story)


def drawn(*lines: str, at: float = 111) -> list[e.Event]:
    return [*polled(at - 1), e.PaneDrawn(at=at, key=PANE, screen=lines)]


def left(at: float = 112, *, status: int | None = None) -> list[e.Event]:
    """The end of its process, and of its pane if that has a status."""
    end = [] if status is None else [e.PaneSeen(at=at, pane=pane(dead=True, dead_status=status).pane)]
    return [e.ProcessGone(at=at, key=ProcessKey(11, 85.0)), *end, *polled(at)]


def read(state: str, text: str, at: float = 111) -> e.Event:
    return e.ScreenRead(at=at, key=PANE, agent="opencode", state=state, rule="opencode.retrying", text=text)


def remedy_texts(found: Worker) -> list[str | None]:
    return [f.remedy.text if f.remedy else None for f in found.sandbox.findings]


def test_exit_after_denial_names_path_process_and_remedy() -> None:
    found = boxed(drawn(*WORDS), left(status=1))
    assert (found.state, LOG in found.assessment.why) == (State.BLOCKED_SANDBOX, True)
    assert "exit code 1" in found.assessment.why
    assert [(x.source, x.rule) for x in found.assessment.evidence] == [
        ("screen", "denied-filesystem"),
        ("kernel", "in-a-sandbox"),
        ("tmux", "pane-dead"),
    ]
    assert found.assessment.evidence[1].text == "pid 11 (sh): seccomp 2, own user, pid, mount namespaces"
    assert [finding.kind for finding in found.sandbox.findings] == ["denied-filesystem"]
    assert remedy_texts(found) == [
        f"{OUTSIDE}, or let that sandbox write /home/dev/.local/share/opencode/log"
    ]
    got = found.sandbox.got
    assert (got.seccomp, got.network_namespace, found.sandbox.verdict) == (2, "host", "unverified")


def test_denial_that_scrolled_away_still_counts() -> None:
    assert boxed(drawn(*WORDS), left()).state is State.BLOCKED_SANDBOX
    cleared = [*drawn("$ ls", at=150), *polled(151)]
    assert boxed(drawn(*WORDS), left(), cleared).state is State.BLOCKED_SANDBOX


def test_quit_at_rest_is_no_block() -> None:
    quoted = drawn("touch: cannot touch '/home/dev/x': Read-only file system", "● Used /tmp instead.", "$")
    assert boxed(read("completed", "x"), quoted, left(), agent="claude").state is State.EXITED


def test_unreachable_provider_without_network_is_blocked() -> None:
    words = "Cannot connect to API: Was there a typo in the url or port? [retrying in 6s attempt #4]"
    failing = (*polled(110), read("failed-provider", words))
    found = boxed(failing, kernel=SANDBOXED)
    assert found.state is State.BLOCKED_SANDBOX
    assert remedy_texts(found) == [f"{OUTSIDE}, or let that sandbox reach the network"]
    marked = boxed(failing, kernel=SANDBOXED, CODEX_SANDBOX_NETWORK_DISABLED="1")
    assert remedy_texts(marked) == ["[sandbox_workspace_write]\nnetwork_access = true"]
    assert boxed(failing, CODEX_SANDBOX_NETWORK_DISABLED="1").state is State.BLOCKED_SANDBOX
    assert boxed(failing).state is State.FAILED_PROVIDER
    limited = read("failed-provider", "Rate limit reached [retrying attempt #2]")
    assert boxed(polled(110), limited, kernel=SANDBOXED).state is State.FAILED_PROVIDER


GEMINI = PathAccess("/home/dev/.gemini", "settings and sessions", WriteAccess("read-only-mount"), needed=True)


def test_silent_worker_with_a_denied_state_path_is_blocked() -> None:
    """`gemini -p` that may not write its state retries for ever, and prints nothing."""

    def silent(*paths: PathAccess, at: float, status: int | None = None, kernel: Kernel = ONLINE) -> Worker:
        seen = e.StatePathsSeen(at=101, key=ProcessKey(11, 85.0), paths=paths)
        end = [] if status is None else left(at, status=status)
        shown = drawn("$ gemini -p x", at=101)
        return boxed(shown, seen, polled(at), end, agent="gemini", kernel=kernel)

    found = silent(GEMINI, at=130)
    assert (found.state, "/home/dev/.gemini" in found.assessment.why) == (State.BLOCKED_SANDBOX, True)
    assert remedy_texts(found) == [f"{OUTSIDE}, or let that sandbox write /home/dev/.gemini"]
    assert silent(GEMINI, at=105).state is State.UNKNOWN
    assert silent(GEMINI, at=130, kernel=HOST).state is State.UNKNOWN
    assert silent(replace(GEMINI, needed=False), at=130).state is State.UNKNOWN
    assert silent(GEMINI, at=103, status=1).state is State.BLOCKED_SANDBOX
    assert silent(GEMINI, at=103, status=0).state is State.EXITED
