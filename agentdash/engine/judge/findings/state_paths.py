"""Which of a worker CLI's state paths a policy denies, before the worker is started under it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final, Literal

from agentdash.model.policy import Policy
from agentdash.model.state_paths import (
    Installed,
    PathAccess,
    PredictedDenials,
    StatePath,
    WriteAccess,
    path_access,
    resolve_path,
)

_MAX_PREDICTIONS: Final = 1000
"""Predictions kept: homes hold far fewer distinct pairs of policy and directory."""


def paths_under_policy(
    policy: Policy,
    paths: Iterable[StatePath],
    env: Mapping[str, str],
    cwd: str | None,
    missing: Collection[str] = (),
) -> tuple[PathAccess, ...]:
    """Return the state paths and whether the policy lets them be written; unplaced ones are left out.

    Args:
        paths: the rows of one worker CLI.
        env: the environment that it would get: `HOME`, `XDG_*`, `TMPDIR` ...
        cwd: where it would run.
        missing: absolute paths that are known not to exist yet.
    """
    found = []
    for row in paths:
        if (path := resolve_path(row.path, env, cwd)) is not None:
            verdict = _verdict(policy.may_write(path, env.get("TMPDIR")))
            found.append(path_access(row, path, WriteAccess(verdict, missing=path in missing)))
    return tuple(found)


def _verdict(allowed: bool | None) -> Literal["unknown", "allowed", "policy"]:
    if allowed is None:
        return "unknown"
    return "allowed" if allowed else "policy"


def denied_paths(
    policy: Policy,
    paths: Iterable[StatePath],
    env: Mapping[str, str],
    cwd: str | None,
    missing: Collection[str] = (),
) -> tuple[PathAccess, ...]:
    """Return the state paths that the policy denies, needed ones first. Arguments: `paths_under_policy`."""
    found = (path for path in paths_under_policy(policy, paths, env, cwd, missing) if path.denied)
    return tuple(sorted(found, key=lambda path: not path.needed))


class DenialPredictor:
    """What policies would deny the worker CLIs that could be started on a machine; computed once per policy.

    Args:
        installed: the worker CLIs, and the environment that they would get.
    """

    def __init__(self, installed: Installed) -> None:
        self.installed = installed
        self._known: dict[tuple[Policy, str | None], tuple[PredictedDenials, ...]] = {}

    def predict(self, policy: Policy | None, cwd: str | None) -> tuple[PredictedDenials, ...]:
        """Return the state paths that a policy denies, by worker CLI; those without any are left out."""
        if policy is None:
            return ()
        known = self._known.get((policy, cwd))
        if known is None:
            if len(self._known) >= _MAX_PREDICTIONS:
                self._known.clear()
            known = self._known[policy, cwd] = self._denials(policy, cwd)
        return known

    def _denials(self, policy: Policy, cwd: str | None) -> tuple[PredictedDenials, ...]:
        env = self.installed.env
        found = (
            PredictedDenials(agent, denied_paths(policy, rows, env, cwd))
            for agent, rows in self.installed.workers.items()
        )
        return tuple(denials for denials in found if denials.paths)
