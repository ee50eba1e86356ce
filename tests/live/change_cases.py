"""A session that changes files, run by real CLIs: what a reader of its log must find is in the workspace.

python -m tests.live.change_cases [NAME ...]    # records tests/data/changes again
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from tests.live import claude, codex
from tests.live.claude_cases import shortened

DATA: Final = Path(__file__).parents[1] / "data" / "changes"
BEFORE: Final = {
    "app.py": "".join(f"line {number}\n" for number in range(1, 31)),
    "old.txt": "old\n",
    "moved.txt": "one\ntwo\nthree\n",
}
"""The files of the workspace before."""
_FIRST: Final = """*** Begin Patch
*** Update File: app.py
@@
 line 2
-line 3
+line three
+line three and a half
 line 4
@@
 line 20
-line 21
 line 22
*** Add File: docs/new.md
+# New
+
+Grüße | `code`
*** Delete File: old.txt
*** End Patch"""
_SECOND: Final = """*** Begin Patch
*** Update File: moved.txt
*** Move to: docs/moved.txt
@@
 one
-two
+zwei
 three
*** End Patch"""
_WRONG: Final = """*** Begin Patch
*** Update File: app.py
@@
-no such line
+never written
*** End Patch"""
_OUTSIDE: Final = """*** Begin Patch
*** Add File: {0}
+never written
*** End Patch"""
_ANSWER: Final = "**Done**: `app.py` has changed.\n\n- one\n- two <b>three</b>\n"
CODEX_VERSIONS: Final = ("0.114.0", "0.150.0", "0.169.0")
_DENIED: Final = "/usr/local/never-written"
_PROSE_CHARS: Final = 40
"""Longer texts of records that are not shown are cut."""


def codex_steps() -> list[dict[str, Any]]:
    """Return the steps of a Codex."""
    return [
        {"patch": _FIRST},
        {"patch": _SECOND},
        {"run": "printf 'by the shell\\n' > shell.txt && cat app.py | head -3"},
        {"patch": _WRONG},
        {"patch": _OUTSIDE.format(_DENIED)},
        {"run": "touch /usr/local/denied; sleep 0.3; exit 3"},
        {"say": _ANSWER},
    ]


def claude_steps(workspace: Path) -> list[dict[str, Any]]:
    """Return the steps of a Claude Code."""
    app = str(workspace / "app.py")
    new = str(workspace / "docs" / "new.md")
    return [
        {"tool": "Read", "args": {"file_path": app}},
        {"tool": "Edit", "args": {"file_path": app, "old_string": "line 3\n", "new_string": "line three\n"}},
        {"tool": "Write", "args": {"file_path": new, "content": "# New\n\nGrüße | `code`\n"}},
        {
            "tool": "Edit",
            "args": {"file_path": app, "old_string": "line 2", "new_string": "row 2", "replace_all": True},
        },
        {"tool": "Edit", "args": {"file_path": app, "old_string": "no such line", "new_string": "x"}},
        {"run": "printf 'by the shell\\n' > shell.txt; sleep 0.3; exit 3"},
        {"say": _ANSWER},
    ]


def record(name: str) -> None:
    """Record a session: `codex-VERSION` or `claude-VERSION`."""
    agent, _, version = name.partition("-")
    if agent == "codex":
        lab: Any = codex.Lab(codex.install(version), {"go": codex_steps()})
    else:
        lab = claude.ClaudeLab(claude.install(version), {"go": []})
        lab.model.script = {"go": claude_steps(lab.workspace)}
    try:
        for file, text in BEFORE.items():
            (lab.workspace / file).write_text(text, "utf-8")
        if agent == "codex":
            _run_codex(lab)
            logs = list((lab.home / "sessions").rglob("*.jsonl"))
        else:
            lab.print("[[go]] change files", "--permission-mode", "bypassPermissions")
            logs = list((lab.config / "projects").rglob("*.jsonl"))
        after = {
            str(file.relative_to(lab.workspace)): file.read_text("utf-8")
            for file in sorted(lab.workspace.rglob("*"))
            if file.is_file()
        }
        folder = DATA / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for log in logs:
            text = log.read_text("utf-8")
            for path, stands_for in (
                (lab.workspace, "/home/dev/project"),
                (lab.user, "/home/dev"),
                (lab.root, "/home"),
            ):
                text = text.replace(str(path), stands_for)
                text = text.replace(str(path).replace("/", "-"), stands_for.replace("/", "-"))
            lines = [_without_prose(line) for line in text.splitlines()]
            (folder / log.name).write_text("\n".join(lines) + "\n", "utf-8")
        (folder / "after.json").write_text(json.dumps(after, indent=1, ensure_ascii=False) + "\n", "utf-8")
    finally:
        lab.close()


def _run_codex(lab: codex.Lab) -> None:
    command = (
        str(lab.binary),
        "exec",
        "-s",
        "workspace-write",
        "--skip-git-repo-check",
        "[[go]] change files",
    )
    subprocess.run(
        command,
        cwd=lab.workspace,
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(lab.user), "CODEX_HOME": str(lab.home)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
        timeout=300,
    )


def _without_prose(line: str) -> str:
    """Return a line without the texts that the vendor wrote."""
    record = json.loads(line)
    payload = record.get("payload") or {}
    if record["type"] == "session_meta":
        payload.pop("base_instructions", None)
    if payload.get("role") == "developer":
        payload["content"] = []
    if "payload" not in record and record["type"] not in ("user", "assistant"):
        record = shortened(record, _PROSE_CHARS)
    return json.dumps(record, separators=(",", ":"), ensure_ascii=False)


if __name__ == "__main__":
    for each in sys.argv[1:] or (
        *(f"codex-{version}" for version in CODEX_VERSIONS),
        f"claude-{claude.VERSION}",
    ):
        record(each)
        sys.stderr.write(f"{each}\n")
