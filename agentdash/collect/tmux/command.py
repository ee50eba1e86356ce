"""Run `tmux` on a server: the only place that does.

A tmux client does what its server tells it: run a shell command, start a program in its own place. It hands
over its environment, too. So a server is proven first to be a tmux of this user outside every sandbox
(`agentdash.peers`), and the client is the very program that the server runs, which always speaks its
protocol. Commands go through its standard input: arguments can be read by every process.
"""

from __future__ import annotations

import errno
import re
import subprocess
from collections.abc import Sequence
from typing import Final

from agentdash.collect.tmux.servers import TmuxServer
from agentdash.model.pane import NO_SERVER, REFUSED
from agentdash.model.sanitize import clean_line
from agentdash.peers import ProvenSocket, UnprovenError, prove
from agentdash.programs import environment

_PROGRAM: Final = re.compile(r"\.?tmux(?:[-_.\d].*)?")
"""`tmux`, `tmux-3.4`, `.tmux-wrapped`."""
_TIMEOUT_S: Final = 2.0
"""A server that does not answer within it hangs, or is stopped."""
_NO_SERVER_MESSAGES: Final = (
    "no server running",
    "No such file",
    "Connection refused",
    "server exited",
    "lost server",
)
"""What tmux prints when there is no server, by version and circumstance."""


class NoAnswerError(Exception):
    """A server did not answer; the message is the reason, one clean line."""


def connect(server: TmuxServer) -> ProvenSocket:
    """Return the socket of a server that is proven to be one.

    Raises:
        NoAnswerError: there is none, it cannot be connected to, or it is refused: nothing was sent to it.
    """
    try:
        return prove(server.socket, _PROGRAM)
    except (FileNotFoundError, NotADirectoryError, ConnectionRefusedError):
        reason = NO_SERVER
    except UnprovenError as error:
        reason = f"{REFUSED}: the socket {error}"
    except OSError as error:
        reason = _reason(error)
    raise NoAnswerError(reason)


def _reason(error: OSError) -> str:
    match error.errno:
        case errno.EPERM:
            return "may not be connected to from inside this sandbox (Operation not permitted)"
        case errno.EACCES:
            return "belongs to another user (Permission denied)"
        case errno.EAGAIN:
            return "does not accept connections"
        case _:
            return clean_line(error.strerror or str(error))


def ask(server: TmuxServer, *command: str, given: str = "") -> str:
    """Return the output of one tmux command.

    Args:
        given: its standard input.

    Raises:
        NoAnswerError: the server did not answer, was refused, or the command failed.
    """
    with connect(server) as proven:
        done = _run(proven, command, given, _TIMEOUT_S)
    if done.returncode:
        raise NoAnswerError(clean_line(done.stderr) or f"tmux {command[0]} failed")
    return done.stdout


def run_commands(
    proven: ProvenSocket, limit_s: float, commands: Sequence[str]
) -> subprocess.CompletedProcess[str]:
    """Run one `tmux` with several commands; one that fails does not keep the next ones from being run.

    Args:
        limit_s: seconds after which the call is given up.
        commands: lines in the syntax of `tmux.conf`.

    Raises:
        NoAnswerError: tmux did not answer in time.
    """
    return _run(proven, ("source-file", "-"), "".join(f"{command}\n" for command in commands), limit_s)


def _run(
    proven: ProvenSocket, arguments: Sequence[str], given: str, limit_s: float
) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            # -u: tmux replaces non-ASCII characters under a plain locale
            ["tmux", "-u", "-S", proven.path, *arguments],
            executable=proven.program,
            env=environment("tmux"),
            input=given,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=limit_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise NoAnswerError(f"no answer within {limit_s:g} s") from None
    except OSError as error:
        raise NoAnswerError(f"tmux cannot be started: {error.strerror}") from None


def failure_reason(stderr: str) -> str:
    """Return why a proven server did not answer, from what tmux printed."""
    if any(message in stderr for message in _NO_SERVER_MESSAGES):
        return NO_SERVER
    return clean_line(stderr.partition("\n")[0]) or "failed without a message"
