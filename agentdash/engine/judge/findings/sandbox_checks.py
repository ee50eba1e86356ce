"""Checks of sandbox marks: foreign flags, escalations without effect, nested sandboxes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from agentdash.engine.judge.findings.comparison import Comparison
from agentdash.engine.judge.findings.remedies import OUTSIDE, UNSET_FLAG
from agentdash.engine.judge.findings.remedy_forms import exclude_flags
from agentdash.model.findings import Finding, FindingKind
from agentdash.model.layers import IN_SANDBOX, NO_SANDBOX, SECCOMP_MODES, DifferingField, LayerField
from agentdash.model.observation import SANDBOX_FLAG, UNSET
from agentdash.model.policy import Network

_SEATBELT: Final = "seatbelt"
"""The one value that Codex gives `CODEX_SANDBOX`: on macOS, for commands that it sandboxes."""


def foreign_sandbox_flag(seen: Comparison) -> Finding | None:
    """Return a finding where `CODEX_SANDBOX` is set and Codex would not have set it."""
    value = seen.observation.sandbox_flag
    if value is None or value == UNSET:
        return None
    may_start_one = seen.period is None or seen.policy.has_agent_sandbox
    sandboxed = may_start_one and seen.observation.granted != "outside"
    if value == _SEATBELT and sandboxed and seen.platform != "linux":
        return None  # as expected on macOS; where the platform is not known, it is not counted against it
    reason = "Codex sets this on macOS alone" if sandboxed else "this policy starts no sandbox"
    expected = _SEATBELT if sandboxed and seen.platform == "darwin" else UNSET
    return seen.finding(
        FindingKind.FOREIGN_SANDBOX_FLAG,
        f"The command carries {SANDBOX_FLAG}={value}, but {reason}: it is inherited.",
        fields=(seen.differs(LayerField.SANDBOX_FLAG, expected=expected, actual=value),),
        direction="label" if seen.observation.seccomp == 0 else None,
        remedy=exclude_flags(seen.places),
    )


def escalated_not_host(seen: Comparison) -> Finding | None:
    """Return a finding where a command was allowed to leave the sandbox and is still in one."""
    if seen.observation.granted != "outside" or not seen.observation.sandboxed:
        return None
    hidden = " Paths that the policy hides keep a sandbox around it all the same."
    return seen.finding(
        FindingKind.ESCALATED_NOT_HOST,
        "The command was allowed to run outside of the sandbox; the kernel shows it inside of one."
        + (hidden if seen.policy.has_deny else ""),
        fields=(seen.differs(LayerField.FILES, expected=NO_SANDBOX, actual=IN_SANDBOX, reference="allowed"),),
    )


def escalated_flag_left(seen: Comparison) -> Finding | None:
    """Return a finding where a command has left the sandbox as allowed and still carries the network flag."""
    observation = seen.observation
    if observation.granted != "outside" or observation.sandboxed is not False:
        return None
    if not seen.flag_disables_network or seen.policy.network is Network.ON:
        return None
    return seen.finding(
        FindingKind.ESCALATED_FLAG_LEFT,
        "The command was allowed to run outside of the sandbox, and does: the flag that marks the"
        " network as off"
        " is left over. Tools that trust it will skip network work.",
        fields=(
            seen.differs(
                LayerField.NETWORK_FLAG,
                expected=UNSET,
                actual=observation.network_flag or UNSET,
                reference="allowed",
            ),
        ),
        remedy=UNSET_FLAG,
    )


def nested_sandbox(seen: Comparison) -> Finding | None:
    """Return a finding where Codex itself runs in a sandbox, or a command of full access does."""
    nested, observation = seen.observation.nested, seen.observation
    explained = seen.network_cut or seen.lost_roots
    unasked = seen.policy.is_full_access and observation.sandboxed and not explained
    if not nested and not unasked:
        return None
    where = "Its Codex was itself started" if nested else "The policy starts no sandbox, and the command runs"
    return seen.finding(
        FindingKind.NESTED_SANDBOX,
        f"{where} inside of a sandbox: whatever the policy grants, commands get no more than that"
        " lets through.",
        fields=tuple(_nested_fields(seen)),
        remedy=OUTSIDE,
    )


def _nested_fields(seen: Comparison) -> Iterator[DifferingField]:
    full_access = seen.policy.is_full_access
    yield seen.differs(
        LayerField.FILES,
        expected=NO_SANDBOX if full_access else seen.policy.filesystem.value,
        actual=IN_SANDBOX if full_access else "in another sandbox",
    )
    if full_access and seen.observation.seccomp:
        mode = SECCOMP_MODES.get(seen.observation.seccomp, str(seen.observation.seccomp))
        yield seen.differs(LayerField.SECCOMP, expected=SECCOMP_MODES[0], actual=mode)
