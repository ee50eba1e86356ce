"""What ends the reading of a program."""

from __future__ import annotations


class UnknownError(Exception):
    """The program does something that is not modelled."""
