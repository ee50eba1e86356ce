"""Commands of agentdash in forked children of a process that has imported everything."""

# ruff: noqa: PLC0415, SIM115 - the child imports what it runs; its files outlive every block

from __future__ import annotations

import os
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from tests.live.patience import scaled
from tests.torture.faults import Place

_TIMEOUT_S: Final = 60.0
"""On a quiet machine, where commands take under a second, and one over 50,000 sessions 40 s."""


class Result(NamedTuple):
    """What a command did."""

    code: int | None
    """Exit code; None: it was still running after the timeout."""
    out: bytes
    err: str


def run(place: Place, arguments: Sequence[str], uid: int) -> Result:
    """Run a command in a forked child: an unprivileged user may not be able to start this Python."""
    files = [tempfile.TemporaryFile() for _ in range(2)]
    sys.stdout.flush()
    if (pid := os.fork()) == 0:
        _child(place, arguments, uid, [file.fileno() for file in files])
    deadline = time.monotonic() + scaled(_TIMEOUT_S)
    while not (ended := os.waitpid(pid, os.WNOHANG))[0] and time.monotonic() < deadline:
        time.sleep(0.01)
    if not ended[0]:
        os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    for file in files:
        file.seek(0)
    out, err = (file.read() for file in files)
    code = os.waitstatus_to_exitcode(ended[1]) if ended[0] else None
    return Result(code, out, err.decode("utf-8", "replace"))


def _child(place: Place, arguments: Sequence[str], uid: int, outputs: Sequence[int]) -> None:
    code = 70
    try:
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for target, output in enumerate(outputs, 1):
            os.dup2(output, target)
        encoding = place.env.get("PYTHONIOENCODING", "utf-8")
        sys.stdout = open(1, "w", encoding=encoding, closefd=False)
        sys.stderr = open(2, "w", encoding=encoding, errors="backslashreplace", closefd=False)
        if os.geteuid() == 0 and uid:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
        os.environ.clear()
        os.environ.update(place.env)
        place.cwd.mkdir(exist_ok=True)
        os.chdir(place.cwd)
        if place.cwd_is_deleted:
            place.cwd.rmdir()
        for kind, value in place.limits.items():
            resource.setrlimit(kind, (value, value))
        for number in place.closed:
            os.close(number)
            setattr(sys, ("stdin", "stdout", "stderr")[number], None)
        sys.argv = ["agentdash", *arguments]
        from agentdash.cli import main

        main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        with suppress(AttributeError, OSError):  # a closed one
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)
