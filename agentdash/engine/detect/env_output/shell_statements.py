"""Statements that concern the shell itself: `exec` without a command, `wait`, lines written by `set -v`."""

from __future__ import annotations

import msgspec

from agentdash.engine.detect.env_output.patterns import Hole, Kind
from agentdash.engine.detect.env_output.streams import STDERR, Emit, Outcome
from agentdash.sandbox.shell import Item, Redirect, Simple, Word


def redirects_of_shell(item: Item) -> tuple[Redirect, ...]:
    """Return the redirections of `exec` without a command; nothing where it replaces standard input."""
    match item:
        case Item(
            node=Simple(words=(Word() as word,), assignments=(), redirects=redirects), background=False
        ):
            reads = any(r.operator.startswith("<") and r.fd in (None, 0) for r in redirects)
            return redirects if word.text == "exec" and not reads else ()
        case _:
            return ()


def with_source(outcome: Outcome) -> Outcome:
    """Return an outcome behind which the shell writes lines of its script."""
    lines = Emit(STDERR, (Hole(Kind.SOURCE, key=outcome.state.source),))
    return msgspec.structs.replace(outcome, stream=(*outcome.stream, lines))


def is_wait(items: tuple[Item, ...]) -> bool:
    """Return whether the next statement waits for the job before it, which then writes by itself."""
    match items[:1]:
        case (Item(node=Simple(words=(Word() as word, *rest), redirects=())),) if len(rest) <= 1:
            return word.text == "wait" and all(each.text.strip('"') in ("$!", "%1", "%%") for each in rest)
        case _:
            return False
