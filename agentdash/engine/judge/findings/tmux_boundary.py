"""Tmux across the border of a sandbox: servers that were started inside of one, and commands that got out through one outside.

With the network on, a sandboxed command reaches tmux's socket: what it has a server outside do (a new window, keys typed, a shell) runs
without any sandbox, carries no `CODEX_*`, and is no descendant of Codex. A server started inside keeps all its panes inside, whoever
asks for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec.structs import replace

from agentdash.engine.detect.escalation import granted
from agentdash.engine.detect.shell import statements
from agentdash.engine.judge.findings.policy_checks import in_words
from agentdash.engine.judge.findings.remedies import SERVER_OUTSIDE
from agentdash.engine.link.process_tree import ProcessTree
from agentdash.model.evidence import Evidence
from agentdash.model.findings import Finding, FindingKind
from agentdash.model.fleet import Call, Escape, Thread
from agentdash.model.pane import Pane
from agentdash.model.policy import Filesystem, Policy
from agentdash.model.process import Kernel, Process

_OPENING: Final = frozenset(
    ("new-session", "new", "new-window", "neww", "split-window", "splitw", "respawn-pane", "respawn-window")
)
"""Commands of tmux that start a process in a pane."""
_DRIVING: Final = frozenset(
    ("send-keys", "send", "run-shell", "run", "if-shell", "if", "pipe-pane", "pipep", "source-file", "source")
)
"""Commands of tmux that make something run in what is there."""
_VALUED: Final = ("-L", "-S", "-f", "-c", "-T")
_SLACK: Final = 2.0
"""Seconds by which a pane's process may start before its call is noted, or after it ended."""
_KEPT: Final = 8


def drives_tmux(command: str) -> tuple[str, str | None] | None:
    """What a command line asks which tmux server to run: `new-window`, `-L NAME` (None: the one it finds). None: nothing."""
    if "tmux" not in command:
        return None
    for words in statements(command):
        if words[0].rpartition("/")[2] != "tmux":
            continue
        server, rest = None, list(words[1:])
        while rest and rest[0].startswith("-"):
            option = rest.pop(0)
            value = (
                rest.pop(0) if option in _VALUED and rest else option[2:] if option[:2] in _VALUED else None
            )
            if value and option[:2] in ("-L", "-S"):
                server = f"-L {value}" if option.startswith("-L") else value
        if rest and rest[0] in _OPENING | _DRIVING:
            return rest[0], server
    return None


def detect_escapes(thread: Thread, tree: ProcessTree, panes: Iterable[Pane], host: Kernel | None) -> Thread:
    """The thread with what its calls are now seen to have done through a tmux server outside of its sandbox."""
    if not thread.tmux or host is None:
        return thread
    known = {escape.call for escape in thread.escapes}
    panes = list(panes)
    found = [
        escape
        for call in (*thread.open_calls, *thread.calls)
        if call.id in thread.tmux and call.id not in known and _is_held(thread, call)
        if (escape := _escape(call, tree, panes, host)) is not None
    ]
    return replace(thread, escapes=(*thread.escapes, *found)[-_KEPT:]) if found else thread


def escaped(thread: Thread) -> Iterator[Finding]:
    """The finding about everything that got out."""
    if not thread.escapes:
        return
    first, last = thread.escapes[0], thread.escapes[-1]
    call = next((c for c in thread.calls if c.id == last.call), None)
    policy = thread.policy_at(call.at) if call else thread.policy
    yield Finding(
        kind=FindingKind.TMUX_ESCAPE,
        direction="looser",
        severity="danger",
        configured=in_words(policy) if policy else "not stated",
        got=last.quote,
        message="A sandboxed command had a tmux server outside run something: what runs there has no sandbox, and no mark of Codex.",
        since=first.at,
        last=last.at,
        count=len(thread.escapes),
        evidence=tuple(
            Evidence("kernel", escape.at, "outside-of-the-sandbox", escape.quote) for escape in thread.escapes
        ),
        remedy="sandbox_workspace_write.network_access = false",
        calls=tuple(escape.call for escape in thread.escapes),
        pids=tuple(escape.pid for escape in thread.escapes if escape.pid),
    )


def inside(pane: Pane, server: Process | None, host: Kernel | None) -> tuple[Finding, ...]:
    """The finding about a pane whose tmux server was started inside of a sandbox; none where it was not, or nobody knows."""
    if server is None or server.kernel is None or host is None or not is_apart(server.kernel, host):
        return ()
    differs = ", ".join(server.kernel.apart_from(host))
    quote = f"tmux server pid {server.pid} (inside: {server.inner_pid}) has namespaces of its own: {differs}"
    at = server.key.started
    finding = Finding(
        kind=FindingKind.SANDBOXED_TMUX_SERVER,
        direction="stricter",
        severity="warning",
        configured="a pane of a tmux server",
        got=quote,
        message=f"The tmux server of pane {pane.key} was started inside of a sandbox: all its panes are in it, whoever opens them.",
        since=at,
        last=at,
        count=1,
        evidence=(Evidence("kernel", at, "server-namespaces", quote),),
        remedy=SERVER_OUTSIDE,
        pids=(server.pid,),
    )
    return (finding,)


def is_apart(kernel: Kernel, host: Kernel) -> bool:
    """Whether a process lives in a sandbox, as seen from agentdash: user and mount namespaces of its own, or a filter that it lacks."""
    return {"user", "mnt"} <= set(kernel.apart_from(host)) or (
        bool(kernel.no_new_privs) and not host.no_new_privs
    )


def _is_held(thread: Thread, call: Call) -> bool:
    """Whether the call ran inside of a sandbox, as its policy has it, and was not refused."""
    policy = thread.policy_at(call.at) or Policy()
    sandboxed = policy.enforced_by == "codex" and policy.filesystem not in (
        Filesystem.UNRESTRICTED,
        Filesystem.UNKNOWN,
    )
    return (
        sandboxed
        and not call.by_user
        and granted(thread, call) is None
        and call.denial is None
        and call.exit_code in (0, None)
    )


def _escape(call: Call, tree: ProcessTree, panes: list[Pane], host: Kernel) -> Escape | None:
    asked = drives_tmux(call.text)
    if asked is None:
        return None
    verb, server = asked
    for pane in panes:
        owner = tree.server(pane.key)
        if (
            (server and pane.key.server != server)
            or owner is None
            or owner.kernel is None
            or is_apart(owner.kernel, host)
        ):
            continue
        if verb in _DRIVING:
            if call.exit_code == 0 and (server or _names(call.text, pane)):
                quote = f"`{call.text}` reached the tmux server pid {owner.pid}, which is in no sandbox"
                return Escape(call.ended_at or call.at, call.id, str(pane.key), None, quote)
            continue
        first = tree.first_in(pane.key)
        if first and first.kernel and not is_apart(first.kernel, host) and _fits(call, first.key.started):
            quote = f"`{call.text}` opened pane {pane.key}: pid {first.pid} runs there in no sandbox"
            return Escape(first.key.started, call.id, str(pane.key), first.pid, quote)
    return None


def _fits(call: Call, started: float) -> bool:
    return call.at - _SLACK <= started <= (call.ended_at or started) + _SLACK


def _names(command: str, pane: Pane) -> bool:
    """Whether a command names the pane, its session or window as its target."""
    return any(
        target in (pane.key.id, pane.session) or target.startswith(f"{pane.session}:")
        for target in _targets(command)
    )


def _targets(command: str) -> Iterator[str]:
    for words in statements(command):
        yield from (words[at + 1] for at, word in enumerate(words[:-1]) if word == "-t")
