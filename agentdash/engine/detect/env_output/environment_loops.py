"""What the body of a loop prints for each variable of an environment: a dump in its own style."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from agentdash.engine.detect.env_output.dump_maps import common_style
from agentdash.engine.detect.env_output.dumps import FLAGS, Dump, Presence, Shown, Style
from agentdash.engine.detect.env_output.effects import effects
from agentdash.engine.detect.env_output.patterns import (
    ANY,
    Choice,
    Hole,
    Kind,
    Parts,
    concrete,
    joined,
)
from agentdash.engine.detect.env_output.streams import (
    parts_of,
)
from agentdash.engine.detect.env_output.world import State, shown
from agentdash.sandbox.shell import Group, Script

if TYPE_CHECKING:
    from agentdash.engine.detect.env_output.interpreter import Interpreter


_ABSENT: Final = Shown(Presence.ABSENT)

_MARK: Final = Hole(Kind.OTHER, key="value of the loop")

Bind = Callable[[str, Parts], State]
"""Gives the state of a round, of a variable's name and value."""


def dumped(
    interpreter: Interpreter,
    body: Script,
    bind: Bind,
    present: tuple[bool | None, bool | None],
    state: State,
) -> Parts:
    """Return what the body of a loop prints for all variables: a dump, or any text."""
    changed = effects(Group(body), dict(state.functions))
    if changed is None:
        return (ANY,)
    styles: set[Style] = set()
    flags: list[Shown] = []
    numbered: set[bool] = set()

    def line(name: str, value: Parts) -> tuple[Parts | None, bool]:
        """Return what a round prints, without a number before it, and whether there is one."""
        bound = bind(name, value)
        for own in changed.names:  # as an earlier round may have set it
            if bound.value(own) == state.value(own):
                bound = bound.with_variable(own, (ANY,)).with_array(own, None)
        return _without_number(_line(interpreter, body, bound))

    for name, is_present in zip(FLAGS, present, strict=True):
        marked, has_number = line(name, (_MARK,))
        numbered.add(has_number)
        style = None if marked is None else _style(marked, name)
        if style is None:
            return (ANY,)
        styles.add(style)
        value = state.value(name)
        if is_present is False or value is None:
            flags.append(_ABSENT)
        elif (printed := _printed(line(name, value)[0], style, name)) is not None:
            flags.append(printed)
        else:
            return (ANY,)
    style = common_style(list(styles))
    if style is None or len(numbered) != 1:
        return (ANY,)
    return (
        Dump(
            shown=(flags[0], flags[1]),
            style=style,
            partial=None in present,
            numbered=numbered.pop(),
        ),
    )


_COUNTED: Final = re.compile(r"[:.)\]]?[ \t]+")


def _without_number(line: Parts | None) -> tuple[Parts | None, bool]:
    """Return a line without the number of the round that it begins with."""
    match line:
        case ("#" | "[" | "(", *counted) if (found := _without_number(tuple(counted)))[1]:
            return found
        case (Choice(options=((*_, Hole(kind=Kind.DIGITS)), *_)), str() as text, *rest) if (
            match := _COUNTED.match(text)
        ):
            return joined((text[match.end() :], *rest)), True
        case _:
            return line, False


def _style(line: Parts, name: str) -> Style | None:
    """Return the style of a line with the mark in the place of the value."""
    match line:
        case (str() as before, Hole(key=_MARK.key), str() as after):
            if name in before and "\n" not in before and after.find("\n") == len(after) - 1:
                return Style(prefixes=(before.replace(name, "NAME"),), suffix=after[:-1])
            return None
        case _:
            return None


def _printed(line: Parts | None, style: Style, name: str) -> Shown | None:
    """Return what a round prints of a flag; None for something else than a line of the style."""
    before, after = style.prefixes[0].replace("NAME", name), style.suffix + "\n"
    match line:
        case None:
            return None
        case ():
            return _ABSENT
        case (str() as first, Hole(kind=Kind.OTHER) as value, str() as last) if (first, last) == (
            before,
            after,
        ):
            return shown((value,))
        case _:
            text = concrete(line)
            if text is None or not text.startswith(before) or not text.endswith(after):
                return None
            return Shown(Presence.EXACT, text=text[len(before) : len(text) - len(after)])


def _line(interpreter: Interpreter, body: Script, state: State) -> Parts | None:
    """Return what one round prints; None where that depends on something unknown."""
    outcomes = interpreter.script(body, state, guarded=True)
    is_whole = len(outcomes) == 1 and outcomes[0].leaves in ("", "continue")
    return parts_of(outcomes[0].stream) if is_whole else None
