"""Connections that several ssh clients share (`ControlMaster`).

A client hands its terminal and what it is to run to whatever listens at the `ControlPath`, often below
`/tmp`, where a sandboxed worker may put a socket of its own. So a connection is shared only with a master
that is proven to be an ssh of this user outside every sandbox; otherwise ssh connects by itself.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Final

from agentdash.peers import UnprovenError, prove
from agentdash.programs import environment, find_program

_PROGRAM: Final = re.compile(r"ssh")
_TIMEOUT_S: Final = 5.0
_ALONE: Final = ("-o", "ControlPath=none")


def share_safely(argv: Sequence[str], opened: ExitStack) -> list[str]:
    """Return a command line that, if it is one of ssh, shares the connection of a proven master, or none.

    Args:
        argv: of a carrier.
        opened: keeps the master's socket open: ssh reaches it through this process, or takes its place.
    """
    program, *options = argv
    if program != "ssh":
        return [*argv]
    return [program, *_sharing(options, opened), *options]


def _sharing(question: Sequence[str], opened: ExitStack) -> tuple[str, ...]:
    try:
        done = subprocess.run(
            [find_program("ssh"), "-G", *question],
            env=environment("ssh"),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_TIMEOUT_S,
            check=False,
        )
        settings = dict(line.partition(" ")[::2] for line in done.stdout.splitlines())
        proven = opened.enter_context(prove(settings.get("controlpath", "none"), _PROGRAM))
    except (OSError, UnprovenError, subprocess.TimeoutExpired):
        return _ALONE
    if proven.path.startswith("/proc/"):
        os.set_inheritable(int(proven.path.rpartition("/")[2]), True)
    return "-o", "ControlMaster=no", "-S", proven.path
