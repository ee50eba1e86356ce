"""Fleets for tests: every state, verdict and direction, deep trees, wide names, text like markup."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from msgspec.structs import replace

from agentdash.engine.judge.findings.remedies import exclude_flags
from agentdash.model.denials import Denial, PathFacts, Remedy
from agentdash.model.events import Escalation, SourceSeen
from agentdash.model.evidence import Evidence, EvidenceSource
from agentdash.model.findings import Finding, FindingKind
from agentdash.model.layers import DifferingField, LayerField
from agentdash.model.pane import Pane, PaneKey
from agentdash.model.policy import Filesystem, Network, Policy, PolicyRule
from agentdash.model.states import State
from agentdash.model.thread import Call, Moment, Tokens
from agentdash.model.worker import Agent, Assessment, Got, Link, Sandbox, Snapshot, Worker
from agentdash.replay.clock import VirtualClock

NOW = 1_773_260_047.0
"""2026-03-11 20:14:07 UTC."""

FULL = Policy(Filesystem.UNRESTRICTED, Network.ON, approval="never", enforced_by="nobody")
WORKSPACE = Policy(
    Filesystem.WORKSPACE,
    Network.OFF,
    (
        PolicyRule("/", "read"),
        PolicyRule("/home/dev/shop", "write"),
        PolicyRule("/tmp", "write"),
        PolicyRule("$TMPDIR", "write"),
    ),
    approval="on-request",
)
READ = Policy(Filesystem.READ_ONLY, Network.OFF, (PolicyRule("/", "read"),), approval="on-request")
MEDIATED = Policy(
    Filesystem.CUSTOM,
    Network.MEDIATED,
    (PolicyRule("/", "read"), PolicyRule("/home/dev/data", "write"), PolicyRule("/home/dev/.ssh", "deny")),
    approval="granular",
)


EXCLUDE_FLAGS = exclude_flags(PathFacts())


def frozen() -> VirtualClock:
    """Return a paused clock."""
    clock = VirtualClock(NOW)
    clock.set(paused=True, now=NOW)
    return clock


class StaticFeed:
    """A feed of these snapshots, one after another; it does not end."""

    def __init__(self, *snapshots: Snapshot) -> None:
        self._snapshots = snapshots

    async def snapshots(self) -> AsyncIterator[Snapshot]:
        for snapshot in self._snapshots:
            yield snapshot
        await asyncio.Event().wait()


class QueueFeed:
    """A feed of pushed snapshots; a pushed exception is raised, None ends the feed."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[Snapshot | Exception | None] = asyncio.Queue()

    def push(self, item: Snapshot | Exception | None) -> None:
        self.queue.put_nowait(item)

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


def worker(
    name: str, state: State, why: str = "", *, ago: float = 5, since: float = 60, **more: Any
) -> Worker:
    agent = more.pop("agent", Agent("codex", "0.169.0"))
    evidence = more.pop("evidence", ())
    digits = sum(ord(c) * 31**i for i, c in enumerate(name)) % 16**7
    return Worker(
        id=more.pop("id", f"019cd{digits:07x}-7aa1-7c03-9d5e-0242ac120002"),
        kind=more.pop("kind", "codex-thread"),
        name=name,
        agent=agent,
        assessment=Assessment(state, NOW - since, why, evidence),
        last_activity=NOW - ago,
        **more,
    )


def seen(source: EvidenceSource, ago: float, rule: str, text: str, *, agrees: bool = True) -> Evidence:
    return Evidence(source, NOW - ago, rule, text, agrees=agrees)


ROLLOUT, ENVIRONMENT, OUTPUT = EvidenceSource.ROLLOUT, EvidenceSource.ENVIRONMENT, EvidenceSource.OUTPUT
SCREEN, PROCESS = EvidenceSource.SCREEN, EvidenceSource.PROCESS


def stale_flag(count: int) -> Finding:
    return Finding(
        kind=FindingKind.STALE_NETWORK_FLAG,
        direction="label",
        severity="warning",
        configured="turn_context, line 212: files unrestricted, network on, approval never",
        got="CODEX_SANDBOX_NETWORK_DISABLED=1 (pid 4242)",
        message="The flag says that the network is off; the kernel says that it is on. "
        "Tools that trust the flag will skip network work. "
        "It was inherited from whatever started this Codex.",
        since=NOW - 72,
        last=NOW - 1,
        count=count,
        evidence=(
            seen(ROLLOUT, 900, "policy-in-force", "turn_context, line 212: files unrestricted, network on"),
            seen(ENVIRONMENT, 72, "flags-seen", "CODEX_SANDBOX_NETWORK_DISABLED=1 in pid 4242"),
        ),
        remedy=EXCLUDE_FLAGS,
        pids=(4242,),
        fields=(DifferingField(LayerField.NETWORK_FLAG, expected="unset", actual="1"),),
    )


FOREIGN = Finding(
    kind=FindingKind.FOREIGN_SANDBOX_FLAG,
    direction="narrower",
    severity="warning",
    configured="files unrestricted, network on, approval never",
    got="CODEX_SANDBOX=seatbelt (pid 4242)",
    message="The command carries CODEX_SANDBOX=seatbelt, but this policy starts no sandbox: "
    "it was inherited from whatever started this Codex.",
    since=NOW - 70,
    last=NOW - 1,
    count=9,
    remedy=EXCLUDE_FLAGS,
    fields=(DifferingField(LayerField.SANDBOX_FLAG, expected="unset", actual="seatbelt"),),
)
LOOSER = Finding(
    kind=FindingKind.MISSING_NETWORK_FLAG,
    direction="wider",
    severity="danger",
    configured="files workspace, network off, approval on-request",
    got="CODEX_SANDBOX_NETWORK_DISABLED unset, seccomp 0 (pid 6001)",
    message="The policy turns the network off, but the command does not carry the flag that goes with it, "
    "and the kernel shows no sandbox around it.",
    since=NOW - 400,
    last=NOW - 200,
    count=2,
    fields=(
        DifferingField(LayerField.NETWORK_FLAG, expected="1", actual="unset"),
        DifferingField(LayerField.NETWORK, expected="off", actual="host's"),
    ),
)
DENIED = Finding(
    kind=FindingKind.DENIED_FILESYSTEM,
    direction="narrower",
    severity="warning",
    configured="files workspace, network off, approval on-request",
    got="EROFS: read-only file system, mkdir '/home/dev/.local/share/opencode'",
    message="The last thing it tried was denied: it may not write /home/dev/.local/share/opencode.",
    since=NOW - 185,
    last=NOW - 185,
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

  I'll look at the failing tests first.

  $ npm test
  > shop@2.1.0 test
  > vitest run

  EROFS: read-only file system, mkdir '/home/dev/.local/share/opencode'

  Error: could not open the session database

  > _"""


def ran(ident: str, ago: float, line: int, text: str, *, took: float | None = None, **more: Any) -> Call:
    """Return a command; one that ended has taken some seconds."""
    if took is not None:
        more = {"ended_at": NOW - ago + took, "outcome": "ended"} | more
    return Call(
        **{"id": ident, "at": NOW - ago, "line": line, "kind": "command", "tool": "shell"} | more, text=text
    )


NOT_RESOLVED = "curl: (6) Could not resolve host: registry.example.com"
CALLS = (
    ran("c9", 9, 340, "pytest -q tests/checkout", cwd="/home/dev/shop"),
    ran(
        *("c8", 26, 331, "env | grep CODEX"),
        took=0,
        exit_code=0,
    ),
    ran(
        *("c7", 44, 320, "curl -m 3 https://registry.example.com/left-pad"),
        took=3,
        exit_code=6,
        escalation=Escalation("escalated", "the tests download a fixture"),
        denials=(Denial(what="network", operation="resolve", certainty="likely", quote=NOT_RESOLVED),),
    ),
    ran(
        *("c6", 58, 310, "src/checkout/total.py"),
        kind="patch",
        tool="apply_patch",
        ended_at=NOW - 57.8,
        outcome="refused-by-user",
    ),
    ran("c5", 70, 300, "npm run dev", took=1, outcome="running", session="3"),
)
MOMENTS = (
    Moment(NOW - 90_000, "prompt", "Find out why the checkout tests fail, and mend it"),
    Moment(NOW - 900, "policy", "full access, network on, approval never"),
    Moment(NOW - 75, "turn", "started"),
    Moment(
        NOW - 74, "message", "I'll run the tests first, then look at what the failing ones have in common."
    ),
    *(Moment(call.at, "call", call.text, call.id) for call in reversed(CALLS[2:])),
    Moment(NOW - 40, "trouble", "stream disconnected before completion: retrying 1/5"),
    *(Moment(call.at, "call", call.text, call.id) for call in reversed(CALLS[:2])),
)

HOSTILE = "[bold red]x[/] [/oops] $(reboot) `id` <script>&amp; \\e]2;gone\\a"


def got(
    network_flag: str,
    sandbox_flag: str | None,
    seccomp: int | None,
    namespace: str | None,
    ago: float,
    **more: Any,
) -> Got:
    source = more.pop("source", ENVIRONMENT)
    return Got(network_flag, sandbox_flag, seccomp, namespace, NOW - ago, source, **more)


def family() -> tuple[Worker, ...]:
    """Return a thread with children and a grandchild."""
    main = worker(
        "main",
        State.RUNNING,
        "turn open, waits for 2 children",
        ago=2,
        since=410,
        line="waiting for 2 children",
    )
    main = replace(
        main,
        below=("waiting-approval Pasteur the Younger",),
        sandbox=Sandbox("match", FULL, None, got("unset", "unset", 0, "host", 30)),
        tokens=Tokens(total=182_400, context=96_000, window=272_000),
        cwd="/home/dev/shop",
        model="gpt-5.3-codex",
        turns=12,
        moments=MOMENTS[:4],
        links=(
            Link("pid 4100", "holds the writer lock"),
            Link("pane %1", "pid 4100 descends from its first process"),
        ),
        pane=pane(1, "codex\n\n> Find out why the checkout tests fail\n\n  Waiting for Lagrange and Pasteur"),
    )
    commands = "9x: CODEX_SANDBOX_NETWORK_DISABLED=1; not sandboxed; the host's network"
    mismatched = Sandbox(
        "mismatch",
        FULL,
        "asked to leave the sandbox (ended)",
        got("1", "seatbelt", 0, "host", 1, no_new_privs=False, sandboxed=False),
        (stale_flag(9), FOREIGN),
        evidence=(
            seen(ENVIRONMENT, 70, "command-seen", commands),
            seen(OUTPUT, 71, "command-seen", "flag=; sandbox=", agrees=False),
        ),
        unread=("the kernel's facts of some of its processes could not be read (macOS, or another user's)",),
    )
    lock = "pid 4100 holds thread-writer-locks/019cd.lock"
    pasteur = worker(
        "Pasteur",
        State.RUNNING,
        "turn open, `pytest -q tests/checkout` is running (pid 4242)",
        ago=0,
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
            seen(EvidenceSource.LOCK, 5, "owner-alive", lock),
            seen(EvidenceSource.TITLE, 5, "title-idle", "the pane's title says ready", agrees=False),
        ),
        notes=("3 × unknown world_state2 skipped",),
    )
    lagrange = worker(
        "Lagrange",
        State.RUNNING,
        "turn open, the model is answering",
        ago=1,
        since=71,
        parent=main.id,
        depth=1,
        sandbox=Sandbox(
            "mismatch", FULL, None, got("1", None, None, None, 3, source=OUTPUT), (stale_flag(9),)
        ),
        line="Reading src/checkout/total.py",
        tokens=Tokens(total=22_000),
        moments=MOMENTS[2:4],
    )
    younger = worker(
        "Pasteur the Younger",
        State.WAITING_APPROVAL,
        "asks to run `git push`",
        ago=31,
        since=31,
        parent=pasteur.id,
        depth=2,
        sandbox=Sandbox("unverified", WORKSPACE),
        line="asks to run `git push`",
    )
    main = replace(main, children=(lagrange.id, pasteur.id))
    return main, lagrange, replace(pasteur, children=(younger.id,)), younger


def unlike_others() -> tuple[Worker, ...]:
    """Return workers that wait, or have failed."""
    asks = "asks to run `curl -m 3 http://example.com`: the network is off"
    menu = "Would you like to run the following command?\n\n  $ curl -m 3 http://example.com\n\n"
    answers = "> 1. Yes\n  2. No"
    return (
        worker(
            "api-worker",
            State.WAITING_APPROVAL,
            asks,
            ago=14,
            since=14,
            pane=pane(4, menu + answers),
            sandbox=Sandbox(
                "match",
                WORKSPACE,
                "codex-linux-sandbox: files workspace, network off; asked to run outside the sandbox: open",
                got("1", "unset", 2, "own", 60, no_new_privs=True, sandboxed=True),
                applied_policy=WORKSPACE,
            ),
            tokens=Tokens(total=61_000, context=201_000, window=272_000),
            line=asks,
            calls=CALLS[2:3],
            moments=MOMENTS[:2],
        ),
        worker(
            "fix tests",
            State.BLOCKED_SANDBOX,
            "EROFS: /home/dev/.local/share/opencode is read-only",
            ago=185,
            since=185,
            agent=Agent("opencode", "1.0.150"),
            kind="pane",
            id="%7",
            pane=pane(7, OPENCODE_SCREEN, title="OC | fix tests"),
            sandbox=Sandbox("match", WORKSPACE, None, got("1", "unset", 2, "own", 190), (DENIED,)),
            evidence=(
                seen(SCREEN, 185, "opencode.denied", DENIED.got),
                seen(EvidenceSource.KERNEL, 185, "mount-table", "/ is read-only; /home/dev/shop is writable"),
                seen(PROCESS, 2, "idle", "no child, 0.0 s CPU in 3m"),
                seen(SCREEN, 2, "redrawn", "the spinner moves: does not count as work", agrees=False),
            ),
            line="Error: could not open the session database",
        ),
        worker(
            "deploy",
            State.FAILED_PERMISSION,
            "the user refused `kubectl apply`",
            ago=640,
            since=640,
            sandbox=Sandbox("mismatch", WORKSPACE, None, got("unset", "unset", 0, "host", 200), (LOOSER,)),
            line="refused",
        ),
        worker(
            "gemini",
            State.FAILED_PROVIDER,
            "429 Too Many Requests: quota exhausted until tomorrow",
            ago=300,
            since=300,
            agent=Agent("gemini", "0.21.1"),
            kind="pane",
            id="%9",
            pane=pane(9, "API Error: 429"),
            line="API Error: 429",
        ),
        worker(
            "claude",
            State.WAITING_INPUT,
            "sits at its prompt",
            ago=95,
            since=95,
            agent=Agent("claude", "2.1.4"),
            kind="pane",
            id="%5",
            pane=pane(5, "╭───╮\n│ > │\n╰───╯"),
            line="? for shortcuts",
        ),
    )


def ended() -> tuple[Worker, ...]:
    """Return workers that have ended, and odd ones."""
    complete = "finished"
    return (
        worker(
            "docs",
            State.COMPLETED,
            complete,
            ago=720,
            since=720,
            pane=pane(2),
            sandbox=Sandbox("match", READ, None, got("1", "unset", 2, "own", 800, source=OUTPUT)),
            line="The README now says how to install it.",
            tokens=Tokens(total=9_300),
        ),
        worker(
            "データベース移行の調査",
            State.COMPLETED,
            complete,
            ago=3_000,
            since=3_000,
            sandbox=Sandbox("unverified", MEDIATED),
            line="移行スクリプトを書きました。テストはまだです。",
        ),
        worker(
            "spike",
            State.INTERRUPTED,
            "its user stopped it",
            ago=5_400,
            since=5_400,
            sandbox=Sandbox("unverified", WORKSPACE),
            line="Let me think about the alternatives.",
        ),
        worker(
            HOSTILE,
            State.UNKNOWN,
            HOSTILE,
            ago=7_000,
            since=7_000,
            agent=Agent(HOSTILE, HOSTILE),
            cwd=f"/home/dev/{HOSTILE}",
            line=HOSTILE,
            evidence=(Evidence(EvidenceSource.TITLE, NOW, "[/rule]", HOSTILE),),
            moments=(Moment(NOW - 7_000, "message", HOSTILE),),
        ),
        worker(
            "nightly",
            State.UNREACHABLE,
            "its tmux server does not answer",
            ago=9_000,
            since=8_000,
            sandbox=Sandbox("unverified", FULL),
        ),
        worker(
            "old-run",
            State.EXITED,
            "pid 3003 is gone, killed by a signal",
            ago=86_400 * 3,
            since=86_400 * 3,
            pane=pane(3, dead=True, dead_status=137),
            sandbox=Sandbox("unverified", WORKSPACE),
        ),
    )


def full_fleet() -> Snapshot:
    """Return a fleet with every state, verdict and direction."""
    return Snapshot(NOW, (*family(), *unlike_others(), *ended()), sources())


def sources(**detail: str) -> tuple[SourceSeen, ...]:
    """Return the health of three sources; those with a detail fail."""
    return tuple(
        SourceSeen(at=NOW - 1, name=name, ok=name not in detail, detail=detail.get(name, ""))
        for name in ("codex", "processes", "tmux")
    )


def empty_fleet() -> Snapshot:
    """Return a snapshot without workers, with two failing sources."""
    return Snapshot(
        NOW,
        (),
        sources(codex="no Codex home at /home/dev/.codex", tmux="no tmux server on /tmp/tmux-1000/default"),
    )


SNAPSHOT = full_fleet()
BY_ID = {worker.id: worker for worker in SNAPSHOT.workers}
BY_NAME = {worker.name: worker for worker in SNAPSHOT.workers}
