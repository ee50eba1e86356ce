"""Tmux across the boundary of a sandbox: servers started inside, and commands that reached one outside.

With the network on, a sandboxed command reaches tmux's socket: what it makes a server outside do (open a
window, type keys, run a shell) runs without any sandbox, carries no `CODEX_*`, and is no descendant of Codex.
A server started inside keeps all its panes inside, whichever client opens them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Final, NamedTuple

from msgspec.structs import replace

from agentdash.engine.detect import granted
from agentdash.engine.judge.findings.remedies import SERVER_OUTSIDE, turn_network
from agentdash.engine.judge.findings.wording import make_finding, policy_in_words
from agentdash.engine.link.process_tree import ProcessTree, is_multiplexer
from agentdash.model.denials import PathFacts
from agentdash.model.evidence import Evidence, EvidenceSource
from agentdash.model.findings import Finding, FindingKind
from agentdash.model.layers import DifferingField, LayerField
from agentdash.model.observation import Escape
from agentdash.model.pane import Pane
from agentdash.model.policy import Network, Policy
from agentdash.model.process import Kernel, Process
from agentdash.model.thread import Call, Thread

_OPENING_COMMANDS: Final = frozenset(
    ("new-session", "new", "new-window", "neww", "split-window", "splitw", "respawn-pane", "respawn-window")
)
"""tmux commands that start a process in a pane, with their aliases."""
_DRIVING_COMMANDS: Final = frozenset(
    ("send-keys", "send", "run-shell", "run", "if-shell", "if", "pipe-pane", "pipep", "source-file", "source")
)
"""tmux commands that make a shell or an existing pane run something, with their aliases."""
_OPTIONS_WITH_VALUE: Final = ("-L", "-S", "-f", "-c", "-T")
_START_TOLERANCE_S: Final = 2.0
"""Time by which a pane's process may start before its call is recorded, or after the call has ended."""
MAX_ESCAPES: Final = 8
"""Newest escapes kept of a thread: enough for the evidence of one finding."""


# ---------------------------------------------------------------- commands that reached a server outside


class TmuxRequest(NamedTuple):
    """What a command line makes a tmux server do."""

    verb: str
    """`new-window`, `send-keys` ..."""
    server: str | None
    """`-L NAME`, or a socket path; None for the server that tmux finds by itself."""
    target: str = ""
    """`-t`: a pane, a session, or a window of it."""


def parse_tmux_request(script: str) -> TmuxRequest | None:
    """Parse the first tmux command of a shell script that runs something, or return None."""
    # one-shot commands start faster without the grammar
    from agentdash.sandbox.shell import commands  # noqa: PLC0415

    for command in (commands(script) or ()) if "tmux" in script else ():
        words, server = [word.text for word in command.argv], None
        if not words or words.pop(0).rpartition("/")[2] != "tmux":
            continue
        while words and words[0].startswith("-"):
            option, value = words[0][:2], words.pop(0)[2:]
            if option in _OPTIONS_WITH_VALUE and not value and words:
                value = words.pop(0)
            if value and option in ("-L", "-S"):
                server = f"-L {value}" if option == "-L" else value
        if words and words[0] in _OPENING_COMMANDS | _DRIVING_COMMANDS:
            target = next((value for name, value in pairwise(words) if name == "-t"), "")
            return TmuxRequest(words[0], server, target)
    return None


def detect_escapes(thread: Thread, tree: ProcessTree, panes: Iterable[Pane], host: Kernel | None) -> Thread:
    """Return the thread with what its calls made a tmux server outside its sandbox do."""
    if not thread.tmux or host is None:
        return thread
    new = set(thread.tmux) - {escape.call for escape in thread.escapes}
    calls = [call for call in (*thread.open_calls, *thread.calls) if call.id in new]
    panes = list(panes)
    found = [_escape(call, tree, panes, host) for call in calls if _ran_in_sandbox(thread, call)]
    escapes = (*thread.escapes, *(escape for escape in found if escape is not None))
    return thread if escapes == thread.escapes else replace(thread, escapes=escapes[-MAX_ESCAPES:])


def _ran_in_sandbox(thread: Thread, call: Call) -> bool:
    """Return whether the call ran inside a sandbox, by its policy, and was not refused.

    Without a network no socket outside can be reached from inside: a call that reached one was let out, by a
    rule or by an approval that no file records.
    """
    policy = thread.policy_of(call) or Policy()
    if not policy.restricts_files or call.by_user or granted(thread, call) is not None:
        return False
    return policy.network is not Network.OFF and not call.denials and call.exit_code in (0, None)


def _escape(call: Call, tree: ProcessTree, panes: list[Pane], host: Kernel) -> Escape | None:
    """Return the first pane outside the sandbox that the call opened or drove."""
    if (request := parse_tmux_request(call.script or call.text)) is None:
        return None
    for pane in panes:
        server, first = tree.get(pane.server_pid or 0), tree.get(pane.pid)
        is_asked = request.server in (None, pane.key.server)
        if server is None or not is_multiplexer(server) or not is_asked:
            continue
        if request.verb in _DRIVING_COMMANDS:
            names = (pane.key.id, pane.session)
            is_target = request.target in names or request.target.startswith(f"{pane.session}:")
            if call.exit_code == 0 and (request.server or is_target):
                quote = f"`{call.text}` reached the tmux server pid {server.pid}, which is in no sandbox"
                return Escape(call.ended_at or call.at, call.id, str(pane.key), None, quote)
        elif first is not None and first.kernel is not None and not _is_sandboxed(first.kernel, host):
            started = first.key.started
            ended = (call.ended_at or started) + _START_TOLERANCE_S
            if call.at - _START_TOLERANCE_S <= started <= ended:
                quote = f"`{call.text}` opened pane {pane.key}: pid {first.pid} runs there in no sandbox"
                return Escape(started, call.id, str(pane.key), first.pid, quote)
    return None


def _is_sandboxed(kernel: Kernel, host: Kernel) -> bool:
    """Return whether a process lives in a sandbox that agentdash is not in: with user and mount namespaces
    of its own, or no_new_privs that agentdash does not have."""
    has_own_namespaces = {"user", "mnt"} <= set(kernel.apart_from(host))
    return has_own_namespaces or (bool(kernel.no_new_privs) and not host.no_new_privs)


# ---------------------------------------------------------------- findings


def escape_findings(thread: Thread, places: PathFacts) -> Iterator[Finding]:
    """Yield one finding about all escapes of a thread."""
    if not thread.escapes:
        return
    first, last = thread.escapes[0], thread.escapes[-1]
    call = thread.find_call(last.call)
    policy, called = thread.policy_of(call) if call else thread.policy_at(last.at), call.at if call else None
    kernel, outside = EvidenceSource.KERNEL, f"outside {last.pane}"
    yield make_finding(
        FindingKind.TMUX_ESCAPE,
        "A sandboxed command had a tmux server outside run something: what runs there has no"
        " sandbox, and no mark of Codex.",
        configured=policy_in_words(policy),
        got=last.quote,
        since=first.at,
        last=last.at,
        count=len(thread.escapes),
        evidence=(Evidence(kernel, each.at, "outside-of-the-sandbox", each.quote) for each in thread.escapes),
        remedy=turn_network(Network.OFF, policy, places),
        calls=(each.call for each in thread.escapes),
        pids=(each.pid for each in thread.escapes if each.pid),
        fields=[
            DifferingField(LayerField.TMUX, "in the sandbox", outside, expected_at=called, actual_at=last.at)
        ],
    )


def sandboxed_server_finding(server: Process | None, host: Kernel | None) -> tuple[Finding, ...]:
    """Return the finding about a worker below a tmux server that was started inside a sandbox."""
    if server is None or server.kernel is None or host is None or not _is_sandboxed(server.kernel, host):
        return ()
    at, namespaces = server.key.started, ", ".join(server.kernel.apart_from(host))
    inside = f"(inside: {server.inner_pid}) has namespaces of its own: {namespaces}"
    quote = f"tmux server pid {server.pid} {inside}"
    finding = make_finding(
        FindingKind.SANDBOXED_TMUX_SERVER,
        "The tmux server of the worker was started inside a sandbox: all its panes are in it, whichever"
        " client opens them.",
        configured="a pane of a tmux server",
        got=quote,
        since=at,
        evidence=[Evidence(EvidenceSource.KERNEL, at, "server-namespaces", quote)],
        remedy=SERVER_OUTSIDE,
        pids=[server.pid],
        fields=[DifferingField(LayerField.TMUX, "server in no sandbox", "server in a sandbox", actual_at=at)],
    )
    return (finding,)
