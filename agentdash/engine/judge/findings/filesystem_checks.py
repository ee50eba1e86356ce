"""Checks of files: what the policy makes writable against launcher, mounts and kernel."""

from __future__ import annotations

from agentdash.engine.judge.findings.comparison import Comparison
from agentdash.engine.judge.findings.network_checks import unrecorded_permission
from agentdash.engine.judge.findings.wording import paths_in_words
from agentdash.model.findings import Finding, FindingKind
from agentdash.model.layers import NO_SANDBOX, DifferingField, LayerField
from agentdash.model.policy import Filesystem


def filesystem_narrower(seen: Comparison) -> Finding | None:
    """Return a finding where the command's sandbox denies writing to a root of the policy."""
    lost = seen.lost_roots
    if not lost:
        return None
    by_launcher = seen.applied is not None and bool(seen.applied.grants_less_than(seen.policy))
    return seen.finding(
        FindingKind.FILESYSTEM_NARROWER,
        f"The policy lets {paths_in_words(lost)} be written, the command's sandbox does not.",
        fields=(_files_field(seen, f"not {lost[0]}", by_launcher=by_launcher),),
    )


def filesystem_wider(seen: Comparison) -> Finding | None:
    """Return a finding where more may be written than under the policy, or no sandbox is there at all."""
    policy, observation = seen.policy, seen.observation
    if not policy.restricts_files or not seen.is_bound:
        return None
    if observation.sandboxed is False and policy.enforced_by == "agent":
        return None  # `sandbox_off_for_command`
    if observation.sandboxed is False:
        message = (
            "The policy restricts what may be written, but the kernel shows no sandbox around the command."
            + unrecorded_permission(seen)
        )
        field = seen.differs(LayerField.FILES, expected=policy.filesystem.value, actual=NO_SANDBOX)
    else:
        by_launcher = seen.gained_roots
        gained = by_launcher or observation.exposed
        if not gained:
            return None
        message = (
            f"The policy keeps {paths_in_words(gained)} from being written, the command's sandbox does not."
        )
        field = _files_field(seen, f"also {gained[0]}", by_launcher=bool(by_launcher))
    return seen.finding(
        FindingKind.FILESYSTEM_WIDER,
        message,
        fields=(field,),
        severity="info" if seen.may_be_retry else None,
    )


def _files_field(seen: Comparison, difference: str, *, by_launcher: bool) -> DifferingField:
    """Return the cell of the launcher's policy, or of the command's mounts.

    Args:
        difference: the first path that differs, where the kinds of both policies are the same.
    """
    configured = seen.policy.filesystem
    applied = seen.applied.filesystem if seen.applied is not None else Filesystem.UNKNOWN
    if not by_launcher:
        return seen.differs(LayerField.FILES, expected=configured.value, actual=difference)
    actual = applied.value if applied is not configured else f"{applied.value}, {difference}"
    return seen.differs(LayerField.FILES, expected=configured.value, actual=actual, layer="applied")
