"""Which of a worker CLI's state paths a policy denies, before the worker is started under it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Literal

from agentdash.model.mounts import WriteAccess
from agentdash.model.policy import Policy
from agentdash.model.state_paths import Installed, PathAccess, StatePath, path_access, resolve_path


def paths_under_policy(
    policy: Policy,
    paths: Iterable[StatePath],
    env: Mapping[str, str],
    cwd: str | None,
    missing: Collection[str] = (),
) -> tuple[PathAccess, ...]:
    """Return the state paths and whether the policy lets them be written; unplaced ones are left out.

    Args:
        policy: the policy in force.
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
    """Return the state paths that the policy denies, those first that the CLI needs. Arguments: `paths_under_policy`."""
    found = (path for path in paths_under_policy(policy, paths, env, cwd, missing) if path.denied)
    return tuple(sorted(found, key=lambda path: not path.needed))


def predicted_denials(
    policy: Policy | None, installed: Installed | None, cwd: str | None
) -> dict[str, tuple[PathAccess, ...]]:
    """Return the state paths that a policy denies, by installed worker CLI; CLIs without any are left out."""
    if policy is None or installed is None:
        return {}
    found = {
        agent: denied_paths(policy, rows, installed.env, cwd) for agent, rows in installed.workers.items()
    }
    return {agent: paths for agent, paths in found.items() if paths}
