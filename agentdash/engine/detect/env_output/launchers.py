"""Commands that run another command, or another script, in the same place."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import msgspec

from agentdash.engine.detect.env_output.declarations import dump_of
from agentdash.engine.detect.env_output.dumps import FLAGS, Dump
from agentdash.engine.detect.env_output.feeding import fed
from agentdash.engine.detect.env_output.options import with_arguments
from agentdash.engine.detect.env_output.patterns import (
    ANY,
    QUIET,
    Part,
    Parts,
    concrete,
    errors_of,
    joined,
)
from agentdash.engine.detect.env_output.placeholders import refilled, with_placeholders
from agentdash.engine.detect.env_output.sourcing import evaluate, source, without_dot
from agentdash.engine.detect.env_output.streams import (
    STDERR,
    STDOUT,
    TIMES,
    UNKNOWN,
    Call,
    Emit,
    Fork,
    Outcome,
    Result,
    Stream,
    behind,
    outcome_of,
)
from agentdash.engine.detect.env_output.unfollowed import bounded
from agentdash.engine.detect.env_output.world import Environment, State, UnreadableError
from agentdash.engine.detect.env_output.xargs import xargs, xargs_commands
from agentdash.sandbox.shell import parse

if TYPE_CHECKING:
    from agentdash.engine.detect.env_output.interpreter import Interpreter

SHELLS: Final[dict[str, str]] = {
    "bash": "bash",
    "zsh": "zsh",
    "dash": "dash",
    "sh": "",
    "ash": "dash",
    "ksh": "",
}
"""Shells by name, and the dialect that is known by it."""
_ASSIGNMENT: Final = re.compile(r"([A-Za-z_]\w*)=", re.DOTALL)


def _outcomes(results: list[Result], state: State) -> list[Outcome]:
    return [outcome_of(result, state) for result in results]


def _unknown(call: Call) -> list[Outcome]:
    state = msgspec.structs.replace(call.state, files=())
    return _outcomes(UNKNOWN, state)


def _run(
    interpreter: Interpreter, call: Call, words: tuple[Parts, ...], environment: Environment | None = None
) -> list[Outcome]:
    """Run the words behind a launcher as a program: functions of the shell are not seen."""
    state = msgspec.structs.replace(call.state, functions=())
    chosen = call.environment if environment is None else environment
    outcomes = interpreter.command(list(words), state, chosen, guarded=call.guarded, stdin=call.stdin)
    name = concrete(words[0]) or ""
    if name in ("export", "set", "declare", "unset", "read", "cd", "source", ".", "eval"):
        raise UnreadableError
    return [
        msgspec.structs.replace(o, state=msgspec.structs.replace(call.state, files=o.state.files))
        for o in outcomes
    ]


def env(interpreter: Interpreter, call: Call) -> list[Outcome]:
    """Run `env`: print the environment, or run a command in a changed one."""
    outer = call.state
    environment = dict(call.environment)
    words = list(call.arguments)
    nul = False
    while words:
        text = concrete(words[0])
        first = words[0][0] if words[0] else ""
        if text in ("-i", "-", "--ignore-environment"):
            environment = dict.fromkeys(FLAGS)
            state = msgspec.structs.replace(
                call.state, variables=(), arrays=(), exported=frozenset(FLAGS), bare=True
            )
            call = msgspec.structs.replace(call, state=state)
            words.pop(0)
            continue
        if text in ("-u", "--unset") and len(words) > 1 and (name := concrete(words[1])) is not None:
            environment.update({name: None} if name in FLAGS else {})
            words.pop(0)
        elif text is not None and (match := re.fullmatch(r"(?:-u|--unset=)(\w+)", text)):
            environment.update({match[1]: None} if match[1] in FLAGS else {})
        elif text in ("-0", "--null"):
            nul = True
        elif text == "--":
            words.pop(0)
            break
        elif isinstance(first, str) and (match := _ASSIGNMENT.match(first)):
            if match[1] in FLAGS:
                environment[match[1]] = joined((first[match.end() :], *words[0][1:]))
            else:
                value = joined((first[match.end() :], *words[0][1:]))
                state = call.state.with_variable(match[1], value).with_exported(match[1])
                call = msgspec.structs.replace(call, state=state)
        elif text is not None and text.startswith("-"):
            return _unknown(call)
        else:
            break
        words.pop(0)
    if words:
        outcomes = _run(interpreter, call, tuple(words), environment)
        kept = {
            "variables": outer.variables,
            "arrays": outer.arrays,
            "exported": outer.exported,
            "bare": outer.bare,
        }
        return [msgspec.structs.replace(o, state=msgspec.structs.replace(o.state, **kept)) for o in outcomes]
    parts = dump_of(environment, call.state)
    if nul and len(parts) == 1 and isinstance(parts[0], Dump):
        parts = (msgspec.structs.replace(parts[0], nul=True),)
    return _outcomes([Result(out=parts)], outer)


def _skipping(with_value: str, operands: int = 0) -> Callable[[Interpreter, Call], list[Outcome]]:
    """Return a launcher that takes options, some with a value, and operands before its command."""

    def launch(interpreter: Interpreter, call: Call) -> list[Outcome]:
        words = list(call.arguments)
        left = operands
        while words:
            text = concrete(words[0])
            if text == "--":
                words.pop(0)
                break
            if text is not None and text.startswith("-") and len(text) > 1:
                words = words[2:] if len(text) == 2 and text[1] in with_value else words[1:]
            elif left:
                left -= 1
                words.pop(0)
            else:
                break
        if not words:
            return _unknown(call)
        return _launched(interpreter, call, tuple(words))

    return launch


def _has_seconds(call: Call) -> bool:
    """Return whether a time-out is of whole seconds: enough for a program that does not wait."""
    return any(re.fullmatch(r"[1-9]\d*[smhd]?", concrete(argument) or "") for argument in call.arguments)


def _launched(interpreter: Interpreter, call: Call, words: tuple[Parts, ...]) -> list[Outcome]:
    was_slow, interpreter.is_slow = interpreter.is_slow, False
    outcomes = _run(interpreter, call, words)
    if call.name in ("timeout", "gtimeout") and (interpreter.is_slow or not _has_seconds(call)):
        stopped = Outcome(stream=(Emit(STDOUT, (ANY,)), Emit(STDERR, (ANY,))), status=124, state=call.state)
        outcomes = [*outcomes, stopped]
    interpreter.is_slow = interpreter.is_slow or was_slow
    if call.name in ("time", "nohup"):
        noise: Stream = (Emit(STDERR, TIMES if call.name == "time" else (QUIET,)),)
        outcomes = [msgspec.structs.replace(o, stream=(*noise, *o.stream, *noise)) for o in outcomes]
    return outcomes


def command(interpreter: Interpreter, call: Call) -> list[Outcome]:
    """Run `command` or `builtin`: a command past functions, or a question where it is."""
    first = concrete(call.arguments[0]) if call.arguments else None
    if first is None:
        return _outcomes([Result()], call.state) if not call.arguments else _unknown(call)
    if first in ("-v", "-V"):
        return _outcomes([Result(out=(QUIET,), err=errors_of(call.name), status=None)], call.state)
    words = call.arguments[1:] if first in ("-p", "--") else call.arguments
    if not words:
        return _outcomes([Result()], call.state)
    state = msgspec.structs.replace(call.state, functions=())
    outcomes = interpreter.command(
        list(words), state, call.environment, guarded=call.guarded, stdin=call.stdin
    )
    return [
        msgspec.structs.replace(o, state=msgspec.structs.replace(o.state, functions=call.state.functions))
        for o in outcomes
    ]


def exec_(interpreter: Interpreter, call: Call) -> list[Outcome]:
    """Run `exec`: nothing of the script runs behind it."""
    if not call.arguments:
        raise UnreadableError  # redirections of the shell itself
    if (concrete(call.arguments[0]) or "-").startswith("-"):
        return _unknown(call)
    state = msgspec.structs.replace(call.state, on_exit="")  # no trap survives
    outcomes = _run(interpreter, msgspec.structs.replace(call, state=state), call.arguments)
    return [msgspec.structs.replace(outcome, leaves="exit") for outcome in outcomes]


# ---------------------------------------------------------------- shells


def run_shell(interpreter: Interpreter, call: Call) -> list[Outcome]:
    """Run `bash -c '…'`, or a shell that reads its script from standard input."""
    state = State(
        started=tuple((name, call.environment[name]) for name in FLAGS),
        level=call.state.level + 1,
        dialect=SHELLS[call.name],
        files=call.state.files,
        missing=call.state.missing,
        variables=tuple(
            (n, v) for n, v in call.state.variables if n in call.state.exported and n not in FLAGS
        ),
        exported=call.state.exported | set(FLAGS),
    )
    script: Parts | None = None
    words = list(call.arguments)
    while words:
        text = concrete(words[0])
        if text is None or not text.startswith(("-", "+")) or text == "-":
            break
        words.pop(0)
        if text in ("--login", "--norc", "--noprofile", "--posix", "--no-rcs", "-f"):
            continue
        if not re.fullmatch(r"-[celuosxv]+|-[lc]+", text):
            return _unknown(call)
        state = msgspec.structs.replace(
            state,
            errexit=state.errexit or "e" in text,
            nounset=state.nounset or "u" in text,
            xtrace=state.xtrace or "x" in text,
            is_verbose=state.is_verbose or "v" in text,
        )
        if "o" in text:
            if not words or concrete(words.pop(0)) != "pipefail":
                return _unknown(call)
            state = msgspec.structs.replace(state, pipefail=True)
        if "c" in text:
            if not words:
                return _unknown(call)
            script = words.pop(0)
            break
        if "s" in text:
            break
    if script is None:
        if words and concrete(words[0]) != "-":
            script = dict(call.state.files).get(words[0])
        else:
            script = call.stdin
            call = msgspec.structs.replace(call, stdin=(ANY,))  # commands read the rest of it
            words = []
    state = with_arguments(state, tuple(words[1:]))
    if words:
        state = state.with_variable("0", words[0])
    return _nested(interpreter, call, script, state)


def run_script_file(interpreter: Interpreter, call: Call) -> list[Outcome] | None:
    """Run a file that the script wrote before; None for other programs."""
    path = without_dot(call.path)
    known = [content for name, content in call.state.files if without_dot(name) == path]
    text = concrete(known[0]) if known else None
    match = re.match(r"#! ?/(?:usr/)?bin/(?:env )?(bash|sh|dash|zsh)\s*\n", text or "")
    if text is None or match is None:
        return None
    arguments: tuple[Parts, ...] = (("-c",), (text,), call.path, *call.arguments)
    return run_shell(interpreter, msgspec.structs.replace(call, name=match[1], arguments=arguments))


def _nested(interpreter: Interpreter, call: Call, script: Parts | None, state: State) -> list[Outcome]:
    holes: dict[str, Part] = {}
    if (
        script is None
        or (text := with_placeholders(script, holes)) is None
        or (tree := parse(text, in_part=True)) is None
    ):
        return _unknown(call)
    if call.stdin is not None:
        state = fed(state, tree, call.stdin)
    found = interpreter.whole(tree, msgspec.structs.replace(state, source=text))
    outer = call.state
    return [
        Outcome(
            stream=_refilled(outcome.stream, holes),
            status=outcome.status,
            state=msgspec.structs.replace(outer, files=outcome.state.files),
        )
        for outcome in found
    ]


def _refilled(stream: Stream, holes: dict[str, Part]) -> Stream:
    if not holes:
        return stream
    result: list[Emit | Fork] = []
    for entry in stream:
        if isinstance(entry, Fork):
            result.append(Fork(tuple(_refilled(option, holes) for option in entry.options)))
        else:
            result.append(Emit(entry.fd, refilled(entry.parts, holes)))
    return tuple(result)


def through_xargs(interpreter: Interpreter, call: Call) -> list[Outcome]:
    """Run `xargs`: forms that print their input, and commands with known arguments."""
    if (results := xargs(call)) is not None:
        return _outcomes(results, call.state)
    if (commands := xargs_commands(call)) is None:
        return _unknown(call)
    current = [Outcome(stream=(), status=0, state=call.state)]
    for words in commands:
        inner = msgspec.structs.replace(call, stdin=())
        following: list[Outcome] = []
        for before in current:
            for outcome in behind(before.stream, _run(interpreter, inner, words)):
                is_well = before.status == 0 and outcome.status == 0
                following.append(msgspec.structs.replace(outcome, status=0 if is_well else None))
        current = bounded(following)
    return current


LAUNCHERS: Final[dict[str, Callable[[Interpreter, Call], list[Outcome]]]] = {
    "env": env,
    "command": command,
    "builtin": command,
    "exec": exec_,
    "eval": evaluate,
    "source": source,
    ".": source,
    "timeout": _skipping("ks", operands=1),
    "gtimeout": _skipping("ks", operands=1),
    "nice": _skipping("n"),
    "ionice": _skipping("cn"),
    "stdbuf": _skipping("ioe"),
    "nohup": _skipping(""),
    "time": _skipping("of"),
    "setsid": _skipping(""),
    "xargs": through_xargs,
}
