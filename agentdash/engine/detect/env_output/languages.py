"""One-liners and here-documents of programming languages that print variables of their environment."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from agentdash.engine.detect.env_output.awk import awk
from agentdash.engine.detect.env_output.declarations import not_found
from agentdash.engine.detect.env_output.expression_forms import JQ
from agentdash.engine.detect.env_output.expression_loops import Language, UnknownError
from agentdash.engine.detect.env_output.expressions import run_code
from agentdash.engine.detect.env_output.inert import UNKNOWN
from agentdash.engine.detect.env_output.javascript import run_node
from agentdash.engine.detect.env_output.patterns import Part, Parts, concrete
from agentdash.engine.detect.env_output.placeholders import refilled, with_placeholders
from agentdash.engine.detect.env_output.python_code import run_python
from agentdash.engine.detect.env_output.scripting.commands import COMMANDS
from agentdash.engine.detect.env_output.streams import Call, Result
from agentdash.engine.detect.env_output.token_cursor import UnknownProgramError

_PYTHON_OPTIONS: Final = re.compile(r"-[uSIEsBq]+")


def python(call: Call) -> list[Result]:
    """Return what `python3 -c '…'` and `python3 - <<EOF` write."""
    words = list(call.arguments)
    code: Parts | None = None
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
                return _version(words, text)
            break
        words.pop(0)
    else:
        code = call.stdin
    return _run(call, code, run_python)


def _version(words: list[Parts], text: str | None) -> list[Result]:
    if text in ("--version", "-V") and len(words) == 1:
        from agentdash.engine.detect.env_output.patterns import QUIET  # noqa: PLC0415

        return [Result(out=(QUIET,), err=(QUIET,), status=None)]
    return UNKNOWN


Runner = Callable[[str, Call, dict[str, Part]], list[Result]]


def _run(call: Call, code: Parts | None, run: Runner) -> list[Result]:
    holes: dict[str, Part] = {}
    text = None if code is None else with_placeholders(code, holes)
    if text is None:
        return UNKNOWN
    try:
        results = run(text, call, holes)
    except (UnknownError, UnknownProgramError, RecursionError):
        return UNKNOWN
    return [*(_refilled(r, holes) for r in results), not_found(call.name)]


def _refilled(result: Result, holes: dict[str, Part]) -> Result:
    return Result(out=refilled(result.out, holes), err=refilled(result.err, holes), status=result.status)


def _coder(language: Language, flags: str) -> Callable[[Call], list[Result]]:
    """Return a handler for `program -e CODE`: `flags` are options that may stand before."""

    def handle(call: Call) -> list[Result]:
        words = list(call.arguments)
        letters = ""
        while words:
            text = concrete(words[0])
            if (language.name, text) in (("perl", "-MData::Dumper"), ("ruby", "-rjson")):
                words.pop(0)
                continue
            if text is None or not re.fullmatch(rf"-[{flags}]*", text) or text == "-":
                break
            letters += text[1:]
            words.pop(0)
            if text[-1] in language.code_options:
                break
        if not words and call.stdin is not None and not set(letters) & set(language.code_options):
            return _run(call, call.stdin, lambda code, c, holes: run_code(language, code, letters, c, holes))
        if len(words) == 1 and not letters and (written := dict(call.state.files).get(words[0])) is not None:
            return _run(call, written, lambda code, c, holes: run_code(language, code, letters, c, holes))
        if len(words) != 1 or (language.code_options and not set(letters) & set(language.code_options)):
            return UNKNOWN
        return _run(call, words[0], lambda code, c, holes: run_code(language, code, letters, c, holes))

    return handle


def node(call: Call) -> list[Result]:
    """Return what `node -e '…'` and `node <<EOF` write."""
    words = list(call.arguments)
    letters = ""
    while words and (text := concrete(words[0])) is not None and text.startswith("-") and len(text) > 1:
        long = {"--eval": "e", "--print": "p", "--no-warnings": "", "--input-type=module": ""}.get(text)
        if long is None and not re.fullmatch(r"-[ep]+", text):
            return _version(words, "-V" if text == "-v" else text)
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
    return _run(call, code, lambda text, c, holes: run_node(text, letters, c, holes))


def jq(call: Call) -> list[Result]:
    """Return what `jq -n FILTER` writes."""
    words = list(call.arguments)
    letters = ""
    given: dict[str, Parts] = {}
    while words and (text := concrete(words[0])) is not None and text.startswith("-"):
        if text == "--arg" and len(words) > 2 and (name := concrete(words[1])) is not None:
            given[name] = words[2]
            del words[:3]
            continue
        long = {"--null-input": "n", "--raw-output": "r", "--compact-output": "c", "--sort-keys": "S"}.get(
            text
        )
        if long is None and not re.fullmatch(r"-[nrcSMa]+", text):
            return UNKNOWN
        letters += long or text[1:]
        words.pop(0)
    if len(words) != 1 or "n" not in letters:
        return UNKNOWN
    if given:
        return _with_arguments(call, words[0], letters, given)
    return _run(call, words[0], lambda code, c, holes: run_code(JQ, code, letters, c, holes))


def _with_arguments(call: Call, program: Parts, letters: str, given: dict[str, Parts]) -> list[Result]:
    """Return what `jq -n --arg name value '{key: $name}'` writes."""
    holes: dict[str, Part] = {}
    texts = {name: with_placeholders(value, holes) for name, value in given.items()}
    code = concrete(program)
    if code is None or any(text is None or re.search(r"[\"\\\n]", text) for text in texts.values()):
        return UNKNOWN
    for name, text in texts.items():
        code = re.sub(rf"\${name}\b", f'"{text}"', code)
    try:
        results = run_code(JQ, code, letters, call, holes)
    except (UnknownError, RecursionError):
        return UNKNOWN
    return [*(_refilled(result, holes) for result in results), not_found(call.name)]


LANGUAGES: Final[dict[str, Callable[[Call], list[Result]]]] = {
    "python": python,
    "python3": python,
    "node": node,
    "nodejs": node,
    **COMMANDS,
    "awk": awk,
    "gawk": awk,
    "mawk": awk,
    "jq": jq,
}
