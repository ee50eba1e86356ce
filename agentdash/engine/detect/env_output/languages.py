"""One-liners and here-documents of programming languages that print variables of their environment."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from agentdash.engine.detect.env_output.inert import UNKNOWN
from agentdash.engine.detect.env_output.patterns import Parts, concrete
from agentdash.engine.detect.env_output.scripting.awk.program import awk
from agentdash.engine.detect.env_output.scripting.commands import COMMANDS, json_tool, run_text, versions
from agentdash.engine.detect.env_output.scripting.javascript.program import run_node
from agentdash.engine.detect.env_output.scripting.python.program import run_python
from agentdash.engine.detect.env_output.streams import Call, Result

_PYTHON_OPTIONS: Final = re.compile(r"-[uSIEsBq]+")


def python(call: Call) -> list[Result]:
    """Return what `python3 -c '…'` and `python3 - <<EOF` write."""
    words = list(call.arguments)
    code: Parts | None = None
    if found := versions(call, ("--version", "-V")):
        return found
    if [concrete(word) for word in words] == ["-m", "json.tool"]:
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


def node(call: Call) -> list[Result]:
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


LANGUAGES: Final[dict[str, Callable[[Call], list[Result]]]] = {
    "python": python,
    "python3": python,
    "node": node,
    "nodejs": node,
    **COMMANDS,
    "awk": awk,
    "gawk": awk,
    "mawk": awk,
}
