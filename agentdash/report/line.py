"""`agentdash line`: the fleet in a few words, for status lines and prompts.

As `store.line_file`, this imports nothing that starts slowly.
"""

# ruff: noqa: PTH111

from __future__ import annotations

import os
import sys
import time

from agentdash.store.line_file import age, read_line_files

TOO_OLD_S = 60.0
"""As `store.status_file.TOO_OLD`, which imports more."""
_MAX_CLOCK_SKEW_S = 5.0
START = "start `agentdash publish`, or the dashboard"


class NoLineError(Exception):
    """There is no current line file; the message has the reason and the remedy."""


def current_line(home: str | None, now: float) -> dict[str, str] | None:
    """Return the content of the current line file of a Codex home; else of the only current one.

    Args:
        home: its real path; None: not known.
        now: unix seconds.

    Returns:
        None if the home is not known, and several are current.

    Raises:
        NoLineError: no line file is current.
    """
    found = read_line_files()
    current = [each for each in found if _is_current(each, now)]
    of_home = [each for each in current if each["home"] == home]
    if of_home or len(current) == 1:
        return (of_home or current)[0]
    if current and home is None:
        return None
    if current:
        homes = ", ".join(sorted(each["home"] for each in current))
        raise NoLineError(f"no status file of {home}: set CODEX_HOME to one that has one: {homes}")
    if found:
        passed = now - max(float(each["written_at"]) for each in found)
        when = f"{age(passed)} ago" if passed >= 0 else "in the future, or the clock was set back"
        raise NoLineError(f"the status file was written {when}: {START}")
    raise NoLineError(f"there is no status file: {START}")


def named_home() -> str | None:
    """Return the real path of `$CODEX_HOME`, or None: the config file may name one."""
    named = os.environ.get("CODEX_HOME")
    return os.path.realpath(os.path.expanduser(named)) if named else None


def print_line(home: str | None, *, tmux: bool) -> int | None:
    """Print the line; without a current status file `agentdash ?`, and the reason on stderr. Return the exit
    code; None, with nothing printed, if the home has to be known."""
    try:
        line = current_line(home, time.time())
    except NoLineError as error:
        _write("stdout", "agentdash ?\n")
        _write("stderr", f"agentdash: {error}\n")
        return 2
    if line is None:
        return None
    _write("stdout", f"{line['tmux' if tmux else 'plain']}\n")
    return 0


def _write(name: str, text: str) -> None:
    """Write to a stream of `sys`, unless the caller has closed it."""
    if (stream := getattr(sys, name)) is not None:
        stream.write(text)
        stream.flush()


def _is_current(line: dict[str, str], now: float) -> bool:
    return -_MAX_CLOCK_SKEW_S <= now - float(line["written_at"]) <= TOO_OLD_S
