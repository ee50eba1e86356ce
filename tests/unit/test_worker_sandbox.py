"""The sandbox of worker CLIs in panes: asked for and there, what built it, and what it denied."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from agentdash.agents.launchers import read_launcher
from agentdash.model import events as e
from agentdash.model.policy import Filesystem, Network, Policy, PolicyRule
from agentdash.model.process import Kernel, ProcessKey
from agentdash.model.requested import Requested, RequestField, RequestLayer, RequestOrigin
from agentdash.model.state_paths import PathAccess, WriteAccess
from agentdash.model.states import State
from agentdash.model.worker import Worker
from tests.unit.story import HOST, PANE, SANDBOXED, in_pane, pane, polled, process, worker

CWD = "/home/dev/ws"
ON = Policy(
    filesystem=Filesystem.WORKSPACE,
    rules=(PolicyRule("/", "read"), PolicyRule(CWD, "write")),
    enforced_by="agent",
)
OFF = Policy(Filesystem.UNRESTRICTED, Network.ON, enforced_by="nobody")


def origin(text: str, layer: RequestLayer = RequestLayer.ARGV, file: str | None = None) -> RequestOrigin:
    return RequestOrigin(field=RequestField.FILESYSTEM, layer=layer, text=text, file=file)


def asked(policy: Policy, *, mark: str | None = None, **more: object) -> Requested:
    """A request of the process that `seen` has, perhaps with an inherited mark."""
    by = origin(mark, RequestLayer.ENVIRONMENT) if mark else None
    return Requested(policy=policy, origins=(origin("-s"),), since=85.0, dropped_by=by, **more)


def seen(
    request: Requested | None,
    *others: e.Event,
    kernel: Kernel | None = HOST,
    host: Kernel = HOST,
    agent: str = "gemini",
    parent: int = 10,
    env: dict[str, str] | None = None,
) -> Worker:
    """A worker in a pane with this request, beside other processes."""
    one = process(11, parent, started=85.0, agent=agent, kernel=kernel, env=env or {})
    known = [e.PolicyRequested(at=86.0, worker=str(PANE), requested=request)] if request else []
    around = [e.HostSeen(at=80, platform="linux", kernel=host), pane(), process(10, started=80.0)]
    return worker(around, others, one, known, polled(110))


def kinds(found: Worker) -> list[str]:
    return [finding.kind.value for finding in found.sandbox.findings]


def test_inherited_mark_that_drops_the_sandbox_is_a_finding_with_both_sides() -> None:
    found = seen(asked(ON, mark="SANDBOX=0"))
    (finding,) = found.sandbox.findings
    assert (found.sandbox.verdict, finding.kind) == ("mismatch", "sandbox-silently-off")
    assert (finding.severity, finding.direction) == ("danger", "wider")
    (cell,) = finding.fields
    assert (cell.expected, cell.actual) == ("workspace", "no sandbox")
    assert (cell.reference, cell.layer) == ("requested", "observed")
    assert [(x.source.value, x.text) for x in finding.evidence] == [
        ("process", "argv: -s"),
        ("environment", "environment: SANDBOX=0"),
        ("kernel", "pid 11 (sh): no sandbox (no seccomp, no namespaces of its own)"),
    ]
    assert finding.remedy.text == "unset SANDBOX"


@pytest.mark.parametrize(
    ("request_", "kernel", "host"),
    [
        pytest.param(asked(OFF, mark="SANDBOX=0"), HOST, HOST, id="no sandbox was asked for"),
        pytest.param(asked(ON), HOST, HOST, id="no mark: the sandbox may be a container elsewhere"),
        pytest.param(asked(ON, mark="SANDBOX=0"), SANDBOXED, HOST, id="in a sandbox all the same"),
        pytest.param(asked(ON, mark="SANDBOX=0"), None, HOST, id="kernel facts not known"),
        pytest.param(
            asked(ON, mark="SANDBOX=sandbox-0.61.0-1"),
            replace(HOST, seccomp=2),
            replace(HOST, seccomp=2),
            id="its own mark, in a container that agentdash runs in as well",
        ),
    ],
)
def test_no_finding(request_: Requested, kernel: Kernel | None, host: Kernel) -> None:
    found = seen(request_, kernel=kernel, host=host)
    assert (kinds(found), found.sandbox.verdict == "mismatch") == ([], False)


def test_settings_that_are_newer_than_the_process_decide_nothing() -> None:
    file = origin('"sandbox": true', RequestLayer.USER, "/home/dev/.gemini/settings.json")
    request = replace(asked(ON, mark="SANDBOX=0", read_at=120.0), origins=(file,))
    assert kinds(seen(request)) == []
    assert kinds(seen(replace(request, read_at=None))) == ["sandbox-silently-off"]


def test_agreement_is_a_match() -> None:
    assert seen(asked(OFF)).sandbox.verdict == "match"
    assert seen(asked(OFF), agent="opencode").sandbox.verdict == "match"
    assert seen(None).sandbox.verdict == "unverified"


# ---------------------------------------------------------------- what built a sandbox


@pytest.mark.parametrize(
    ("above", "env", "expected"),
    [
        (["bwrap", "--unshare-net", "--bind", CWD, CWD, "--", "x"], {}, "bwrap: workspace, no network"),
        (["node", "/usr/bin/srt", "opencode"], {"SANDBOX_RUNTIME": "1"}, "sandbox runtime (srt)"),
        (["bwrap", "--args", "8", "--", "x"], {"SANDBOX_RUNTIME": "1"}, "sandbox runtime (srt) by bwrap"),
        (["bash"], {"SANDBOX_RUNTIME": "1", "CLAUDE_CODE_SESSION_ID": "x"}, "Claude Code"),
        (["bash"], {"CODEX_SANDBOX_NETWORK_DISABLED": "1"}, "Codex"),
    ],
)
def test_foreign_sandbox_is_named_and_is_no_finding(
    above: list[str], env: dict[str, str], expected: str
) -> None:
    launcher = process(
        12, 10, started=84.0, name=above[0], argv=tuple(above), launcher=read_launcher(above[0], above)
    )
    found = seen(asked(OFF), launcher, kernel=SANDBOXED, agent="opencode", parent=12, env=env)
    assert (found.sandbox.applied or "").startswith(expected)
    assert (found.sandbox.verdict, kinds(found)) == ("unverified", [])


def test_container_that_it_started_itself_in() -> None:
    docker = process(12, 11, started=86.0, name="docker", argv=("docker", "run", "-i", "sandbox"))
    found = seen(asked(ON), docker)
    assert (found.sandbox.verdict, found.sandbox.applied) == ("unverified", "a container, by docker")
    assert found.sandbox.unread == ("what runs in the container that docker started",)


@pytest.mark.parametrize(("agent", "env"), [("gemini", {"GEMINI_CLI": "1"}), ("opencode", {})])
def test_container_of_a_command_is_none_of_the_worker(agent: str, env: dict[str, str]) -> None:
    argv = ("podman", "run", "-i", "--rm", "image")
    client = process(12, 11, started=86.0, name="podman", argv=argv, env=env)
    found = seen(asked(OFF), client, agent=agent)
    assert (found.sandbox.verdict, found.sandbox.applied, found.sandbox.unread) == ("match", None, ())


# ---------------------------------------------------------------- what a sandbox denied

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


@pytest.mark.parametrize(
    "line",
    [
        "Error: spawn /bin/ps EPERM",
        'error: sudo\nsudo: The "no new privileges" flag is set, which prevents sudo from running as root.',
    ],
)
def test_program_that_may_not_run_is_no_block(line: str) -> None:
    found = boxed(drawn(*line.split("\n"), "$"), left(status=1))
    assert (found.state, found.sandbox.findings) == (State.EXITED, ())
    denied = boxed(drawn(*WORDS, *line.split("\n")), left(status=1))
    assert (denied.state, kinds(denied)) == (State.BLOCKED_SANDBOX, ["denied-filesystem"])


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
