"""Fleets for tests: every state, verdict and direction, deep trees, wide names, text like markup."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from msgspec.structs import replace

from agentdash.engine.judge.findings.remedies import exclude_flags
from agentdash.model.denials import Denial, PathFacts, Remedy
from agentdash.model.events import Escalation, SourceSeen
from agentdash.model.evidence import Evidence, EvidenceSource
from agentdash.model.findings import Direction, Finding, FindingKind
from agentdash.model.layers import DifferingField, LayerField
from agentdash.model.pane import Pane, PaneKey
from agentdash.model.policy import Filesystem, Network, Policy, PolicyRule
from agentdash.model.states import State
from agentdash.model.thread import Call, Moment, Tokens
from agentdash.model.worker import Agent, Assessment, Got, Link, Sandbox, Snapshot, Worker
from agentdash.replay.clock import VirtualClock
from agentdash.tui.app import AgentDash
from agentdash.tui.options import GoToPane, Options

NOW = 1_773_260_047.0
"""2026-03-11 20:14:07 UTC."""

FULL = Policy(Filesystem.UNRESTRICTED, Network.ON, approval="never", enforced_by="nobody")
ROOT = PolicyRule("/", "read")
WRITABLE = tuple(PolicyRule(path, "write") for path in ("/home/dev/shop", "/tmp", "$TMPDIR"))
WORKSPACE = Policy(Filesystem.WORKSPACE, Network.OFF, (ROOT, *WRITABLE), approval="on-request")
READ = Policy(Filesystem.READ_ONLY, Network.OFF, (ROOT,), approval="on-request")
MEDIATED = Policy(
    Filesystem.CUSTOM,
    Network.MEDIATED,
    (ROOT, PolicyRule("/home/dev/data", "write"), PolicyRule("/home/dev/.ssh", "deny")),
    approval="granular",
)


EXCLUDE_FLAGS = exclude_flags(PathFacts())


def frozen() -> VirtualClock:
    """Return a paused clock."""
    clock = VirtualClock(NOW)
    clock.set(paused=True, now=NOW)
    return clock


class Feed:
    """A feed of snapshots: these, and what is pushed; a pushed exception is raised, None ends the feed."""

    def __init__(self, *snapshots: Snapshot) -> None:
        self.queue: asyncio.Queue[Snapshot | Exception | None] = asyncio.Queue()
        for each in snapshots:
            self.queue.put_nowait(each)

    async def snapshots(self) -> AsyncIterator[Snapshot]:
        while (item := await self.queue.get()) is not None:
            if isinstance(item, Exception):
                raise item
            yield item


def pane(number: int, screen: str = "", **more: Any) -> Pane:
    return Pane(
        PaneKey("default", f"%{number}"),
        session="work",
        window=f"{number}:agents",
        pid=4000 + number,
        command="node",
        title=more.pop("title", ""),
        screen=tuple(screen.splitlines()),
        drawn_at=NOW - 3,
        **more,
    )


def worker(name: str, state: State, why: str, ago: float, **more: Any) -> Worker:
    """Return a worker that was last active when its state began, unless `since` has another time."""
    digits = sum(ord(c) * 31**i for i, c in enumerate(name)) % 16**7
    since, evidence = more.pop("since", ago), more.pop("evidence", ())
    usual = {
        "id": f"019cd{digits:07x}-7aa1-7c03-9d5e-0242ac120002",
        "kind": "codex-thread",
        "agent": Agent("codex", "0.169.0"),
    }
    assessment = Assessment(state, NOW - since, why, evidence)
    return Worker(name=name, assessment=assessment, last_activity=NOW - ago, **{**usual, **more})


def seen(source: EvidenceSource, ago: float, rule: str, text: str, *, agrees: bool = True) -> Evidence:
    return Evidence(source, NOW - ago, rule, text, agrees=agrees)


ROLLOUT, ENVIRONMENT, OUTPUT = EvidenceSource.ROLLOUT, EvidenceSource.ENVIRONMENT, EvidenceSource.OUTPUT
SCREEN, PROCESS = EvidenceSource.SCREEN, EvidenceSource.PROCESS


def finding(
    kind: FindingKind, direction: Direction, configured: str, got: str, message: str, ago: float, **more: Any
) -> Finding:
    usual = {"severity": "warning", "since": NOW - ago, "last": NOW - 1, "count": 9}
    return Finding(kind, direction, configured=configured, got=got, message=message, **{**usual, **more})


FULL_ACCESS = "files unrestricted, network on, approval never"
LIMITED = "files workspace, network off, approval on-request"
STALE = finding(
    FindingKind.STALE_NETWORK_FLAG,
    "label",
    f"turn_context, line 212: {FULL_ACCESS}",
    "CODEX_SANDBOX_NETWORK_DISABLED=1 (pid 4242)",
    "The flag says that the network is off; the kernel says that it is on. Tools that trust the flag will "
    "skip network work. It was inherited from whatever started this Codex.",
    72,
    evidence=(
        seen(ROLLOUT, 900, "policy-in-force", "turn_context, line 212: files unrestricted, network on"),
        seen(ENVIRONMENT, 72, "flags-seen", "CODEX_SANDBOX_NETWORK_DISABLED=1 in pid 4242"),
    ),
    remedy=EXCLUDE_FLAGS,
    pids=(4242,),
    fields=(DifferingField(LayerField.NETWORK_FLAG, expected="unset", actual="1"),),
)
FOREIGN = finding(
    FindingKind.FOREIGN_SANDBOX_FLAG,
    "narrower",
    FULL_ACCESS,
    "CODEX_SANDBOX=seatbelt (pid 4242)",
    "The command carries CODEX_SANDBOX=seatbelt, but this policy starts no sandbox: it was inherited from "
    "whatever started this Codex.",
    70,
    remedy=EXCLUDE_FLAGS,
    fields=(DifferingField(LayerField.SANDBOX_FLAG, expected="unset", actual="seatbelt"),),
)
LOOSER = finding(
    FindingKind.MISSING_NETWORK_FLAG,
    "wider",
    LIMITED,
    "CODEX_SANDBOX_NETWORK_DISABLED unset, seccomp 0 (pid 6001)",
    "The policy turns the network off, but the command does not carry the flag that goes with it, and the "
    "kernel shows no sandbox around it.",
    400,
    severity="danger",
    fields=(
        DifferingField(LayerField.NETWORK_FLAG, expected="1", actual="unset"),
        DifferingField(LayerField.NETWORK, expected="off", actual="host's"),
    ),
)
DENIED = finding(
    FindingKind.DENIED_FILESYSTEM,
    "narrower",
    LIMITED,
    "EROFS: read-only file system, mkdir '/home/dev/.local/share/opencode'",
    "The last thing it tried was denied: it may not write /home/dev/.local/share/opencode.",
    185,
    count=1,
    remedy=Remedy(
        text='[sandbox_workspace_write]\nwritable_roots = ["/home/dev/.local/share/opencode"]',
        where="~/.codex/config.toml, at the end; if it has a table [sandbox_workspace_write] already, put "
        "the line there, in place of one with the same key; then start Codex again",
        once="codex -c 'sandbox_workspace_write.writable_roots=[\"/home/dev/.local/share/opencode\"]'",
    ),
)

OPENCODE_SCREEN = """\
  opencode 1.0.150                                      fix tests

  > make the tests of the checkout service pass

  $ npm test
  EROFS: read-only file system, mkdir '/home/dev/.local/share/opencode'

  Error: could not open the session database

  > _"""


def ran(ident: str, ago: float, text: str, *, took: float | None = None, **more: Any) -> Call:
    """Return a command; one that ended has taken some seconds."""
    ended = {} if took is None else {"ended_at": NOW - ago + took, "outcome": "ended"}
    usual = {"line": 300, "kind": "command", "tool": "shell"}
    return Call(id=ident, at=NOW - ago, text=text, **{**usual, **ended, **more})


NOT_RESOLVED = "curl: (6) Could not resolve host: registry.example.com"
CALLS = (
    ran("c9", 9, "pytest -q tests/checkout", cwd="/home/dev/shop"),
    ran("c8", 26, "env | grep CODEX", took=0, exit_code=0),
    ran(
        "c7",
        44,
        "curl -m 3 https://registry.example.com/left-pad",
        took=3,
        exit_code=6,
        escalation=Escalation("escalated", "the tests download a fixture"),
        denials=(Denial(what="network", operation="resolve", certainty="likely", quote=NOT_RESOLVED),),
    ),
    ran("c6", 58, "src/checkout/total.py", took=0.2, kind="patch", outcome="refused-by-user"),
    ran("c5", 70, "npm run dev", took=1, outcome="running", session="3"),
)
MOMENTS = (
    Moment(NOW - 90_000, "prompt", "Find out why the checkout tests fail, and mend it"),
    Moment(NOW - 900, "policy", "full access, network on, approval never"),
    Moment(NOW - 75, "turn", "started"),
    Moment(NOW - 74, "message", "I'll run the tests first, then see what those that fail share."),
    *(Moment(call.at, "call", call.text, call.id) for call in reversed(CALLS)),
)
HOSTILE = "[bold red]x[/] [/oops] $(reboot) `id` <script>&amp; \\e]2;gone\\a"


def got(network_flag: str, sandbox_flag: str, seccomp: int, namespace: str, ago: float, **more: Any) -> Got:
    source = more.pop("source", ENVIRONMENT)
    return Got(network_flag, sandbox_flag, seccomp, namespace, NOW - ago, source, **more)


def family() -> tuple[Worker, ...]:
    """Return a thread with children and a grandchild."""
    main = worker(
        "main",
        State.RUNNING,
        "turn open, waits for 2 children",
        2,
        since=410,
        line="waiting for 2 children",
        below=("waiting-approval Pasteur the Younger",),
        sandbox=Sandbox("match", FULL, None, got("unset", "unset", 0, "host", 30)),
        tokens=Tokens(total=182_400, context=96_000, window=272_000),
        cwd="/home/dev/shop",
        moments=MOMENTS[:4],
        links=(Link("pane %1", "pid 4100 descends from its first process"),),
        pane=pane(1, "codex\n\n> Find out why the checkout tests fail\n\n  Waiting for Lagrange and Pasteur"),
    )
    commands = "9x: CODEX_SANDBOX_NETWORK_DISABLED=1; not sandboxed; the host's network"
    mismatched = Sandbox(
        "mismatch",
        FULL,
        "asked to leave the sandbox (ended)",
        got("1", "seatbelt", 0, "host", 1, no_new_privs=False, sandboxed=False),
        (STALE, FOREIGN),
        evidence=(
            seen(ENVIRONMENT, 70, "command-seen", commands),
            seen(OUTPUT, 71, "command-seen", "flag=; sandbox=", agrees=False),
        ),
        unread=("the kernel's facts of some of its processes could not be read (macOS, or another user's)",),
    )
    pasteur = worker(
        "Pasteur",
        State.RUNNING,
        "turn open, `pytest -q tests/checkout` is running (pid 4242)",
        0,
        since=72,
        parent=main.id,
        depth=1,
        sandbox=mismatched,
        line="$ pytest -q tests/checkout",
        calls=CALLS,
        moments=MOMENTS,
        tokens=Tokens(total=48_210, context=31_000, window=272_000),
        cwd="/home/dev/shop",
        model="gpt-5.3-codex",
        turns=2,
        pids=(4242,),
        links=(Link("pid 4242", "CODEX_THREAD_ID in its environment: pytest -q"),),
        file="/home/dev/.codex/sessions/2026/03/11/rollout-2026-03-11T20-12-55-019cd.jsonl",
        evidence=(
            seen(ROLLOUT, 72, "turn-open", "task_started, line 213; no task_complete since"),
            seen(PROCESS, 1, "command-running", "pid 4242 `pytest -q tests/checkout`, 1.2 s CPU"),
            seen(EvidenceSource.TITLE, 5, "title-idle", "the pane's title says ready", agrees=False),
        ),
        notes=("3 × unknown world_state2 skipped",),
    )
    lagrange = worker(
        "Lagrange",
        State.RUNNING,
        "turn open, the model is answering",
        1,
        since=71,
        parent=main.id,
        depth=1,
        sandbox=Sandbox("mismatch", FULL, None, Got("1", at=NOW - 3, source=OUTPUT), (STALE,)),
        line="Reading src/checkout/total.py",
        tokens=Tokens(total=22_000),
    )
    younger = worker(
        "Pasteur the Younger",
        State.WAITING_APPROVAL,
        "asks to run `git push`",
        31,
        parent=pasteur.id,
        depth=2,
        sandbox=Sandbox("unverified", WORKSPACE),
    )
    main = replace(main, children=(lagrange.id, pasteur.id))
    return main, lagrange, replace(pasteur, children=(younger.id,)), younger


def in_pane(number: int, name: str, state: State, why: str, ago: float, screen: str, **more: Any) -> Worker:
    """Return a worker that is known by its pane alone."""
    about = {"kind": "pane", "id": f"%{number}", "pane": pane(number, screen, title=f"OC | {name}")}
    return worker(name, state, why, ago, **{**about, **more})


def unlike_others() -> tuple[Worker, ...]:
    """Return workers that wait, or have failed."""
    menu = "Would you like to run the following command?\n\n  $ curl -m 3 http://example.com\n\n"
    outside = "codex-linux-sandbox: files workspace, network off; asked to run outside the sandbox: open"
    return (
        worker(
            "api-worker",
            State.WAITING_APPROVAL,
            "asks to run `curl -m 3 http://example.com`: the network is off",
            14,
            pane=pane(4, f"{menu}> 1. Yes\n  2. No"),
            sandbox=Sandbox(
                "match",
                WORKSPACE,
                outside,
                got("1", "unset", 2, "own", 60, no_new_privs=True, sandboxed=True),
                applied_policy=WORKSPACE,
            ),
            tokens=Tokens(total=61_000, context=201_000, window=272_000),
            calls=CALLS[2:3],
        ),
        in_pane(
            7,
            "fix tests",
            State.BLOCKED_SANDBOX,
            "EROFS: /home/dev/.local/share/opencode is read-only",
            185,
            OPENCODE_SCREEN,
            agent=Agent("opencode", "1.0.150"),
            sandbox=Sandbox("match", WORKSPACE, None, got("1", "unset", 2, "own", 190), (DENIED,)),
            evidence=(
                seen(SCREEN, 185, "opencode.denied", DENIED.got),
                seen(EvidenceSource.KERNEL, 185, "mount-table", "/ is read-only; /home/dev/shop is writable"),
                seen(SCREEN, 2, "redrawn", "the spinner moves: does not count as work", agrees=False),
            ),
        ),
        worker(
            "deploy",
            State.FAILED_PERMISSION,
            "the user refused `kubectl apply`",
            640,
            sandbox=Sandbox("mismatch", WORKSPACE, None, got("unset", "unset", 0, "host", 200), (LOOSER,)),
        ),
        in_pane(
            9,
            "gemini",
            State.FAILED_PROVIDER,
            "429 Too Many Requests: quota exhausted until tomorrow",
            300,
            "API Error: 429",
            agent=Agent("gemini", "0.21.1"),
        ),
        in_pane(
            5,
            "claude",
            State.WAITING_INPUT,
            "sits at its prompt",
            95,
            "╭───╮\n│ > │\n╰───╯",
            agent=Agent("claude", "2.1.4"),
        ),
    )


def ended() -> tuple[Worker, ...]:
    """Return workers that have ended, and odd ones."""
    read = Sandbox("match", READ, None, got("1", "unset", 2, "own", 800, source=OUTPUT))
    unverified = Sandbox("unverified", WORKSPACE)
    return (
        worker("docs", State.COMPLETED, "finished", 720, sandbox=read, tokens=Tokens(total=9_300)),
        worker(
            "データベース移行の調査",
            State.COMPLETED,
            "finished",
            3_000,
            sandbox=Sandbox("unverified", MEDIATED),
            line="移行スクリプトを書きました。テストはまだです。",
        ),
        worker("spike", State.INTERRUPTED, "its user stopped it", 5_400, sandbox=unverified),
        worker(
            HOSTILE,
            State.UNKNOWN,
            HOSTILE,
            7_000,
            agent=Agent(HOSTILE, HOSTILE),
            cwd=f"/home/dev/{HOSTILE}",
            line=HOSTILE,
            evidence=(Evidence(EvidenceSource.TITLE, NOW, "[/rule]", HOSTILE),),
            moments=(Moment(NOW - 7_000, "message", HOSTILE),),
        ),
        worker("nightly", State.UNREACHABLE, "its tmux server does not answer", 8_000),
        worker(
            "old-run",
            State.EXITED,
            "pid 3003 is gone, killed by a signal",
            86_400 * 3,
            pane=pane(3, dead=True, dead_status=137),
            sandbox=unverified,
        ),
    )


def sources(**detail: str) -> tuple[SourceSeen, ...]:
    """Return the health of three sources; those with a detail fail."""
    return tuple(
        SourceSeen(at=NOW - 1, name=name, ok=name not in detail, detail=detail.get(name, ""))
        for name in ("codex", "processes", "tmux")
    )


SNAPSHOT = Snapshot(NOW, (*family(), *unlike_others(), *ended()), sources())
"""Every state, verdict and direction."""
EMPTY = Snapshot(
    NOW,
    (),
    sources(codex="no Codex home at /home/dev/.codex", tmux="no tmux server on /tmp/tmux-1000/default"),
)
BY_ID = {worker.id: worker for worker in SNAPSHOT.workers}
BY_NAME = {worker.name: worker for worker in SNAPSHOT.workers}


def dashboard(
    snapshot: Snapshot = SNAPSHOT, *, go_to_pane: GoToPane | None = None, **options: Any
) -> AgentDash:
    """Return the dashboard with a snapshot that does not change, at its time."""
    return AgentDash(Feed(snapshot), frozen(), options=Options(**options), go_to_pane=go_to_pane)
