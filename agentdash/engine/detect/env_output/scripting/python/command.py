"""Command lines of Python."""

from __future__ import annotations

import re
from typing import Final

from agentdash.engine.detect.env_output.patterns import Parts, concrete
from agentdash.engine.detect.env_output.scripting.commands import run_text, versions
from agentdash.engine.detect.env_output.scripting.python.program import run_python
from agentdash.engine.detect.env_output.streams import UNKNOWN, Call, Result

_PYTHON_OPTIONS: Final = re.compile(r"-[uSIEsBq]+")


def command(call: Call) -> list[Result]:
    """Return what `python3 -c '…'` and `python3 - <<EOF` write."""
    words = list(call.arguments)
    code: Parts | None = None
    if found := versions(call, ("--version", "-V")):
        return found
    if [concrete(word) for word in words] == ["-m", "json.tool"]:
        from agentdash.engine.detect.env_output.scripting.jq.command import json_tool  # noqa: PLC0415 - rarely

        return json_tool(call)
    while words:
        text = concrete(words[0])
        if text == "-c" and len(words) > 1:
            code = words[1]
            break
        if text == "-":
            code = call.stdin
            break
        if text is None or not _PYTHON_OPTIONS.fullmatch(text):
            if (code := dict(call.state.files).get(words[0])) is None:
                return UNKNOWN
            break
        words.pop(0)
    else:
        code = call.stdin
    return run_text(call, code, run_python)
