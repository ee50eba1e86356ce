"""The three layers side by side: what was configured, what Codex applied to the newest command, what that command got."""

from __future__ import annotations

from typing import NamedTuple

from agentdash.model.policy import Filesystem, Network, Policy
from agentdash.model.worker import Got, Sandbox
from agentdash.tui.format import pad, stamp
from agentdash.tui.primitives.spans import Line, Span, Tone, paragraph
from agentdash.tui.theme import VERDICT_TONES, Look

_FILES = {
    Filesystem.READ_ONLY: "read only",
    Filesystem.WORKSPACE: "workspace",
    Filesystem.UNRESTRICTED: "all",
    Filesystem.CUSTOM: "custom",
    Filesystem.UNKNOWN: "unknown",
}
_LABEL = 14
"""Cells of the longest label, `CODEX_SANDBOX`, and a space."""
_BESIDE = 52
"""Cells from which on the three layers have room side by side."""
_WIDEST = 30
_UNSEEN = "-"


class Layer(NamedTuple):
    """One row of the table. `-` stands for: not said, or not seen."""

    label: str
    configured: str
    applied: str = _UNSEEN
    got: str = _UNSEEN
    differs: bool = False


def _compared(label: str, configured: str, got: str) -> Layer:
    """A row whose sides are told in the same words."""
    return Layer(label, configured, got=got, differs=_UNSEEN not in (configured, got) and configured != got)


def rows(sandbox: Sandbox) -> list[Layer]:
    """The table.

    The network flag is set by Codex for every command whose policy does not turn the network on, and for no other (0.20 to 0.169);
    `CODEX_SANDBOX` by macOS's sandbox alone, so that only full access promises that it is unset.
    """
    got, policy = sandbox.got, sandbox.configured
    if policy is None:
        unset, flag, policy = _UNSEEN, _UNSEEN, Policy()
    else:
        unset = "unset" if policy.enforced_by == "nobody" else _UNSEEN
        flag = {Network.OFF: "1", Network.ON: "unset", Network.MEDIATED: "unset", Network.UNKNOWN: _UNSEEN}[
            policy.network
        ]
    known, handed = sandbox.configured is not None, sandbox.applied_policy
    return [
        Layer(
            "files", _files(policy) if known else _UNSEEN, _files(handed) if handed else _UNSEEN, _boxed(got)
        ),
        Layer(
            "network",
            policy.network.value if known else _UNSEEN,
            handed.network.value if handed else _UNSEEN,
            _network(got),
            _network_differs(policy, got),
        ),
        _compared("network flag", flag, got.network_flag or _UNSEEN),
        _compared("CODEX_SANDBOX", unset, got.sandbox_flag or _UNSEEN),
        _compared("seccomp", "none" if unset == "unset" else _UNSEEN, _seccomp(got)),
        Layer("approval", policy.approval or _UNSEEN),
    ]


def layers(sandbox: Sandbox, cells: int, look: Look) -> list[Line]:
    """The table. Differences are marked only where the verdict is a mismatch: screens do not judge.

    Where three columns are too narrow, the middle one is left to the words below.
    """
    beside = cells >= _BESIDE
    column = min(_WIDEST, (cells - _LABEL - (2 if beside else 1)) // (3 if beside else 2))
    dots = look.glyphs.ellipsis
    lines = [_heads(sandbox, column, look, beside=beside)]
    for layer in rows(sandbox):
        wrong = sandbox.verdict == "mismatch" and layer.differs
        got = f"{look.glyphs.verdicts['mismatch']} {layer.got}" if wrong else layer.got
        between = (Span(pad(layer.applied, column, dots) + " ", _tone(layer.applied)),) if beside else ()
        lines.append(
            (
                Span(pad(layer.label, _LABEL), "muted"),
                Span(pad(layer.configured, column, dots) + " ", _tone(layer.configured)),
                *between,
                Span(pad(got, column, dots), "mismatch" if wrong else _tone(layer.got)),
            )
        )
    if sandbox.applied:
        lines += paragraph(sandbox.applied, cells, head=(Span(pad("applied", _LABEL), "muted"),), cap=3)
    if sandbox.configured and sandbox.configured.filesystem in (Filesystem.WORKSPACE, Filesystem.CUSTOM):
        roots = "  ".join(sandbox.configured.writable_roots) or "nothing"
        lines += paragraph(roots, cells, head=(Span(pad("writable", _LABEL), "muted"),), cap=2)
    return lines


def _heads(sandbox: Sandbox, column: int, look: Look, *, beside: bool) -> Line:
    glyph, got = look.glyphs.verdicts[sandbox.verdict], sandbox.got
    seen = f"got {stamp(got.at, look.now)}" if got.at is not None else "got"
    words = ("configured", "applied") if beside else ("configured",)
    verdict = Span(pad(f"{glyph} {sandbox.verdict}", _LABEL), VERDICT_TONES[sandbox.verdict])
    return (
        verdict,
        *(Span(pad(word, column + 1), "title") for word in words),
        Span(pad(seen, column), "title"),
    )


def _tone(text: str) -> Tone:
    return "muted" if text == _UNSEEN else ""


def _files(policy: Policy) -> str:
    return _FILES[policy.filesystem] + (", external" if policy.enforced_by == "external" else "")


def _boxed(got: Got) -> str:
    return _UNSEEN if got.sandboxed is None else "in a sandbox" if got.sandboxed else "no sandbox"


def _network(got: Got) -> str:
    if got.network_namespace is None:
        return _UNSEEN
    return "host's" if got.network_namespace == "host" else "own namespace"


def _network_differs(policy: Policy, got: Got) -> bool:
    """A namespace of its own where nobody was to build one; or the host's, unfiltered, where the network was to be off."""
    if got.network_namespace == "own":
        return policy.enforced_by == "nobody" and policy.network is Network.ON
    return got.network_namespace == "host" and got.seccomp == 0 and policy.network is Network.OFF


def _seccomp(got: Got) -> str:
    return (
        _UNSEEN
        if got.seccomp is None
        else {0: "none", 1: "strict", 2: "filter"}.get(got.seccomp, str(got.seccomp))
    )
