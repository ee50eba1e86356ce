"""The debug log: tracebacks of sources and engine, restarts of sources, slow steps.

Off by default. It holds no message bodies and no secrets.
"""

from __future__ import annotations

import atexit
import logging
import os
from pathlib import Path
from typing import Any, Final

import click

from agentdash.cli.paths import UserPath
from agentdash.model.sanitize import clean_line
from agentdash.model.secrets import mask_secrets

_ROOT: Final = logging.getLogger("agentdash")
_ROOT.addHandler(logging.NullHandler())  # else the standard library prints tracebacks on stderr
_MAX_LINE_CHARS: Final = 200
"""Of a traceback: a message may quote what was read."""
_META_KEY: Final = "agentdash.debug_log"


class _Formatter(logging.Formatter):
    """A traceback has places in the code and the messages, cut and masked, never values."""

    def formatException(self, ei: Any) -> str:  # noqa: N802 - the name is logging's
        lines = mask_secrets(super().formatException(ei)).splitlines()
        return "\n".join(clean_line(line, _MAX_LINE_CHARS) for line in lines)


class _LogFile(logging.FileHandler):
    """Appends to the file until that fails, as on a full disk; states that at exit, when no screen is up."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the name is logging's
        del record
        _ROOT.removeHandler(self)
        text = f"agentdash: --debug-log: {clean_line(self.baseFilename)} cannot be written any more"
        atexit.register(click.echo, text, err=True)


def start(file: Path) -> None:
    """Append to a debug log from now on; it is readable by its owner alone.

    Raises:
        click.UsageError: the file cannot be written.
    """
    if os.path.abspath(file) in _files():  # noqa: PTH100 - as logging names it
        return
    shown = clean_line(str(file))
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK, 0o600))
        if not file.is_file():
            raise click.UsageError(f"--debug-log: {shown} is not a regular file")
        handler = _LogFile(file, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise click.UsageError(f"--debug-log: {shown} cannot be written: {error.strerror}") from error
    handler.setFormatter(_Formatter("%(asctime)s %(levelname)s %(process)d %(name)s: %(message)s"))
    _ROOT.addHandler(handler)
    _ROOT.setLevel(logging.DEBUG)


def _files() -> list[str]:
    """Return the file that is written to; none if the log is off."""
    return [each.baseFilename for each in _ROOT.handlers if isinstance(each, logging.FileHandler)]


def hint() -> str:
    """Return where the traceback of a failure is, for the end of a message."""
    return f"see {clean_line(_files()[0])}" if _files() else "--debug-log FILE writes the traceback"


def _begin(context: click.Context, parameter: click.Parameter, value: Path | None) -> None:
    del parameter
    if value is not None and not context.resilient_parsing:
        context.meta[_META_KEY] = value
        start(value)


OPTION: Final = click.Option(
    ["--debug-log"],
    type=UserPath(dir_okay=False),
    metavar="FILE",
    expose_value=False,
    is_eager=True,
    callback=_begin,
    help="Append tracebacks, restarts of sources and slow steps to FILE.",
)
"""Every command has it."""


def given(context: click.Context) -> dict[str, Any]:
    """Return the option as a configuration value, where it was given."""
    return {"debug_log": context.meta[_META_KEY]} if _META_KEY in context.meta else {}
