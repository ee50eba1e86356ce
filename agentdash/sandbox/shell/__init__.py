"""Shell scripts as syntax: a tree of statements (`parse`) and the simple commands in it (`commands`).

The grammar is tree-sitter's for bash; scripts for sh and zsh are read with it too. What it cannot parse is
None, and decides nothing.
"""

from __future__ import annotations

from agentdash.sandbox.shell.commands import Command, Context, commands, unwrap
from agentdash.sandbox.shell.parser import MAX_SCRIPT_CHARACTERS, parse
from agentdash.sandbox.shell.syntax import (
    AndOr,
    Assignment,
    Case,
    CaseItem,
    Compound,
    For,
    Function,
    Group,
    If,
    Item,
    Node,
    Not,
    Opaque,
    Parameter,
    Piece,
    Pipeline,
    ProcessSubstitution,
    Redirect,
    Script,
    Simple,
    Substitution,
    Text,
    Timed,
    Unsupported,
    While,
    Word,
)

__all__ = [
    "MAX_SCRIPT_CHARACTERS",
    "AndOr",
    "Assignment",
    "Case",
    "CaseItem",
    "Command",
    "Compound",
    "Context",
    "For",
    "Function",
    "Group",
    "If",
    "Item",
    "Node",
    "Not",
    "Opaque",
    "Parameter",
    "Piece",
    "Pipeline",
    "ProcessSubstitution",
    "Redirect",
    "Script",
    "Simple",
    "Substitution",
    "Text",
    "Timed",
    "Unsupported",
    "While",
    "Word",
    "commands",
    "parse",
    "unwrap",
]
