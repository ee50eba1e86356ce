"""Copying inside of tmux: `load-buffer` on the server that agentdash runs in.

tmux ignores what a program in a pane copies by OSC 52 unless `set-clipboard` is `on` (default: `external`).
It sets the clipboard of the terminal itself by `load-buffer -w` (3.2), unless the option is `off`.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from agentdash.collect.tmux.servers import own_socket
from agentdash.model.sanitize import clean_line

_TIMEOUT_S: Final = 2.0
"""A server that does not answer within it hangs, or is stopped."""
_QUESTION: Final = "#{set-clipboard}\t#{client_termfeatures}"


def copy(text: str, environ: Mapping[str, str] = os.environ) -> str | None:
    """Load a text into tmux's newest buffer, and into the clipboard as far as tmux can.

    Returns:
        What has happened, in words; None outside of tmux.
    """
    if (socket := own_socket(environ)) is None:
        return None
    problem = _tmux(socket, "load-buffer", "-w", "-", given=text)
    if isinstance(problem, OSError):
        return f"Not copied: {problem}; tmux passes it on only after: tmux set -s set-clipboard on"
    found = clipboard(environ)
    return (
        "Copied to tmux's buffer and the clipboard" if found is None else f"Copied to tmux's buffer; {found}"
    )


def clipboard(environ: Mapping[str, str] = os.environ) -> str | None:
    """Return why what is copied does not reach the clipboard of the terminal; None where it does, by what
    tmux knows, or outside of tmux."""
    if (socket := own_socket(environ)) is None:
        return None
    answer = _tmux(socket, "display-message", "-p", _QUESTION)
    if isinstance(answer, OSError):
        return f"whether it reaches the clipboard is not known: {answer}"
    option, _, features = answer.strip("\n").partition("\t")
    if option == "off":
        return "not to the clipboard, since set-clipboard is off: tmux set -s set-clipboard external"
    if "clipboard" not in features.split(","):
        return "not to the clipboard: tmux knows of none for this terminal (terminal-features)"
    return None


def _tmux(socket: Path, *args: str, given: str | None = None) -> str | OSError:
    """Return what a tmux command prints, or why it failed."""
    command = ["tmux", "-S", str(socket), *args]
    try:
        done = subprocess.run(
            command, input=given, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return OSError(clean_line(str(error)))
    if done.returncode:
        return OSError(clean_line(done.stderr) or f"tmux {args[0]} failed")
    return done.stdout
