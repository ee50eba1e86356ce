"""Findings of threads: observations against policies, parents, mounts; denials; tmux across the boundary."""

from typing import Any

import pytest
from msgspec.structs import replace

from agentdash.engine.judge.findings.tmux_boundary import parse_tmux_request
from agentdash.engine.link.process_tree import with_tmpdir
from agentdash.model import events as e
from agentdash.model.denials import PathKind
from agentdash.model.layers import DifferingField
from agentdash.model.observation import Applied
from agentdash.model.pane import Pane, PaneKey
from agentdash.model.policy import TMPDIR, Filesystem, Network, Policy, PolicyRule
from agentdash.model.process import Kernel, Launcher, Process, ProcessKey
from agentdash.model.state_paths import Mount, MountTable
from agentdash.model.worker import Sandbox, Worker
from tests.unit.story import (
    CHILD,
    CWD,
    FULL,
    HOST,
    SANDBOXED,
    WORKSPACE,
    T,
    begun,
    called,
    done,
    ended,
    held,
    polled,
    process,
    snapshot_after,
    worker,
)

ONLINE = replace(WORKSPACE, network=Network.ON)
PROBE = 'echo "flag=${CODEX_SANDBOX_NETWORK_DISABLED:-}"; echo "sandbox=${CODEX_SANDBOX:-}"'
NETWORK = {"CODEX_SANDBOX_NETWORK_DISABLED": "1"}
CUT, OPEN_NET = SANDBOXED, replace(SANDBOXED, net=HOST.net)
CODEX = process(50, started=90.0, agent="codex")


def printed(flag: str, sandbox: str = "", call: str = "c1", at: float = 102.0) -> list[e.Event]:
    return [called(call, PROBE, at=at), ended(call, f"flag={flag}\nsandbox={sandbox}\n", at=at)]


def live(
    kernel: Kernel, *above: e.Event, parent: int = 50, call: str | None = "c1", **env: str
) -> list[e.Event]:
    """A process of a command, below a Codex or below what stands between them."""
    env |= {"CODEX_THREAD_ID": T} | ({"CODEX_TOOL_CALL_ID": call} if call else {})
    host = e.HostSeen(at=90, platform="linux", kernel=HOST)
    command = process(77, parent, started=104.0, kernel=kernel, env=env)
    return [host, *(above or (CODEX,)), command, *held(110)]


def set_later(policy: Policy, at: float = 105.0, line: int = 8, origin: str = "turn_context") -> e.Event:
    return e.PolicySet(thread=T, at=at, line=line, policy=policy, origin=origin, cwd=CWD)


def kinds(sandbox: Sandbox) -> list[str]:
    return [finding.kind.value for finding in sandbox.findings]


def differing_fields(sandbox: Sandbox) -> list[DifferingField]:
    """Return the cells that findings name which are more than information."""
    return [field for found in sandbox.findings if found.severity != "info" for field in found.fields]


def test_seatbelt_on_macos_is_no_finding() -> None:
    story = begun()
    story[0] = replace(story[0], cwd="/Users/dev/project")
    story[2] = replace(story[2], cwd="/Users/dev/project")
    assert worker(story, printed("1", "seatbelt"), done(), polled(110)).sandbox.verdict == "match"


@pytest.mark.parametrize(
    ("policy", "kernel", "env", "expected", "direction"),
    [
        (WORKSPACE, CUT, NETWORK, [], None),
        (WORKSPACE, OPEN_NET, NETWORK, [], None),
        (FULL, HOST, NETWORK, ["stale-network-flag"], "label"),
        (FULL, Kernel(), NETWORK, ["stale-network-flag"], "narrower"),
        (ONLINE, CUT, NETWORK, ["network-cut"], "narrower"),
        (FULL, OPEN_NET, {}, ["nested-sandbox"], "narrower"),
        (WORKSPACE, HOST, NETWORK, ["network-open", "filesystem-wider"], "wider"),
        (ONLINE, CUT, {"CODEX_NETWORK_PROXY_ACTIVE": "1"}, [], None),
        (replace(WORKSPACE, network=Network.MEDIATED), CUT, {}, [], None),
    ],
)
def test_live_processes(
    policy: Policy, kernel: Kernel, env: dict[str, str], expected: list[str], direction: str | None
) -> None:
    found = worker(begun(policy=policy), called(), live(kernel, **env)).sandbox
    assert kinds(found) == expected
    assert direction is None or found.findings[0].direction == direction


# ---------------------------------------------------------------- what is compared, and with what


def test_observations_of_one_cause_are_one_finding_that_quotes_both_sides() -> None:
    many = [x for i in range(9) for x in printed("1", call=f"c{i}", at=102.0 + i)]
    (finding,) = worker(begun(policy=FULL), many, done(at=120), polled(130)).sandbox.findings
    assert (finding.count, finding.since, finding.last) == (9, 102.0, 110.0)
    assert finding.configured == "files unrestricted, network on, approval never"
    assert "flag=1" in finding.got
    assert "turn_context, line 3" in finding.evidence[0].text
    assert finding.remedy.text == '[shell_environment_policy]\nexclude = ["CODEX_SANDBOX*"]'
    (finding,) = worker(begun(policy=FULL), printed("1"), live(HOST, **NETWORK)).sandbox.findings
    assert (finding.kind, finding.direction, finding.count) == ("stale-network-flag", "label", 2)
    assert {x.source for x in finding.evidence} == {"rollout", "output", "environment", "process", "kernel"}


def test_observation_is_compared_with_the_policy_then() -> None:
    """Network was off when the flag was seen, and is on now: of that nothing was observed yet."""
    later = set_later(ONLINE, origin="thread_settings_applied")
    sandbox = worker(begun(), printed("1"), done(at=104), later, polled(110)).sandbox
    assert (sandbox.verdict, differing_fields(sandbox)) == ("unverified", [])
    again = set_later(WORKSPACE, at=106, line=9)
    assert worker(begun(), printed("1"), done(at=104), later, again, polled(110)).sandbox.verdict == "match"
    sandbox = worker(begun(), printed(""), done(at=104), later, polled(110)).sandbox
    (field,) = differing_fields(sandbox)
    assert (field.expected, field.actual, field.reference) == ("1", "unset", "earlier")
    assert (field.expected_at, field.actual_at) == (100.0, 102.0)
    assert sandbox.got.under_earlier_policy


def test_a_choice_during_a_turn_counts_from_its_end() -> None:
    """`/permissions` of 0.169: the commands of the turn that runs keep their sandbox, whenever they start."""
    chosen = set_later(FULL, at=100.5, line=4, origin="thread_settings_applied")
    turn = (begun(), chosen, printed("1"))
    during = worker(*turn, polled(103)).sandbox
    assert (during.verdict, during.findings, during.configured) == ("match", (), WORKSPACE)
    after = worker(*turn, done(at=104), polled(110)).sandbox
    assert (after.verdict, differing_fields(after), after.configured) == ("unverified", [], FULL)
    next_turn = e.TurnStarted(thread=T, at=105, line=10)
    assert worker(*turn, next_turn, polled(110)).sandbox.configured == FULL  # the end of the turn is lost


@pytest.mark.parametrize("call", ["u9", None])
def test_commands_of_the_user_and_without_a_call_are_not_compared(call: str | None) -> None:
    assert worker(begun(), live(HOST, call=call)).sandbox.findings == ()
    own = replace(called("u1", PROBE, at=102.0), by_user=True)
    sandbox = worker(begun(), own, ended("u1", "flag=\nsandbox=\n"), polled(110)).sandbox
    assert (sandbox.findings, sandbox.verdict) == ((), "unverified")


def test_possible_retry_is_information() -> None:
    story = (begun(policy=replace(WORKSPACE, approval="on-failure")), called(), live(HOST, **NETWORK))
    found = worker(*story).sandbox
    assert (found.verdict, {f.severity for f in found.findings}) == ("match", {"info"})


# ---------------------------------------------------------------- escalations


@pytest.mark.parametrize(
    ("policy", "kernel", "expected"),
    [
        (WORKSPACE, HOST, "escalated-flag-left"),
        (WORKSPACE, SANDBOXED, "escalated-not-host"),
        (ONLINE, HOST, "stale-network-flag"),
    ],
)
def test_allowed_escalation(policy: Policy, kernel: Kernel, expected: str) -> None:
    assert kinds(worker(begun(policy=policy), called(ask=True), live(kernel, **NETWORK)).sandbox) == [
        expected
    ]


def test_prefix_rule_of_an_escalation_covers_later_commands() -> None:
    wish = e.Escalation("escalated", "to push", ("git", "push"))
    first = replace(called("c0", "git push", at=101.0), escalation=wish)
    later = called("c1", "git push --tags", at=103)
    found = worker(begun(), first, ended("c0", at=102), later, live(HOST, **NETWORK)).sandbox
    assert (found.verdict, found.findings) == ("unverified", ())
    assert "the prefix_rule of call c0 may have let out" in found.unread[-1]


# ---------------------------------------------------------------- launchers, mounts, and what is around


def launched(policy: Policy, *argv: str, kernel: Kernel = SANDBOXED, **env: str) -> list[str]:
    """The kinds of a command below a launcher."""
    command = live(kernel, CODEX, process(60, 50, started=100.0, argv=argv), parent=60, **(env or NETWORK))
    return kinds(worker(LINK, begun(policy=policy), called(), command).sandbox)


def bwrap(*more: str) -> tuple[str, ...]:
    return ("bwrap", "--ro-bind", "/", "/", "--bind", CWD, CWD, "--bind", "/tmp", "/tmp", *more, "--", "make")


def test_launcher_applies_the_policy_or_less_or_more() -> None:
    """Less: as when a child's split policies are those of its parent before it was given more (0.114)."""
    bigger = replace(WORKSPACE, rules=(*WORKSPACE.rules, PolicyRule("/srv", "write")))
    assert launched(WORKSPACE, *bwrap("--unshare-net")) == []
    assert launched(ONLINE, *bwrap(), kernel=OPEN_NET, PATH="/bin") == []
    assert launched(FULL, *bwrap("--unshare-net"), kernel=Kernel()) == ["network-cut", "filesystem-narrower"]
    assert launched(bigger, *bwrap("--unshare-net")) == ["filesystem-narrower"]
    assert launched(WORKSPACE, *bwrap("--bind", "/srv", "/srv", "--unshare-net")) == ["filesystem-wider"]
    assert launched(WORKSPACE, *bwrap(), kernel=OPEN_NET) == ["network-open"]


def test_what_codex_tries_before_a_command_is_none() -> None:
    """As a shell's command `true` has: Codex's helper stands between it and bubblewrap."""
    mounts = ("bwrap", "--as-pid-1", "--tmpfs", "/", "--ro-bind", "/usr", "/usr", "--unshare-net")
    assert launched(WORKSPACE, *mounts, "--", "/usr/bin/true") == []
    helper = ("--", "/h/codex-linux-sandbox", "--apply-seccomp-then-exec", "--", "true")
    assert launched(WORKSPACE, *mounts, *helper) == ["filesystem-narrower"]


def test_temporary_directory_by_its_path_is_that_of_the_policy() -> None:
    """Codex 0.145 gives bubblewrap the path, the policy has `$TMPDIR`."""
    own = replace(WORKSPACE, rules=(*WORKSPACE.rules, PolicyRule("$TMPDIR", "write")))
    scratch = bwrap("--bind", "/scratch/me", "/scratch/me", "--unshare-net")
    for tmpdir in ("/scratch/me", "/scratch/me/", "/scratch/a-link"):
        assert launched(own, *scratch, **NETWORK, TMPDIR=tmpdir) == []
        assert launched(WORKSPACE, *scratch, **NETWORK, TMPDIR=tmpdir) == ["filesystem-wider"]
    more = (*scratch[:-2], "--bind", "/srv", "/srv", *scratch[-2:])
    assert launched(own, *more, **NETWORK, TMPDIR="/scratch/me") == ["filesystem-wider"]


LINK = e.PathsSeen(at=99, paths=(("/srv/link", PathKind.LINK),))


@pytest.mark.parametrize(
    ("root", "is_one"), [("/srv/link", True), ("/srv/link/board", True), ("/srv/link-no", False)]
)
def test_root_that_is_a_symbolic_link_is_bound_at_its_target(root: str, is_one: bool) -> None:
    linked = replace(WORKSPACE, rules=(*WORKSPACE.rules, PolicyRule(root, "write")))
    found = launched(linked, *bwrap("--bind", "/data/board", "/data/board", "--unshare-net"))
    assert found == ([] if is_one else ["filesystem-narrower", "filesystem-wider"])


def test_codex_inside_a_sandbox_and_a_container_around_both() -> None:
    around = process(40, started=80.0, argv=bwrap("--unshare-net"))
    inside = process(50, 40, started=90.0, agent="codex", kernel=SANDBOXED)
    found = worker(begun(policy=FULL), called(), live(SANDBOXED, around, inside))
    assert kinds(found.sandbox) == ["nested-sandbox"]
    container = replace(SANDBOXED, no_new_privs=False)
    codex = process(50, started=90.0, agent="codex", kernel=container)
    assert worker(begun(policy=FULL), called(), live(container, codex)).sandbox.verdict == "match"


# ---------------------------------------------------------------- mounts, and what a sandbox has for itself

DISK, TMPFS = "254:0", "0:44"


def mount(number: int, point: str, device: str = DISK, fstype: str = "ext4", **more: bool) -> Mount:
    return Mount(number, 0 if number == 1 else 1, point, fstype=fstype, device=device, **more)


def tmpfs(number: int, point: str, *, private: bool = True) -> Mount:
    return mount(number, point, TMPFS, "tmpfs", private=private)


READ_ONLY_ROOT = mount(1, "/", read_only=True)
WORK = mount(2, CWD)
TMP = mount(3, "/tmp")
DATA = replace(WORKSPACE, rules=(*WORKSPACE.rules, PolicyRule("/srv/data", "write")))


def mounted(policy: Policy, *mounts: Mount) -> Sandbox:
    """Return the sandbox of a command with these mounts."""
    seen = e.MountsSeen(at=103, namespace=2, mounts=mounts)
    return worker(begun(policy=policy), called(), seen, live(SANDBOXED, HOME="/home/dev")).sandbox


@pytest.mark.parametrize(
    ("mounts", "expected", "lost"),
    [
        ((tmpfs(1, "/"), WORK, TMP), [], "/, /home/dev"),  # `:minimal`, `:root = deny` (0.169, 0.171)
        ((READ_ONLY_ROOT, WORK, TMP, tmpfs(4, "/home/dev"), mount(5, CWD)), [], "/home/dev"),
        ((READ_ONLY_ROOT, WORK, TMP, tmpfs(4, "/dev"), tmpfs(5, "/dev/shm"), tmpfs(6, "/proc")), [], ""),
        # of the user, mounted outside too
        ((tmpfs(1, "/", private=False), WORK, TMP), ["filesystem-wider"], ""),
        ((tmpfs(1, "/"), mount(4, "/home/dev"), WORK, TMP), ["filesystem-wider"], "/"),  # the home is let in
        ((READ_ONLY_ROOT, WORK, TMP, mount(4, "/home/dev")), ["filesystem-wider"], ""),
        ((Mount(1, 0, "/", fstype="tmpfs"), Mount(2, 1, CWD), Mount(3, 1, "/tmp")), ["filesystem-wider"], ""),
    ],
)
def test_what_is_mounted_where_it_may_write(
    mounts: tuple[Mount, ...], expected: list[str], lost: str
) -> None:
    found = mounted(WORKSPACE, *mounts)
    assert kinds(found) == expected
    words = f"what it writes to {lost} is lost"
    assert any(words in each.text for each in found.evidence) is bool(lost)


def test_what_is_mounted_where_it_may_not_write() -> None:
    assert kinds(mounted(DATA, READ_ONLY_ROOT, WORK, TMP)) == ["filesystem-narrower"]
    perhaps_a_link_to_it = mount(4, "/mnt/disk/data")
    assert kinds(mounted(DATA, READ_ONLY_ROOT, WORK, TMP, perhaps_a_link_to_it)) == []


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
SCRATCH = {"TMPDIR": "/tmp/claude-0"}


def given(*roots: str) -> Policy:
    return replace(TOLD, rules=(*TOLD.rules[:2], *(PolicyRule(root, "write") for root in roots)))


@pytest.mark.parametrize(
    ("above", "own", "roots", "is_wider"),
    [
        ({}, SCRATCH, ("/tmp/claude-0",), False),
        # by settings.json, which the environment of its process does not show
        ({}, {**SCRATCH, "CLAUDE_CODE_TMPDIR": "/x/claude-0"}, ("/x/claude-0", "/tmp/claude-0"), False),
        (
            {"TMPDIR": "/var/scratch"},
            {"TMPDIR": "/var/scratch/claude-0"},
            ("/var/scratch/claude-0", "/tmp/claude-0"),
            False,
        ),
        # the command says that the home is its temporary directory
        ({}, {**SCRATCH, "CLAUDE_CODE_TMPDIR": "/home/dev"}, ("/home/dev", "/tmp/claude-0"), True),
        ({}, SCRATCH, ("/home/dev", "/tmp/claude-0"), True),
    ],
)
def test_scratch_of_claude_code(
    above: dict[str, str], own: dict[str, str], roots: tuple[str, ...], is_wider: bool
) -> None:
    env = {"CLAUDE_CODE_SESSION_ID": T, "HOME": "/home/dev", "CLAUDE_CODE_HOST_HTTP_PROXY_PORT": "1", **own}
    parts = (
        e.ThreadStarted(thread=T, at=100, line=1, cwd=CWD, version="2.1.332", agent="claude"),
        e.PolicySet(thread=T, at=100, line=2, policy=TOLD, origin="sandbox_instructions", cwd=CWD),
        e.MessageLogged(thread=T, at=100, line=3, role="user", text="go"),
        called(text="sleep 8"),
        e.HostSeen(at=90, platform="linux", kernel=HOST),
        process(50, started=90.0, name="claude", agent="claude", env=above),
        process(60, 50, started=103.0, name="bwrap", launcher=Launcher("bwrap", given(*roots))),
        process(77, 60, started=104.0, kernel=SANDBOXED, argv=("bash", "-c", "eval 'sleep 8'"), env=env),
        *held(110),
    )
    assert kinds(worker(*parts).sandbox) == ["filesystem-wider"] * is_wider


def test_a_home_is_no_temporary_directory() -> None:
    home = Applied("bwrap", given("/home/dev"))
    assert with_tmpdir(home, TOLD, "/tmp/link") == home


# ---------------------------------------------------------------- parents and children, before and after


def family(parent: Policy, child: Policy, *more: e.Event) -> Worker:
    """The child of a family."""
    return snapshot_after(
        begun(policy=parent), begun(CHILD, at=104.0, policy=child, parent=T), *more, polled(110)
    ).workers[1]


@pytest.mark.parametrize(
    ("parent", "child", "direction"),
    [
        (WORKSPACE, replace(WORKSPACE, approval="never"), None),
        (FULL, WORKSPACE, "narrower"),
        (WORKSPACE, ONLINE, "wider"),
        (WORKSPACE, replace(WORKSPACE, rules=(*WORKSPACE.rules, PolicyRule("/srv", "write"))), "wider"),
    ],
)
def test_child_policy_drift(parent: Policy, child: Policy, direction: str | None) -> None:
    drift = [f.direction for f in family(parent, child).sandbox.findings if f.kind == "child-policy-drift"]
    assert drift == ([direction] if direction else [])


def test_child_is_not_compared_with_a_later_policy_or_the_directory_of_its_parent() -> None:
    later = [replace(event, at=106.0) if isinstance(event, e.PolicySet) else event for event in begun()]
    child = begun(CHILD, at=104.0, policy=FULL, parent=T)
    assert snapshot_after(later, child, polled(110)).workers[1].sandbox.findings == ()
    rules = (PolicyRule("/", "read"), PolicyRule("/home/dev/tree", "write"), PolicyRule("/tmp", "write"))
    story = begun(CHILD, at=104.0, policy=replace(WORKSPACE, rules=rules), parent=T)
    story[0], story[2] = replace(story[0], cwd="/home/dev/tree"), replace(story[2], cwd="/home/dev/tree")
    assert snapshot_after(begun(), story, polled(110)).workers[1].sandbox.findings == ()


@pytest.mark.parametrize("online_first", [True, False])
def test_child_got_less_is_of_commands_while_the_network_was_granted(online_first: bool) -> None:
    """A child whose network is turned on, or off, between two commands."""
    first, second = (ONLINE, WORKSPACE) if online_first else (WORKSPACE, ONLINE)
    story = begun(CHILD, at=100.5, policy=first, parent=T)
    output = "CODEX_SANDBOX_NETWORK_DISABLED=1\nPATH=/bin\n"
    child = [called("k1", "env", at=102.0), ended("k1", output, at=102.5), set_later(second, at=103.0)]
    parent = [called("p1", "env", at=102.0), ended("p1", "PATH=/bin\n", at=102.5)]
    child = [replace(event, thread=CHILD) for event in child]
    found = snapshot_after(begun(policy=ONLINE), parent, story, child, polled(110)).workers[1]
    assert ("child-got-less" in kinds(found.sandbox)) == online_first


PROTECTED = (*WORKSPACE.rules, PolicyRule(f"{CWD}/.git", "read"))


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        (FULL, "from workspace, no network to full access"),
        (replace(WORKSPACE, approval="never"), "(approval: on-request to never)"),
        (replace(WORKSPACE, rules=PROTECTED), "(paths protected inside the writable ones)"),
        (replace(WORKSPACE, approval=None), None),
        (replace(WORKSPACE, rules=WORKSPACE.rules[::-1]), None),
    ],
)
def test_policy_change_names_what_changed_in_what_is_stated(policy: Policy, said: str | None) -> None:
    found = worker(begun(policy=WORKSPACE), set_later(policy, at=101, line=6), done(), polled(110)).sandbox
    assert [f.message.partition(": commands are held")[0] for f in found.findings] == (
        [f"Its policy changed {said}"] if said else []
    )


# ---------------------------------------------------------------- what stood in the way


@pytest.mark.parametrize(
    ("output", "remedy"),
    [
        ("bwrap: setting up uid map: Permission denied", "codex doctor"),
        (
            "bwrap: execvp codex-linux-sandbox: Permission denied\n",
            "end this Codex, then go on in a new one: codex resume ID",
        ),
    ],
)
def test_sandbox_cannot_start(output: str, remedy: str) -> None:
    """The second is of a Codex 0.169.0 that lost its helper; resumed, it ran commands again."""
    broken = [x for i in range(3) for x in (called(f"c{i}"), ended(f"c{i}", output, exit_code=1))]
    found = worker(begun(), broken, done(), polled(110))
    (finding,) = found.sandbox.findings
    assert (finding.kind, finding.count, found.state) == ("sandbox-cannot-start", 3, "blocked-sandbox")
    assert finding.remedy.text == remedy


def test_denied_under_full_access() -> None:
    output = "error connecting to /tmp/tmux-0/default (Operation not permitted)"
    refused = (called(text="tmux new-window"), ended("c1", output, exit_code=1))
    assert worker(begun(policy=FULL), refused, done(), polled(110)).sandbox.findings == ()
    marked = worker(begun(policy=FULL), printed("1", call="c0"), refused, done(), polled(110))
    assert set(kinds(marked.sandbox)) == {"stale-network-flag", "denied-under-full-access"}


# ---------------------------------------------------------------- tmux across the boundary of a sandbox


@pytest.mark.parametrize(
    ("command", "asked"),
    [
        ("tmux new-window -d 'make'", ("new-window", None)),
        ("cd x && tmux -L lab split-window -h", ("split-window", "-L lab")),
        ("tmux -S /tmp/s -f /dev/null new -d", ("new", "/tmp/s")),
        ("tmux send-keys -t work:1 'rm x' Enter", ("send-keys", None)),
        ("tmux list-panes -a", None),
        ("echo tmux new-window", None),
        ("grep -rn 'tmux new-window' .", None),
    ],
)
def test_parse_tmux_request(command: str, asked: tuple[str, str | None] | None) -> None:
    found = parse_tmux_request(command)
    assert (found and found[:2]) == asked


KEY = PaneKey("default", "%9")


def asked_tmux(
    policy: Policy, command: str, *, started: float = 101.5, kernel: Kernel = HOST, server: Kernel = HOST
) -> list[e.Event]:
    """A thread whose command asked tmux for something; a pane's process started at a time."""
    return [
        *begun(policy=policy),
        called(text=command),
        ended(exit_code=0),
        e.HostSeen(at=90, platform="linux", kernel=HOST),
        e.ProcessSeen(at=90, process=Process(ProcessKey(30, 80.0), 1, "tmux: server", kernel=server)),
        e.PaneSeen(at=102, pane=Pane(KEY, "work", "1:x", 31, "make", server_pid=30)),
        process(31, 30, started=started, kernel=kernel),
        *polled(110),
    ]


def opened(policy: Policy, command: str, **how: Any) -> list[str]:
    return [f.kind for f in worker(asked_tmux(policy, command, **how)).sandbox.findings]


def test_escape_by_an_opened_pane() -> None:
    assert opened(ONLINE, "tmux new-window -d make") == ["tmux-escape"]


@pytest.mark.parametrize(
    ("policy", "command", "started", "kernel", "server"),
    [
        (FULL, "tmux new-window -d make", 101.5, HOST, HOST),  # nothing held it
        (WORKSPACE, "tmux new-window -d make", 101.5, HOST, HOST),  # without a network a rule let it out
        (ONLINE, "tmux new-window -d make", 50.0, HOST, HOST),  # that pane was there before
        (ONLINE, "tmux new-window -d make", 101.5, SANDBOXED, SANDBOXED),  # the server is inside, too
        (ONLINE, "tmux -L other new-window", 101.5, HOST, HOST),  # another server
    ],
)
def test_no_escape(policy: Policy, command: str, started: float, kernel: Kernel, server: Kernel) -> None:
    assert opened(policy, command, started=started, kernel=kernel, server=server) == []


def test_escape_by_typed_keys() -> None:
    assert opened(ONLINE, "tmux send-keys -t %9 'touch /x' Enter", started=50.0) == ["tmux-escape"]
    assert opened(ONLINE, "tmux send-keys -t %3 'touch /x' Enter", started=50.0) == []
