"""The sandbox of Claude Code in cases with known truth; their transcripts are those of tests/data/claude."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from tests.live.claude import ClaudeLab, install
from tests.live.model_server import Script

WRITE: Final = "touch $HOME/wrote && echo wrote; grep -E 'Seccomp:|NoNewPrivs' /proc/self/status; sleep {0}"
"""Writes into the home directory, which no sandbox lets be written, and prints what the kernel has of it."""
_MARK: Final = "wrote"
_ON: Final = {"sandbox": {"enabled": True}, "permissions": {"allow": ["Bash"]}}
_ROLE: Final = "---\nname: free\ndescription: may do all\npermissionMode: bypassPermissions\n---\nDo it.\n"
_CHILD: Final = {"description": "a child", "prompt": "[[child]] do your part", "subagent_type": "free"}


class Case(NamedTuple):
    """One case: what is set, and what the model does."""

    script: Script
    settings: Mapping[str, Any] = {}
    without: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    role: str | None = None


def cases(seconds: float = 0.0) -> dict[str, Case]:
    """Return the cases; each command lasts so long."""
    write = WRITE.format(seconds)
    once: Script = {"go": [{"run": write}, {"say": "done"}]}
    return {
        "off": Case(once, {"permissions": {"allow": ["Bash"]}}),
        "on": Case(once, _ON),
        "on-without-bwrap": Case(once, _ON, without=("bwrap",)),
        "on-cannot-start": Case(
            {"go": [{"run": write}, {"run": write}, {"say": "done"}]}, _ON, broken=("socat",)
        ),
        "off-for-command": Case(
            {"go": [{"run": write, "unsandboxed": True}, {"say": "done"}]},
            _ON,
            arguments=("--permission-mode", "bypassPermissions"),
        ),
        "excluded-command": Case(
            {"go": [{"run": f"touch $HOME/wrote && sleep {seconds}"}, {"say": "done"}]},
            {**_ON, "sandbox": {"enabled": True, "excludedCommands": ["touch:*", "sleep:*"]}},
        ),
        "child-mode": Case(
            {
                "go": [{"tool": "Agent", "args": _CHILD}, {"say": "done"}],
                "child": [{"run": write}, {"say": "child done"}],
            },
            role=_ROLE,
        ),
        "network-denied": Case(
            {"go": [{"run": f"curl -sS -m 5 http://example.com/; sleep {seconds}"}, {"say": "done"}]}, _ON
        ),
        "provider-fails": Case({"go": [{"fail": 500}]}),
    }


def lab_of(case: Case, version: str) -> ClaudeLab:
    """Return a lab in which a case can be run."""
    binary = install(version)
    lab = ClaudeLab(binary, case.script, case.settings, without=case.without, broken=case.broken)
    if case.role is not None:
        (lab.config / "agents").mkdir()
        (lab.config / "agents" / "free.md").write_text(case.role, "utf-8")
    return lab


def has_written(lab: ClaudeLab) -> bool:
    """Return whether a command of the case has written into the home directory."""
    return (lab.user / _MARK).exists()
