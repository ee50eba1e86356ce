"""Which of a worker CLI's state paths a policy denies: what a run under it would stumble over, before it is started."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Literal

from agentdash.model.mounts import WriteAccess
from agentdash.model.policy import Policy
from agentdash.model.state_paths import Installed, PathAccess, StatePath, access_of, place


def under_policy(
    policy: Policy,
    paths: Iterable[StatePath],
    env: Mapping[str, str],
    cwd: str | None,
    missing: Collection[str] = (),
) -> tuple[PathAccess, ...]:
    """Each state path, and whether the policy lets it be written. Paths whose variables are not known are left out.

    Args:
        policy: the policy in force.
        paths: the rows of one CLI.
        env: the environment it would get: `HOME`, `XDG_*`, `TMPDIR` ...
        cwd: where it would run.
        missing: absolute paths that are known not to be there yet.
    """
    found = []
    for row in paths:
        if (path := place(row.path, env, cwd)) is not None:
            allowed = policy.may_write(path, env.get("TMPDIR"))
            verdict: Literal["unknown", "allowed", "policy"] = (
                "unknown" if allowed is None else "allowed" if allowed else "policy"
            )
            found.append(access_of(row, path, WriteAccess(verdict, missing=path in missing)))
    return tuple(found)


def predicted_denials(
    policy: Policy | None, installed: Installed | None, cwd: str | None
) -> dict[str, tuple[PathAccess, ...]]:
    """Of each worker CLI that could be started: the places of its state that the policy denies. Those without any are left out."""
    if policy is None or installed is None:
        return {}
    found = {agent: denied(policy, rows, installed.env, cwd) for agent, rows in installed.workers.items()}
    return {agent: paths for agent, paths in found.items() if paths}


def denied(
    policy: Policy,
    paths: Iterable[StatePath],
    env: Mapping[str, str],
    cwd: str | None,
    missing: Collection[str] = (),
) -> tuple[PathAccess, ...]:
    """Those that the policy denies, the ones that the CLI cannot do without first. Arguments as of `under_policy`."""
    return tuple(
        sorted(
            (p for p in under_policy(policy, paths, env, cwd, missing) if p.denied),
            key=lambda p: not p.needed,
        )
    )
