"""Shell scripts as syntax: a tree of statements (`parse`) and the simple commands in it (`commands`).

What cannot be parsed as bash, zsh and dash alike read it is None, and decides nothing.
"""

from __future__ import annotations

from agentdash.sandbox.shell.commands import Command, Context, commands
from agentdash.sandbox.shell.parser import MAX_SCRIPT_CHARACTERS, parse

__all__ = ["MAX_SCRIPT_CHARACTERS", "Command", "Context", "commands", "parse"]
