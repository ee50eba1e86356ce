"""Command lines of Lua."""

from __future__ import annotations

from agentdash.engine.detect.env_output.patterns import concrete
from agentdash.engine.detect.env_output.scripting.commands import file_or_input, run_grammar, versions
from agentdash.engine.detect.env_output.scripting.lua.program import Lua
from agentdash.engine.detect.env_output.streams import Call, Result


def command(call: Call) -> list[Result]:
    """Return what `lua -e CODE` and `lua FILE` write."""
    words = list(call.arguments)
    if found := versions(call, ("-v",)):
        return found
    if words and concrete(words[0]) == "-e":
        code = words[1] if len(words) == 2 else None
    else:
        code = file_or_input(call, words)
    return run_grammar(call, code, Lua, "lua")
