"""`set`, `setopt` and the positional parameters."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

import msgspec

from agentdash.engine.detect.env_output.declarations import dump_of, not_found, variables
from agentdash.engine.detect.env_output.dumps import SET_STYLE
from agentdash.engine.detect.env_output.patterns import QUIET, Hole, Kind, Parts, concrete, errors_of
from agentdash.engine.detect.env_output.streams import Call, Result
from agentdash.engine.detect.env_output.world import State, UnreadableError
from agentdash.engine.detect.word_sets import word_set


def set_options(call: Call) -> list[Result]:
    """Run `set`."""
    if not call.arguments:
        return [Result(out=dump_of(variables(call.state), call.state, SET_STYLE))]
    words = call.words
    if words in (["-o"], ["+o"]):
        return [Result(out=(QUIET,))]  # the options and their states
    state = call.state
    number = 0
    while number < len(words):
        word = words[number]
        if word is None or not re.fullmatch(r"[-+][A-Za-z]+", word):
            return [Result(state=with_arguments(state, call.arguments[number + (word == "--") :]))]
        on = word[0] == "-"
        for letter in word[1:]:
            if letter == "o":
                number += 1
                option = words[number] if number < len(words) else None
                state = _with_option(state, option, on=on)
            else:
                state = _with_option(state, _LONG_OPTIONS.get(letter), on=on)
        number += 1
    return _in_shells_with(words, call, Result(state=state))


_OPTIONS_OF: Final = {
    "bash": frozenset("abefhmnuvxBCEHPT"),
    "zsh": frozenset("aefhnuvxBCEHPT"),
    "dash": frozenset("abefmnuvxCEIV"),
}
"""Letters that `set` of each shell takes."""
_COMMON_OPTIONS: Final = word_set("errexit nounset allexport xtrace verbose noglob notify noclobber noexec")


def _in_shells_with(words: list[str | None], call: Call, result: Result) -> list[Result]:
    """Return what `set` does in shells with and without its options: those without them end at it."""
    letters = {char for word in words if word is not None and word[0] in "-+" for char in word[1:]} - {"o"}
    names = {word for before, word in pairwise(words) if before is not None and before.endswith("o")}
    ending: set[bool] = set()
    for shell in (call.state.dialect,) if call.state.dialect else _OPTIONS_OF:
        known = _COMMON_OPTIONS | ({"pipefail"} if shell != "dash" else set())
        ending.add(not (shell == "bash" or (letters <= _OPTIONS_OF[shell] and names <= known)))
    message: Parts = (Hole(Kind.QUIET_LINE), "set: ", Hole(Kind.QUIET_LINE), "\n")
    failed = Result(err=message, status=None, leaves="exit")
    return [*([result] if False in ending else []), *([failed] if True in ending else [])]


_LONG_OPTIONS: Final = {
    "e": "errexit",
    "u": "nounset",
    "a": "allexport",
    "x": "xtrace",
    "v": "verbose",
    "n": "noexec",
    "f": "noglob",
    "m": "monitor",
    "h": "hashall",
    "b": "notify",
    "C": "noclobber",
    "E": "errtrace",
    "T": "functrace",
}
_HARMLESS_OPTIONS: Final = word_set(
    "noglob monitor hashall notify noclobber errtrace functrace posix history"
)


def _with_option(state: State, option: str | None, *, on: bool) -> State:
    match option:
        case "errexit" | "nounset" | "allexport" | "pipefail":
            return msgspec.structs.replace(state, **{option: on})
        case "xtrace":
            return msgspec.structs.replace(state, xtrace=on)
        case "verbose":
            return msgspec.structs.replace(state, is_verbose=on)
        case "noexec" if not on:
            return state
        case _ if option in _HARMLESS_OPTIONS:
            return state
        case _:
            raise UnreadableError


_HARMLESS_OF_ZSH: Final = word_set(
    "nomatch beep interactivecomments localoptions localtraps banghist promptsubst"
)
_OF_ALL_SHELLS: Final = {
    "errreturn": "errexit",  # of functions alone, whose callers end by it in turn
    **{name: name for name in ("errexit", "pipefail", "xtrace", "allexport")},
}


def set_options_of_zsh(call: Call) -> list[Result]:
    """Run `setopt` and `unsetopt`, of options that change no expansion and no pattern."""
    state = call.state
    if state.dialect in ("bash", "dash"):
        return [not_found(call.name)]
    for argument in call.arguments:
        option = (concrete(argument) or "?").lower().replace("_", "")
        name = option.removeprefix("no") if option != "nomatch" else option
        on = (call.name == "setopt") is (name == option)
        if name == "unset":
            state = _with_option(state, "nounset", on=not on)
        elif name in _OF_ALL_SHELLS:
            state = _with_option(state, _OF_ALL_SHELLS[name], on=on)
        elif name not in _HARMLESS_OF_ZSH:
            raise UnreadableError
    return [Result(err=() if state.dialect else errors_of(call.name), status=None, state=state)]


def with_arguments(state: State, arguments: tuple[Parts, ...]) -> State:
    """Return the state with other positional parameters."""
    before = len(state.array("@") or ())
    for number in range(1, max(before, len(arguments)) + 1):
        state = state.with_variable(str(number), arguments[number - 1] if number <= len(arguments) else None)
    return state.with_array("@", arguments)
