"""What a worker's processes could write, read or connect to: targets by kind, and how sure that is."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Literal

import msgspec

Action = Literal["connect", "write", "read"]
Certainty = Literal["can", "may", "cannot", "unknown"]
"""`can`: mounts, modes, owners and namespaces allow it, and nothing was seen that could refuse it. `may`: the
same, but a seccomp filter, Landlock or a security module, which cannot be read from outside, could. `cannot`:
one of the first refuses it. `unknown`: not visible from here."""


class ReachKind(StrEnum):
    """What reaching a target means, the worst first."""

    ESCAPE = "escape"
    """A socket by which a command runs outside any sandbox: Docker, tmux, the session bus."""
    TAKEOVER = "takeover"
    """A file that others run or trust: logins, shells' start files, the configuration of agents."""
    CREDENTIALS = "credentials"
    """An agent that signs with the user's keys."""
    SECRET = "secret"  # noqa: S105 - the name of a kind
    """A file with keys or tokens."""
    WORKER = "worker"
    """The directory of another worker."""
    NETWORK = "network"
    """The host's network."""


class ReachTarget(msgspec.Struct, frozen=True):
    """A place worth protecting."""

    kind: ReachKind
    path: str
    """Absolute."""
    what: str
    """What it is, in a few words."""
    action: Action


class Reached(msgspec.Struct, frozen=True):
    """A target, and whether a process reaches it."""

    target: ReachTarget
    certainty: Certainty
    how: str = ""
    """How, or what refuses it, in a few words: `create`, `replace`, `read-only mount`."""


class Reach(msgspec.Struct, frozen=True):
    """What a process, or several of one worker together, could reach."""

    targets: tuple[Reached, ...]
    limits: tuple[str, ...] = ()
    """What could refuse more than is known: `a seccomp filter`, `no_new_privs, as with Landlock`."""
    by: Literal["processes", "policy"] = "processes"
    """`policy`: none of its commands runs, so that it follows from the policy and this user's rights."""

    def reached(self) -> tuple[Reached, ...]:
        """Return the targets that it can or may reach, the worst first, those it can before the others."""
        order = list(ReachKind)
        found = [each for each in self.targets if each.certainty in ("can", "may")]
        found.sort(
            key=lambda each: (order.index(each.target.kind), each.certainty, each.target.action != "write")
        )
        return tuple(found)


STRENGTH: Final[tuple[Certainty, ...]] = ("can", "may", "unknown", "cannot")
"""The most first."""


def union(several: tuple[Reach, ...]) -> Reach:
    """Return what several processes reach together: of each target the most that any of them does."""
    best: dict[ReachTarget, Reached] = {}
    for reach in several:
        for each in reach.targets:
            known = best.get(each.target)
            if known is None or STRENGTH.index(each.certainty) < STRENGTH.index(known.certainty):
                best[each.target] = each
    limits = dict.fromkeys(limit for reach in several for limit in reach.limits)
    by = several[0].by if several else "processes"
    return Reach(tuple(best.values()), tuple(limits), by)
