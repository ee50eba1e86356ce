"""Command lines of Node."""

from __future__ import annotations

import re

from agentdash.engine.detect.env_output.patterns import Parts, concrete
from agentdash.engine.detect.env_output.scripting.commands import run_text, versions
from agentdash.engine.detect.env_output.scripting.javascript.program import run_node
from agentdash.engine.detect.env_output.streams import UNKNOWN, Call, Result


def command(call: Call) -> list[Result]:
    """Return what `node -e '…'` and `node <<EOF` write."""
    words = list(call.arguments)
    letters = ""
    if found := versions(call, ("--version", "-v")):
        return found
    while words and (text := concrete(words[0])) is not None and text.startswith("-") and len(text) > 1:
        long = {"--eval": "e", "--print": "p", "--no-warnings": "", "--input-type=module": ""}.get(text)
        if long is None and not re.fullmatch(r"-[ep]+", text):
            return UNKNOWN
        letters += text[1:] if long is None else long
        words.pop(0)
    if letters and len(words) == 1:
        code: Parts | None = words[0]
    elif letters or len(words) > 1:
        return UNKNOWN
    elif words and concrete(words[0]) != "-":
        code = dict(call.state.files).get(words[0])
    else:
        code = call.stdin
    return run_text(call, code, lambda text, c, holes: run_node(text, letters, c, holes))
