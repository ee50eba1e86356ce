"""Copying inside of tmux: `load-buffer` on the server that agentdash runs in.

tmux ignores what a program in a pane copies by OSC 52 unless `set-clipboard` is `on` (default: `external`).
It sets the clipboard of the terminal itself by `load-buffer -w` (3.2), unless the option is `off`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from agentdash.collect.tmux.command import NoAnswerError, ask
from agentdash.collect.tmux.servers import own_server, server_of

_QUESTION: Final = "#{set-clipboard}\t#{client_termfeatures}"


def copy(text: str, environ: Mapping[str, str] = os.environ) -> str | None:
    """Load a text into tmux's newest buffer, and into the clipboard as far as tmux can.

    Returns:
        What has happened, in words; None outside of tmux.
    """
    if (server := own_server(environ)) is None:
        return None
    try:
        ask(server_of(server, environ), "load-buffer", "-w", "-", given=text)
    except NoAnswerError as error:
        return f"Not copied: {error}; tmux passes it on only after: tmux set -s set-clipboard on"
    found = clipboard(environ)
    return (
        "Copied to tmux's buffer and the clipboard" if found is None else f"Copied to tmux's buffer; {found}"
    )


def clipboard(environ: Mapping[str, str] = os.environ) -> str | None:
    """Return why what is copied does not reach the clipboard of the terminal; None where it does, by what
    tmux knows, or outside of tmux."""
    if (server := own_server(environ)) is None:
        return None
    try:
        answer = ask(server_of(server, environ), "display-message", "-p", _QUESTION)
    except NoAnswerError as error:
        return f"whether it reaches the clipboard is not known: {error}"
    option, _, features = answer.strip("\n").partition("\t")
    if option == "off":
        return "not to the clipboard, since set-clipboard is off: tmux set -s set-clipboard external"
    if "clipboard" not in features.split(","):
        return "not to the clipboard: tmux knows of none for this terminal (terminal-features)"
    return None
