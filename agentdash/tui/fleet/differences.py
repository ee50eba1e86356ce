"""What the list of sandbox problems shows of a worker: what is configured, and what it has instead."""

from __future__ import annotations

from typing import Final

from agentdash.model.causes import causes
from agentdash.model.fact import FactKind
from agentdash.model.findings import DENIAL_KINDS, FIELD_LABELS, Finding, expected_label, value_in_words
from agentdash.model.layers import HOST_NETWORK, OWN_NETWORK, LayerField
from agentdash.model.worker import Worker
from agentdash.tui.format import elide, elide_path
from agentdash.tui.primitives.spans import Line, Span
from agentdash.tui.theme import SEVERITY_TONES, Look

_MAIN: Final = (LayerField.FILES, LayerField.NETWORK)
"""What is said of a sandbox; other facts only where it does not differ in these."""
_ORIGINS: Final = {"requested": "asked for"}
_NETWORKS: Final = {"off": "no network", OWN_NETWORK: "no network", "on": "network", HOST_NETWORK: "network"}
_DENIED: Final = "denied"
_WITH_CONFIGURED_FROM_CELLS: Final = 46
"""In a narrower column there is no room for the configured policy."""


def difference_line(worker: Worker, cells: int, look: Look) -> Line:
    """Return what is configured, and what a worker has instead, by its worst problem: `workspace, no network
    → no sandbox, network`."""
    policy = worker.sandbox.configured
    before = (
        f"{policy.brief()} {look.glyphs.arrow} " if policy and cells >= _WITH_CONFIGURED_FROM_CELLS else ""
    )
    wrong = [cause for cause in causes(worker) if not cause.is_known]
    tone = SEVERITY_TONES[wrong[0].worst.severity] if wrong else "muted"
    actual, room, mark = actual_words(worker), cells - len(before), look.glyphs.ellipsis
    is_path = actual.startswith(_DENIED)  # of which the last part tells most
    shown = elide_path(actual, room, mark) if is_path else elide(actual, room, mark)
    return Span(before, "muted"), Span(shown, tone)


def actual_words(worker: Worker) -> str:
    """Return what a worker has instead of what is configured: `no sandbox, network`; if the configured policy
    differs from another, that one: `asked for: read only, no network`; empty if nothing differs."""
    if not (found := causes(worker)):
        return ""
    cause = found[0]
    if cause.worst.kind in DENIAL_KINDS:
        return _denied(worker, cause.worst)
    counted = (finding for finding in cause.findings if finding.severity != "info")
    fields = {field.name: field for finding in counted for field in finding.fields}
    main = [fields[name] for name in _MAIN if name in fields]
    origins: dict[str, list[str]] = {}
    for field in main or fields.values():
        is_other = field.layer == "configured" and field.reference != "configured"
        origin = f"{_ORIGINS.get(field.reference, expected_label(field))}: " if is_other else ""
        value = field.expected if is_other else field.actual
        origins.setdefault(origin, []).append(_value(field.name, value))
    return ", ".join(origin + ", ".join(values) for origin, values in origins.items()) or cause.words


def _denied(worker: Worker, finding: Finding) -> str:
    """Return what was denied: by the newest entry of the ledger with a call of it, or by the state."""
    for entry in reversed(worker.sandbox.denials):
        if entry.target and (not finding.calls or set(entry.calls) & set(finding.calls)):
            return f"{_DENIED} {entry.target}"
    return f"{_DENIED} {worker.fact.object}" if worker.fact.kind is FactKind.DENIED else _DENIED


def _value(name: LayerField, value: str) -> str:
    """Return a value in words that need no label beside them: `no sandbox`, `network flag unset`."""
    if name is LayerField.NETWORK and value in _NETWORKS:
        return _NETWORKS[value]
    words = value_in_words(name, value)
    return words if name is LayerField.FILES else f"{FIELD_LABELS[name]} {words}"
