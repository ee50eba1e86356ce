"""What programs of all languages share: the environment, the output, conditions that are not known."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeVar

import msgspec

from agentdash.engine.detect.env_output.dumps import FLAGS, Dump, Presence, Shown
from agentdash.engine.detect.env_output.patterns import (
    ANY,
    Choice,
    Hole,
    Kind,
    Part,
    Parts,
    Trimmed,
    concrete,
    either,
    joined,
)
from agentdash.engine.detect.env_output.placeholders import (
    has_placeholder,
    refilled,
    text_of_value,
    with_placeholders,
)
from agentdash.engine.detect.env_output.records import Record
from agentdash.engine.detect.env_output.scripting.scopes import Place, Scoped
from agentdash.engine.detect.env_output.scripting.values import (
    SINK,
    SURPRISES,
    Count,
    ExitError,
    FailedError,
    ReturnError,
    Unknowable,
    Written,
)
from agentdash.engine.detect.env_output.selections import LOOP_VALUE, MARK, Form, Lines, Selection
from agentdash.engine.detect.env_output.streams import (
    STDERR,
    STDOUT,
    Call,
    Outcome,
    Result,
    only,
    parts_of,
)
from agentdash.engine.detect.env_output.unknown import UnknownError
from agentdash.engine.detect.env_output.world import shown

_MAX_RUNS: Final = 24
"""Runs of a program that differ in conditions which are not known."""
_MAX_STEPS: Final = 2_000
"""Statements and expressions that are run; longer programs are not read."""

Decisions = tuple[bool, ...]
"""The truth of the conditions that are not known, in the order in which they come up."""


class Machine(Scoped):
    """A run of a program under one hypothesis."""

    failure: Parts = (ANY,)
    """What such an exception writes to standard error."""
    failed_status: int | None = 1
    """Exit code of a program that an exception ends."""

    def __init__(self, call: Call, holes: dict[str, Part], decisions: Decisions) -> None:
        super().__init__()
        self._command = call
        self._environment = call.environment
        self._holes = holes
        self.out: list[Part] = []
        self.err: list[Part] = []
        self._decisions = decisions
        self.decided: Decisions = ()
        """The truth of the conditions that are not known, as they came up in this run."""
        self._steps = 0
        self._looped = ""
        """The flag whose variable a loop over the environment is at."""
        self.ending: Result | None = None
        """How the program ends where it fails at a place at which it may."""
        self.functions: dict[Any, Any] = {}
        """Functions of the program, in languages that have them by name."""
        self._looped_lists: set[int] = set()
        """Identities of the lists that loops are over."""
        self._may_have_written = False
        """Files may have been changed."""
        self._present = ""
        """The variable that a loop over the environment is at, whatever it is: it is set."""

    def result(self, run: Callable[[], None]) -> Result:
        """Return what a run of the program writes, and how it ends."""
        status: int | None = 0
        try:
            run()
        except ExitError as ended:
            status = ended.status
        except FailedError:
            status = self.failed_status
            self.err += self.failure
        except (UnknownError, *SURPRISES):  # what came before is known
            return Result(out=joined((*self.out, ANY)), err=(ANY,), status=None)
        state = None if self._may_have_written else self._command.state
        return Result(out=joined(self.out), err=joined(self.err), status=status, state=state)

    def step(self) -> None:
        """Count one more step. Raises `UnknownError` in a program that takes too many."""
        self._steps += 1
        if self._steps > _MAX_STEPS:
            raise UnknownError

    @property
    def is_exhausted(self) -> bool:
        """Return whether the program has taken too many steps."""
        return self._steps > _MAX_STEPS

    def decide(self) -> bool:
        """Return the truth of a condition that is not known, as this run assumes it."""
        number = len(self.decided)
        truth = number < len(self._decisions) and self._decisions[number]
        self.decided = (*self.decided, truth)
        return truth

    def returned(self, place: Place, run: Callable[[], Any]) -> Any:
        """Return what the block of a function gives, at its end or before it."""
        try:
            return self.called(place, run)
        except ReturnError as ended:
            return ended.value

    # ------------------------------------------------------------ the environment

    def variable(self, name: Any) -> Any:
        """Return a variable of the environment, None where it is unset."""
        if not isinstance(name, str) or has_placeholder(name):
            raise UnknownError
        if name not in FLAGS:
            return self.word(ANY)
        value = LOOP_VALUE if name == self._looped else self._environment[name]
        return None if value is None else text_of_value(value, self._holes)

    def item_of(self, selection: Selection, name: Any) -> Any:
        """Return an item of a mapping that is a part of the environment."""
        if selection.form is not Form.MAPPING:
            raise UnknownError
        if name in FLAGS and name != self._present and not selection.kept[FLAGS.index(name)]:
            return None
        return self.variable(name)

    def is_set(self, selection: Selection, name: Any) -> bool:
        """Return whether a variable is in a part of the environment."""
        if not isinstance(name, str) or has_placeholder(name) or selection.form is Form.ITEMS:
            raise UnknownError
        if name == self._present:
            return True
        if name not in FLAGS:
            return self.decide()
        return selection.kept[FLAGS.index(name)] and self.variable(name) is not None

    def shown(self, kept: tuple[bool, bool]) -> tuple[Shown, Shown]:
        """Return what is shown of the flags where some are kept."""
        absent = Shown(Presence.ABSENT)
        first, second = (
            shown(self._environment[name]) if keep else absent for name, keep in zip(FLAGS, kept, strict=True)
        )
        return first, second

    def certain(self, kept: tuple[bool, bool]) -> int:
        """Return the number of flags that are in a part of the environment."""
        return sum(
            keep and self._environment[name] is not None for name, keep in zip(FLAGS, kept, strict=True)
        )

    def record(self, selection: Selection, *, indent: int = 0, is_python: bool = False) -> Record:
        """Return a part of the environment as a dictionary, or as a list."""
        if selection.is_bytes:
            raise UnknownError
        first, second = (
            self._environment[name] is not None and keep
            for name, keep in zip(FLAGS, selection.kept, strict=True)
        )
        return Record(
            shown=self.shown(selection.kept),
            required=(first, second),
            indent=indent,
            is_python=is_python,
            is_list=selection.items,
            has_names=selection.form is Form.NAMES,
        )

    def lines(self, value: Lines) -> Dump:
        """Return lines about variables as they are written."""
        style = msgspec.structs.replace(value.style, suffix=value.style.suffix.removesuffix("\n"))
        if "\0" in style.suffix:
            raise UnknownError
        return Dump(shown=self.shown(value.kept), style=style)

    # ------------------------------------------------------------ texts

    def word(self, *parts: Part) -> str:
        """Return a word that stands for something in a text."""
        whole = refilled(parts, self._holes)
        mark = f"Zhole{len(self._holes)}Z"
        self._holes[mark] = whole[0] if len(whole) == 1 else Choice((whole,))
        return mark

    def hole(self, value: str) -> Part | None:
        """Return what a word stands for that is all of a text; None for other texts."""
        return self._holes.get(value)

    def kind_of(self, value: Any) -> Kind | None:
        """Return what kind of text is meant by a text that is not known at all; None for other values."""
        hole = self._holes.get(value) if isinstance(value, str) else None
        return hole.kind if isinstance(hole, Hole) else None

    def quiet(self) -> str:
        """Return a word for text on one line in which no flag is named."""
        return self.word(Hole(Kind.QUIET_LINE))

    def text(self, value: Any) -> str:
        """Return a value as the language writes it into a text."""
        match value:
            case str():
                return str(value)
            case bool():
                return self.text_of_bool(value)
            case None:
                return self.text_of_none()
            case int():
                return str(value)
            case Count():
                return self.word(Hole(Kind.DIGITS))
            case Written(parts=parts):
                return self.word(*parts)
            case Unknowable():
                return self.word(ANY)
            case Lines(is_text=True):
                return self.word(Trimmed((self.lines(value),)))
            case Lines(style=style) if style.suffix.endswith("\n"):
                return self.word(self.lines(value))
            case _:
                raise UnknownError

    def text_of_bool(self, value: bool) -> str:
        """Return a truth value as the language writes it into a text."""
        return "true" if value else "false"

    def text_of_none(self) -> str:
        """Return the value of nothing as the language writes it into a text."""
        return ""

    def plain(self, value: Any) -> str:
        """Return a text that is known. Raises `UnknownError` for others."""
        if not isinstance(value, str) or has_placeholder(value):
            raise UnknownError
        return value

    def actual(self, value: str) -> str:
        """Return a text with the value of the flag that a loop is at in place of the mark."""
        if MARK not in value or not self._looped:
            return value
        inner = self._environment[self._looped]
        text = "1" if inner is None else with_placeholders(inner, self._holes)  # unset: no round for it
        if text is None:
            raise UnknownError
        return value.replace(MARK, text)

    # ------------------------------------------------------------ other programs, files

    def captured(self, script: Any) -> Written:
        """Return what a shell writes to its standard output."""
        return self._captured(self._outcomes(script))

    def ended(self, script: Any) -> tuple[Written, Any]:
        """Return what a shell writes, in one of the ways in which it can end, and its exit code."""
        *outcomes, outcome = dict.fromkeys(self._outcomes(script))
        outcome = next((each for each in outcomes if self.decide()), outcome)
        status = outcome.status if outcome.status is not None and outcome.status >= 0 else Count(0)
        return self._captured([outcome]), status

    def _captured(self, outcomes: list[Outcome]) -> Written:
        errors = {only(outcome.stream, STDERR) for outcome in outcomes}
        if errors != {()}:
            self.err.append(Choice(tuple(parts_of(error) for error in errors)))
        return Written(either(parts_of(outcome.stream, STDOUT) for outcome in outcomes))

    def checked(self, script: Any) -> Written:
        """Return what a shell writes, where its failure is an exception."""
        outcomes = self._outcomes(script)
        succeeded = [outcome for outcome in outcomes if outcome.status in (0, None)]
        failed = [outcome for outcome in outcomes if outcome.status != 0]
        if failed and (not succeeded or self.decide()):
            *others, last = failed
            ended = next((each for each in others if self.decide()), last)
            self._captured([ended])
            known = ended.status is not None and ended.status > 0
            raise FailedError("CalledProcessError", status=ended.status if known else None)
        return self._captured(succeeded)

    def attempted(self) -> Any:
        """Open or change something of the system: return `SINK`, or None where that fails."""
        self._may_have_written = True
        return None if self.decide() else SINK

    def _outcomes(self, script: Any) -> list[Outcome]:
        self._may_have_written = True
        if self._command.run_shell is None or self._environment != self._command.environment:
            raise UnknownError
        return self._command.run_shell(self.plain(script))

    def started(self, script: Any) -> None:
        """Run a shell that writes to the program's own output: before what is buffered, or behind it."""
        self.write_past(self.captured(script).parts)

    def write_past(self, other: Parts) -> None:
        """Add what another process writes: before what is buffered, or behind it."""
        buffered = tuple(self.out)
        behind, before = joined((*buffered, *other)), joined((*other, *buffered))
        self.out = list(behind) if behind == before else [Choice((behind, before))]

    def input(self) -> Written:
        """Return what the program reads from its standard input, where that is not the program."""
        words = self._command.arguments
        if not words or concrete(words[0]) == "-" or self._command.stdin is None:
            raise UnknownError
        return Written(self._command.stdin)

    def content(self, path: Any) -> Written:
        """Return what a file holds."""
        if path != "/proc/self/environ":
            raise UnknownError
        return Written((Dump(shown=self.shown((True, True)), nul=True, whole=True, some=True),))


AnyMachine = TypeVar("AnyMachine", bound=Machine)


def run_all(
    kind: type[AnyMachine], call: Call, holes: dict[str, Part], run: Callable[[AnyMachine], None]
) -> list[Result]:
    """Return the results of a program, for each way in which its unknown conditions can turn out.

    Args:
        kind: the language.
        run: sets the options of a machine, and runs the program.

    Raises:
        UnknownError: there are too many of them.
    """
    results: list[Result] = []
    pending: list[Decisions] = [()]
    while pending:
        if len(results) > _MAX_RUNS:
            raise UnknownError
        decisions = pending.pop()
        machine = kind(call, holes, decisions)
        results.append(machine.result(partial(run, machine)))
        results += [] if machine.ending is None else [machine.ending]
        pending += [(*machine.decided[:at], True) for at in range(len(decisions), len(machine.decided))]
    return list(dict.fromkeys(results))


def dump_parts(parts: Parts) -> Dump | None:
    """Return a dump that is all of a text; None for other texts."""
    match parts:
        case (Dump() as dump,) | (Trimmed(parts=(Dump() as dump,)),) | (Dump(nul=True) as dump, "\n"):
            return dump
        case _:
            return None
