"""What differs between versions of Codex in how settings become a policy, as data.

Each fact was measured with real releases and a scripted model, by what a command could write and reach:
0.114, 0.120, 0.125, 0.130, 0.133, 0.134, 0.138, 0.141, 0.145, 0.147, 0.150, 0.155, 0.160, 0.169, 0.171
(`tests/live/test_requested.py`). A newer version has the rules of the newest measured one.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from agentdash.model.versions import numbers_of, stand_in

Release = tuple[int, int]
"""Major and minor number."""

FIRST_MEASURED: Final[Release] = (0, 114)
LAST_MEASURED: Final = "0.171"


class Rules(NamedTuple):
    """How one range of versions resolves settings."""

    root_options_reach_exec: bool
    """Whether `-s`, `-p` and `--add-dir` before `exec` count; through 0.120 they are dropped silently
    (`-c` and `--dangerously-bypass…` always count)."""
    add_dir_with_mode: bool
    """Whether `--add-dir` counts beside `-s` or `sandbox_mode`; in 0.130 it does only without these."""
    profile_tables: bool
    """Whether `-p NAME` and `profile = "NAME"` select `[profiles.NAME]` (through 0.133), which then outranks
    even `-c`; later `-p NAME` layers `NAME.config.toml` over the user's file, and tables are an error."""
    builtin_profiles: bool
    """Whether `default_permissions` may name built-in profiles (`:workspace`); through 0.125 it needs a
    `[permissions]` table."""
    full_access_profile: bool
    """Whether `:danger-full-access` is one of them (not in 0.130)."""
    extends: bool
    """Whether `extends` in a permission profile counts, and `deny` is an access (0.133+)."""
    domains_start_proxy: bool
    """Whether the domains of a permission profile count by themselves (0.125 to 0.130); later only with
    `features.network_proxy`, and through 0.120 not at all."""
    feature_starts_proxy: bool
    """Whether `features.network_proxy` counts (0.133+)."""
    managed_profiles: bool
    """Whether `allowed_permission_profiles` of `requirements.toml` counts (0.138+): it makes every legacy
    setting void, `-s` and `--dangerously-bypass…` too (openai/codex#47464)."""
    refuses_forced_sandbox: bool
    """Whether Codex does not start where approvals are off and requirements do not allow the full access that
    was asked for (0.133+); before, it falls back to read-only with a warning."""
    exec_keeps_reviewed_approval: bool
    """Whether `codex exec` keeps a configured `approval_policy` where an automatic reviewer answers
    (0.145+)."""


_LATEST: Final = Rules(
    root_options_reach_exec=True,
    add_dir_with_mode=True,
    profile_tables=False,
    builtin_profiles=True,
    full_access_profile=True,
    extends=True,
    domains_start_proxy=False,
    feature_starts_proxy=True,
    managed_profiles=True,
    refuses_forced_sandbox=True,
    exec_keeps_reviewed_approval=True,
)
_CHANGES: Final[tuple[tuple[Release, dict[str, bool]], ...]] = (
    ((0, 145), {"exec_keeps_reviewed_approval": False}),
    ((0, 138), {"managed_profiles": False}),
    ((0, 134), {"profile_tables": True}),
    ((0, 133), {"full_access_profile": False, "extends": False, "refuses_forced_sandbox": False}),
    ((0, 133), {"add_dir_with_mode": False, "domains_start_proxy": True, "feature_starts_proxy": False}),
    ((0, 130), {"builtin_profiles": False, "add_dir_with_mode": True}),
    ((0, 125), {"root_options_reach_exec": False, "domains_start_proxy": False}),
)
"""What was otherwise before a version, the newest change first. Where versions between two measured ones may
be either, the later measured one is named."""
_BETWEEN: Final[tuple[tuple[Release, Release], ...]] = (
    ((0, 120), (0, 125)),
    ((0, 125), (0, 130)),
    ((0, 130), (0, 133)),
)
"""Gaps, both ends measured, in which something changed and no version was measured."""


def rules_for(version: str | None) -> Rules | None:
    """Return the rules of a version, for one that is newer than all those of the newest; None where they were
    not measured: of an older version, an unknown one, or one in a gap."""
    found = numbers_of(version)[:2]
    if stand_in(version, LAST_MEASURED) is not None:
        return _LATEST
    if not found or found < FIRST_MEASURED or any(low < found < high for low, high in _BETWEEN):
        return None
    rules = _LATEST
    for before, changes in _CHANGES:
        if found < before:
            rules = rules._replace(**changes)
    return rules


def latest_rules() -> Rules:
    """Return the rules of the newest measured version."""
    return _LATEST
