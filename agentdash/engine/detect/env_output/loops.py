"""Loops over the names or lines of an environment: their output is a dump in a style of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agentdash.engine.detect.env_output.dumps import FLAGS, Dump, Presence, Shown, Style
from agentdash.engine.detect.env_output.patterns import ANY, Hole, Kind, Names, Parts, concrete
from agentdash.engine.detect.env_output.streams import all_parts
from agentdash.engine.detect.env_output.world import State, shown
from agentdash.engine.detect.shell import Script, Simple

if TYPE_CHECKING:
    from agentdash.engine.detect.env_output.interpreter import Interpreter

ABSENT: Final = Shown(Presence.ABSENT)
_MARK: Final = Hole(Kind.OTHER, key="value of the loop")


def entries_loop(
    interpreter: Interpreter, condition: Script, body: Script, stdin: Parts, state: State
) -> Parts | None:
    """Return what `while read …; do …; done` prints of what it reads; None for other loops."""
    match condition.items, stdin:
        case (item,), (Names() as names,) if isinstance(item.node, Simple):
            words = [word.text for word in item.node.words]
            variables = [word for word in words[1:] if not word.startswith("-")]
            if words[:1] == ["read"] and len(variables) == 1:
                return passed_on(interpreter, body, variables[0], names, state)
            return None
        case _:
            return None


def passed_on(interpreter: Interpreter, body: Script, variable: str, names: Names, state: State) -> Parts:
    """Return what the body of a loop prints for all names: a dump, or any text."""
    prefixes: set[str] = set()
    suffixes: set[str] = set()
    flags: list[Shown] = []
    is_partial = False
    for name, present in zip(FLAGS, names.present, strict=True):
        line = _line(interpreter, body, state.with_variable(variable, (name,)).with_variable(name, (_MARK,)))
        match line:
            case (str() as before, Hole(key=_MARK.key), str() as after):
                pass
            case _:
                return (ANY,)
        if name not in before or "\n" in before or after.count("\n") != 1 or not after.endswith("\n"):
            return (ANY,)
        prefixes.add(before.replace(name, "NAME"))
        suffixes.add(after[:-1])
        value = state.value(name)
        if present is False:
            flags.append(ABSENT)
            continue
        is_partial = is_partial or present is None
        printed = (
            ABSENT
            if value is None
            else _printed(_line(interpreter, body, state.with_variable(variable, (name,))), line)
        )
        if printed is None:
            return (ANY,)
        flags.append(printed)
    if len(prefixes) != 1 or len(suffixes) != 1:
        return (ANY,)
    style = Style(prefixes=(prefixes.pop(),), suffix=suffixes.pop())
    return (Dump(shown=(flags[0], flags[1]), style=style, partial=bool(is_partial), some=False),)


def _printed(real: Parts | None, line: Parts) -> Shown | None:
    """Return what a round prints of a flag, given the line that has a mark as its value."""
    before, _, after = line
    match real:
        case None:
            return None
        case ():
            return ABSENT
        case (str() as first, Hole(kind=Kind.OTHER) as value, str() as last) if (first, last) == (
            before,
            after,
        ):
            return shown((value,))
        case _:
            text = concrete(real)
            if text is None or not isinstance(before, str) or not isinstance(after, str):
                return None
            if not text.startswith(before) or not text.endswith(after):
                return None
            return Shown(Presence.EXACT, text=text[len(before) : len(text) - len(after)])


def _line(interpreter: Interpreter, body: Script, state: State) -> Parts | None:
    """Return what one round prints; None where that depends on something unknown."""
    outcomes = interpreter.script(body, state, guarded=True)
    outcomes = [o for o in outcomes if not o.leaves or o.leaves == "continue"]
    return all_parts(outcomes[0].stream) if len(outcomes) == 1 else None
