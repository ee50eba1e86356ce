"""The sandbox that a Codex states on its screen: the header of `codex exec`, and the block of `/status`.

Both name the thread that they are of: `session id: ID` between two rules, `Session: ID` in the block (0.114
to 0.169). A label without that is not read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from agentdash.model.pane import ScreenLabel
from agentdash.model.policy import Filesystem, Network

_RULE: Final = "--------"
_HEADER_LINES: Final = 20
"""Lines of a header between its rules: 8, and more where a narrow pane wraps them."""
_BANNER: Final = re.compile(r"(?:\W*>_ )?OpenAI Codex \(?v\d")
_FIELD: Final = re.compile(r"^[│\s]*([A-Za-z][A-Za-z. ]*):\s+(\S.*?)[│\s]*$")
_THREAD: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_FILES: Final = {
    "read-only": Filesystem.READ_ONLY,
    "Read Only": Filesystem.READ_ONLY,
    "workspace-write": Filesystem.WORKSPACE,
    "workspace": Filesystem.WORKSPACE,
    "Workspace": Filesystem.WORKSPACE,
    "danger-full-access": Filesystem.UNRESTRICTED,
    "No Sandbox": Filesystem.UNRESTRICTED,
    "Full Access": Filesystem.UNRESTRICTED,
}
_SANDBOX: Final = re.compile(
    rf"(?:Custom \()?(?P<files>{'|'.join(_FILES)})(?P<on> with network access)?(?: \[(?P<roots>[^\]]*)\])?"
    r"(?P<more> \(network access enabled\))?(?=$|[ ,)])"
)


def screen_label(lines: Sequence[str]) -> ScreenLabel | None:
    """Return the newest label on a screen; None without one, or where its words are not known."""
    for at in range(len(lines) - 1, -1, -1):
        if _BANNER.match(lines[at].strip("│ ")):
            return _exec_label(lines[at + 1 :]) or _status_label(lines[at + 1 :])
    return None


def _exec_label(lines: Sequence[str]) -> ScreenLabel | None:
    """Read the lines between the rules of the header of `codex exec`."""
    if not lines or lines[0] != _RULE or _RULE not in lines[1 : _HEADER_LINES + 1]:
        return None
    fields: dict[str, str] = {}
    name = ""
    for line in lines[1 : lines.index(_RULE, 1)]:
        if field := re.match(r"([a-z ]+): (.*)", line):
            name = field[1]
            fields[name] = field[2]
        else:
            fields[name] = fields.get(name, "") + line  # wrapped at the edge of the pane
    return _label(fields.get("sandbox"), fields.get("session id"), is_exec=True)


def _status_label(lines: Sequence[str]) -> ScreenLabel | None:
    """Read the block of `/status`: each field is one line."""
    found = [field for line in lines if (field := _FIELD.match(line))]
    fields = {field[1]: field[2] for field in reversed(found)}
    return _label(fields.get("Permissions"), fields.get("Session"), is_exec=False)


def _label(stated: str | None, thread: str | None, *, is_exec: bool) -> ScreenLabel | None:
    if stated is None or thread is None or not _THREAD.fullmatch(thread.strip()):
        return None
    match = _SANDBOX.match(stated)
    if match is None:
        return None
    files = _FILES[match["files"]]
    is_on = bool(match["on"] or match["more"]) or files is Filesystem.UNRESTRICTED
    is_off = files is Filesystem.WORKSPACE and not is_on
    roots = (root.strip() for root in (match["roots"] or "").split(","))
    return ScreenLabel(
        thread=thread.strip(),
        text=f"sandbox: {stated}" if is_exec else f"Permissions: {stated}",
        filesystem=files,
        network=Network.ON if is_on else Network.OFF if is_off else Network.UNKNOWN,
        roots=tuple(root for root in roots if root.startswith("/")),
        is_fixed=is_exec,
    )
