"""Hosts whose ssh prints banners, garbage or endless lines, hangs, or ignores signals."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.torture.scenes import scene
from tests.torture.stage import Stage, becomes, quits, whole

_SCRIPTS: Final = {
    "hangs": "exec sleep 1000",
    "ignores signals": "trap '' TERM INT HUP; while :; do sleep 1; done",
    "sends binary data": "exec cat /dev/urandom",
    "sends an endless line": "exec cat /dev/zero",
    "prints a banner": r"printf '** Welcome **\n\033[2J\033]0;x\007\n'; exit 0",
    "sends other documents": """while :; do echo '{"schema":"agentdash.change/1","worker":{}}'; done""",
    "refuses": r"printf '\033[31mPermission denied\n\n' >&2; exit 255",
    "dies": "kill -9 $$",
}
_HOST: Final = "build1"


for _name, _script in _SCRIPTS.items():

    def _play(stage: Stage, script: str = _script) -> Iterator[str]:
        ssh = stage.place.root / "hosts" / "ssh"
        ssh.parent.mkdir(mode=0o755)
        ssh.write_text(f"#!/bin/sh\n{script}\n")
        ssh.chmod(0o755)
        stage.env["PATH"] = f"{ssh.parent}:{stage.env['PATH']}"
        done = stage.run("status", "--json", "--no-tmux", "--host", _HOST)
        yield from whole(done)
        failed = [source for source in done.document.get("sources", ()) if not source["ok"]]
        if _HOST not in json.dumps(failed):
            yield f"the host looks well: {done.document.get('sources')}"
        done = stage.run("remote", "check", _HOST)
        if done.code not in (1, 2) or "\x1b" in done.out + done.err:
            yield f"remote check: {done.code} {done.err[-200:]}"
        yield from quits(stage.open_screen("--no-tmux", "--host", _HOST))
        if not becomes(lambda: not _running(str(ssh))):
            yield "an ssh runs on"

    scene(f"the ssh to a host {_name}")(_play)


def _running(program: str) -> bool:
    """Return whether a process has this argument."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                arguments = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if program.encode() in arguments[:2]:
                return True
    return False
