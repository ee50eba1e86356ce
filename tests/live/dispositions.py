"""Signal dispositions of started programs: a runner may ignore signals, and its children inherit that."""

from __future__ import annotations

import signal
from typing import Final

ENDING_SIGNALS: Final = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGINT)


def restore_defaults() -> None:
    """Give the ending signals their default action; called in the child, before it executes a program."""
    for number in ENDING_SIGNALS:
        signal.signal(number, signal.SIG_DFL)
