"""The sandbox of Claude Code in six cases, and the truth of each: for live tests, and to record transcripts.

python -m tests.live.claude_cases [VERSION ...]    # records tests/data/claude again
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.live.claude import VERSIONS, ClaudeLab, install
from tests.live.model_server import Script

DATA: Final = Path(__file__).parents[1] / "data" / "claude"
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


# ---------------------------------------------------------------- recording


_LONG_CHARS: Final = 1_000
"""Longer texts are cut."""
_UNREAD_CHARS: Final = 40
"""Likewise in records that are not shown."""
_MAX_ITEMS: Final = 3
_READ: Final = ("user", "assistant", "system", "permission-mode", "queue-operation")


def _record(version: str, name: str, case: Case) -> None:
    lab = lab_of(case, version)
    try:
        lab.print("[[go]] go", *case.arguments)
        place = DATA / version / name
        shutil.rmtree(place, ignore_errors=True)
        for path in lab.transcripts():
            copy = place / "projects" / "-home-me-ws" / path.relative_to(path.parents[_depth(lab, path)])
            copy.parent.mkdir(parents=True, exist_ok=True)
            lines = [_trimmed(line, lab) for line in path.read_text("utf-8").splitlines()]
            copy.write_text("\n".join(lines) + "\n", "utf-8")
            meta = path.with_suffix(".meta.json")  # of a sub-agent: it names its role
            if meta.exists():
                copy.with_suffix(".meta.json").write_text(meta.read_text("utf-8") + "\n", "utf-8")
        settings = json.dumps(case.settings, indent=2) + "\n"
        (place / "settings.json").write_text(settings, "utf-8")
        (place / "truth.json").write_text(json.dumps({"wrote": has_written(lab)}) + "\n", "utf-8")
        if case.role is not None:
            (place / "agents").mkdir()
            (place / "agents" / "free.md").write_text(case.role, "utf-8")
    finally:
        lab.close()


def _depth(lab: ClaudeLab, path: Path) -> int:
    return len(path.relative_to(lab.config / "projects").parts) - 2


def _trimmed(line: str, lab: ClaudeLab) -> str:
    """Return a record without long texts, secrets, and paths of this machine."""
    record = json.loads(line)
    record.pop("rendered", None)
    if (record.get("attachment") or {}).get("type") != "sandbox_instructions":
        record = shortened(record, _LONG_CHARS if record["type"] in _READ else _UNREAD_CHARS)
    text = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
    for place, name in ((lab.workspace, "/home/me/ws"), (lab.user, "/home/me"), (lab.root, "/home/me/lab")):
        text = text.replace(str(place), name)
        text = text.replace(re.sub(r"[^A-Za-z0-9]", "-", str(place)), name.replace("/", "-"))
    text = text.replace(str(lab.binary.parents[2]), "/opt/claude").replace(
        lab.model.url, "http://127.0.0.1:1"
    )
    text = text.replace(str(Path.home()), "/home/me")
    return re.sub(r"127\.0\.0\.1:\d{4,5}", "127.0.0.1:1", text)


def shortened(value: Any, limit: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= max(limit, 36) else f"{value[:20]}… trimmed"
    if isinstance(value, list):
        return [shortened(item, limit) for item in value[:_MAX_ITEMS]]
    if isinstance(value, dict):
        kept = {"cwd": 500, "timestamp": 50}
        return {key: shortened(item, kept.get(key, limit)) for key, item in value.items()}
    return value


if __name__ == "__main__":
    for each in sys.argv[1:] or VERSIONS:
        for key, chosen in cases().items():
            _record(each, key, chosen)
