"""eval and source: scripts that change the state of the shell that runs them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from agentdash.engine.detect.env_output.feeding import fed, restored
from agentdash.engine.detect.env_output.patterns import Hole, Kind, Parts, concrete
from agentdash.engine.detect.env_output.streams import Call, Outcome, Result, outcome_of
from agentdash.engine.detect.env_output.world import UnreadableError
from agentdash.sandbox.shell import Script, parse

if TYPE_CHECKING:
    from agentdash.engine.detect.env_output.interpreter import Interpreter


def evaluate(interpreter: Interpreter, call: Call) -> list[Outcome]:
    """Run `eval`."""
    texts = call.words
    if any(text is None for text in texts):
        raise UnreadableError
    script = parse(" ".join(text for text in texts if text is not None), in_part=True)
    if script is None:
        raise UnreadableError
    return _in_this_shell(interpreter, call, script)


def _in_this_shell(interpreter: Interpreter, call: Call, script: Script) -> list[Outcome]:
    """Run a script that changes the state of the shell that it is given to."""
    inner = call.state if call.stdin is None else fed(call.state, script, call.stdin)
    outcomes = interpreter.script(script, inner, guarded=call.guarded)
    return [restored(outcome, call.state) for outcome in outcomes]


_RELEASE_FILES: Final = ("/etc/os-release", "/usr/lib/os-release", "/etc/lsb-release")
_RELEASE_NAMES: Final = (
    *("NAME", "PRETTY_NAME", "VERSION", "VERSION_ID", "VERSION_CODENAME", "ID", "ID_LIKE", "UBUNTU_CODENAME"),
    *("VARIANT", "VARIANT_ID", "BUILD_ID", "CPE_NAME", "LOGO", "PLATFORM_ID", "ANSI_COLOR"),
    *("HOME_URL", "DOCUMENTATION_URL", "SUPPORT_URL", "BUG_REPORT_URL", "PRIVACY_POLICY_URL"),
    *("DISTRIB_ID", "DISTRIB_RELEASE", "DISTRIB_CODENAME", "DISTRIB_DESCRIPTION"),
)
"""Variables that these files set (os-release(5)); others do not matter."""


def _released(call: Call) -> list[Outcome]:
    """Run `. /etc/os-release`."""
    state = call.state
    for name in _RELEASE_NAMES:
        state = state.with_variable(name, (Hole(Kind.QUIET_LINE, key=name),))
    missing = Result(err=(Hole(Kind.QUIET_LINE), "-release: ", Hole(Kind.QUIET_LINE), "\n"), status=None)
    return [
        outcome_of(result, call.state)
        for result in (Result(state=state), missing, msgspec.structs.replace(missing, leaves="exit"))
    ]


def source(interpreter: Interpreter, call: Call) -> list[Outcome]:
    """Run `source` of a file that the script wrote, or of standard input."""
    path = concrete(call.arguments[0]) if len(call.arguments) == 1 else None
    content = call.stdin if path in ("/dev/stdin", "/dev/fd/0") else None
    if path is not None and content is None:
        written = {without_dot(name): content for name, content in call.state.files}
        content = written.get(without_dot(call.arguments[0]))
    if path in _RELEASE_FILES:
        return _released(call)
    text = None if content is None else concrete(content)
    script = None if text is None else parse(text, in_part=True)
    if script is None:
        raise UnreadableError
    outcomes = _in_this_shell(interpreter, call, script)
    return [msgspec.structs.replace(o, leaves="" if o.leaves == "return" else o.leaves) for o in outcomes]


def without_dot(path: Parts) -> Parts:
    """Return a path without `./` before it."""
    match path:
        case (str() as first, *rest):
            return (first.removeprefix("./"), *rest)
        case _:
            return path
