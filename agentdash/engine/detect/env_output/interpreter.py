"""Interpret a script under a hypothesis: all outcomes that it can have, and what each of them writes."""

from __future__ import annotations

import fnmatch
from typing import Final

import msgspec

from agentdash.engine.detect.env_output.builtins import BUILTINS
from agentdash.engine.detect.env_output.dumps import FLAG_STEM, FLAGS
from agentdash.engine.detect.env_output.expansion import AbortedError, Expander
from agentdash.engine.detect.env_output.launchers import LAUNCHERS, SHELLS, run_shell
from agentdash.engine.detect.env_output.loops import entries_loop, passed_on
from agentdash.engine.detect.env_output.patterns import (
    ANY,
    QUIET,
    Choice,
    Hole,
    Kind,
    Names,
    Parts,
    Trimmed,
    concrete,
    is_quiet,
    joined,
)
from agentdash.engine.detect.env_output.programs import is_instant, program_name, run_program
from agentdash.engine.detect.env_output.redirects import Routing, routing
from agentdash.engine.detect.env_output.streams import (
    STDERR,
    STDOUT,
    Call,
    Emit,
    Fork,
    Outcome,
    Stream,
    all_parts,
    interleaved,
    merged,
    only,
    outcome_of,
    parts_of,
    variants,
)
from agentdash.engine.detect.env_output.world import Environment, State, UnreadableError
from agentdash.engine.detect.shell import (
    AndOr,
    Assignment,
    Case,
    Compound,
    For,
    Function,
    Group,
    If,
    Node,
    Not,
    Pipeline,
    Script,
    Simple,
    Substitution,
    Unsupported,
    While,
    Word,
)

_MAX_STEPS: Final = 3_000
"""Commands that are run for one hypothesis; scripts with more are not read."""
_MAX_OUTCOMES: Final = 24
"""Outcomes that are followed side by side; scripts with more are not read."""
_MAX_ROUNDS: Final = 60
"""Words of a `for` loop that are run one by one."""
_MAX_DEPTH: Final = 40
"""Functions, shells and substitutions within each other."""


class Interpreter:
    """Runs scripts; counts its steps."""

    def __init__(self) -> None:
        self._steps = 0
        self._depth = 0
        self.is_slow = False
        """A program was run that may take seconds."""

    # ------------------------------------------------------------ lists

    def script(
        self, script: Script, state: State, *, guarded: bool = False, stdin: Parts | None = None
    ) -> list[Outcome]:
        """Return the outcomes of statements in order."""
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise UnreadableError
        current = [Outcome(stream=(), status=0, state=state)]
        for item in script.items:
            following: list[Outcome] = []
            for before in current:
                if before.leaves:
                    following.append(before)
                    continue
                begun = _with_status(before)
                if item.background:
                    after = self._background(item.node, begun, stdin=stdin)
                else:
                    after = self.node(item.node, begun, guarded=guarded, stdin=stdin)
                following += _appended(before.stream, after)
            current = merged(following)
            if len(current) > _MAX_OUTCOMES:
                raise UnreadableError
        self._depth -= 1
        return current

    def _background(self, node: Node, state: State, *, stdin: Parts | None) -> list[Outcome]:
        """Run a job behind `&`; when what it writes comes is not known."""
        outcomes = self.node(node, state, guarded=True, stdin=stdin)
        if any(all_parts(outcome.stream) for outcome in outcomes):
            raise UnreadableError
        return [Outcome(stream=(), status=0, state=msgspec.structs.replace(state, files=()))]

    def node(self, node: Node, state: State, *, guarded: bool, stdin: Parts | None = None) -> list[Outcome]:
        """Return the outcomes of a statement."""
        self._steps += 1
        if self._steps > _MAX_STEPS:
            raise UnreadableError
        if stdin is not None and not isinstance(node, Simple):
            return self._fed(node, state, guarded=guarded, stdin=stdin)
        match node:
            case Simple():
                return self._checked(self._simple(node, state, guarded=guarded, stdin=stdin), guarded)
            case Pipeline():
                return self._checked(self._pipeline(node, state), guarded)
            case Not(body=body):
                return [_inverted(o) for o in self.node(body, state, guarded=True)]
            case AndOr():
                return self._and_or(node, state, guarded=guarded)
            case Group(body=body, subshell=False):
                return self.script(body, state, guarded=guarded)
            case Group(body=body):
                return self._checked(self._subshell(body, state, guarded=guarded), guarded)
            case Compound(body=body, redirects=redirects):
                return self._redirected(body, redirects, state, guarded=guarded)
            case Function(name=name, body=body):
                functions = {**dict(state.functions), name: body}
                defined = msgspec.structs.replace(
                    state, functions=tuple(sorted(functions.items(), key=lambda x: x[0]))
                )
                return [Outcome(stream=(), status=0, state=defined)]
            case If() | Case():
                return self._branching(node, state, guarded=guarded)
            case For() | While():
                return self._loop(node, state, guarded=guarded)
            case Unsupported(raw=raw):
                if not raw.startswith("((") or FLAG_STEM in raw:
                    raise UnreadableError
                return self._checked([Outcome(stream=(), status=None, state=state)], guarded)

    def _checked(self, outcomes: list[Outcome], guarded: bool) -> list[Outcome]:
        """End the script at failures where `set -e` holds."""
        result: list[Outcome] = []
        for outcome in outcomes:
            if guarded or outcome.leaves or not outcome.state.errexit or outcome.status == 0:
                result.append(outcome)
                continue
            result.append(msgspec.structs.replace(outcome, leaves="exit"))
            if outcome.status is None:
                result.append(msgspec.structs.replace(outcome, status=0))
        return result

    def _and_or(self, node: AndOr, state: State, *, guarded: bool) -> list[Outcome]:
        result: list[Outcome] = []
        for left in merged(self.node(node.left, state, guarded=True)):
            wants_success = node.operator == "&&"
            if left.leaves:
                result.append(left)
                continue
            if left.status is None or (left.status == 0) is wants_success:
                right = self.node(node.right, _with_status(left), guarded=guarded)
                result += _appended(left.stream, right)
            if left.status is None:
                result.append(msgspec.structs.replace(left, status=None if wants_success else 0))
            elif (left.status == 0) is not wants_success:
                result.append(left)
        return merged(result)

    def _subshell(self, body: Script, state: State, *, guarded: bool) -> list[Outcome]:
        return [_back(outcome, state) for outcome in self.script(body, state, guarded=guarded)]

    def _redirected(self, body: Node, redirects: tuple, state: State, *, guarded: bool) -> list[Outcome]:  # type: ignore[type-arg]
        expander = Expander(state, self._substituted)
        try:
            route = routing(redirects, expander)
        except AbortedError as aborted:
            return [_aborted(aborted, state)]
        outcomes = self.node(body, expander.state, guarded=guarded, stdin=route.stdin)
        return _routed(outcomes, route, expander.errors)

    def _fed(self, node: Node, state: State, *, guarded: bool, stdin: Parts) -> list[Outcome]:
        """Run a compound command that reads something."""
        match node:
            case Group(body=Script(items=(item,)), subshell=subshell) if not item.background:
                outcomes = self.node(item.node, state, guarded=guarded, stdin=stdin)
                return [_back(o, state) for o in outcomes] if subshell else outcomes
            case Compound(body=body, redirects=redirects) if not any(
                r.operator.startswith("<") for r in redirects
            ):
                expander = Expander(state, self._substituted)
                route = routing(redirects, expander)
                return _routed(
                    self.node(body, expander.state, guarded=guarded, stdin=stdin), route, expander.errors
                )
            case While(condition=condition, body=body, until=False):
                if (parts := entries_loop(self, condition, body, stdin, state)) is not None:
                    return [Outcome(stream=(Emit(STDOUT, parts),) if parts else (), status=None, state=state)]
            case _:
                pass
        outcomes = self.node(node, state, guarded=True)
        return self._blurred(outcomes, state, certain=False)

    # ------------------------------------------------------------ pipelines

    def _pipeline(self, node: Pipeline, state: State) -> list[Outcome]:
        current: list[tuple[Stream, Parts | None, tuple[int | None, ...], State]] = [((), None, (), state)]
        for number, part in enumerate(node.parts):
            is_last = number == len(node.parts) - 1
            following = []
            for stream, stdin, statuses, before in current:
                for outcome in merged(self.node(part, before, guarded=state.errexit is False, stdin=stdin)):
                    after = msgspec.structs.replace(before, files=outcome.state.files)
                    out: Stream
                    if is_last:
                        after = _last_part(before, outcome.state)
                        out, passed = interleaved(stream, outcome.stream), None
                    else:
                        both = node.stderr[number]
                        passed = all_parts(outcome.stream) if both else parts_of(outcome.stream, STDOUT)
                        out = stream if both else (*stream, *only(outcome.stream, STDERR))
                    following.append((out, passed, (*statuses, outcome.status), after))
            current = list(dict.fromkeys(following)) if number < 1 else following
            if len(current) > _MAX_OUTCOMES:
                raise UnreadableError
        return merged(
            [
                Outcome(stream=s, status=_pipe_status(statuses, state.pipefail), state=after)
                for s, _, statuses, after in current
            ]
        )

    # ------------------------------------------------------------ branches and loops

    def _branching(self, node: If | Case, state: State, *, guarded: bool) -> list[Outcome]:
        if isinstance(node, Case):
            return self._case(node, state, guarded=guarded)
        result: list[Outcome] = []
        current = [Outcome(stream=(), status=0, state=state)]
        for condition, body in node.branches:
            following: list[Outcome] = []
            for before in current:
                for tested in _appended(before.stream, self.script(condition, before.state, guarded=True)):
                    if tested.leaves:
                        result.append(tested)
                        continue
                    if tested.status != 0:
                        following.append(msgspec.structs.replace(tested, status=0))
                    if tested.status in (0, None):
                        done = self.script(body, _with_status(tested), guarded=guarded)
                        result += _appended(tested.stream, done)
            current = merged(following)
        for before in current:
            if node.otherwise is None:
                result.append(before)
            else:
                result += _appended(before.stream, self.script(node.otherwise, before.state, guarded=guarded))
        return merged(result)

    def _case(self, node: Case, state: State, *, guarded: bool) -> list[Outcome]:
        expander = Expander(state, self._substituted)
        try:
            subject = expander.word(node.word)
        except AbortedError as aborted:
            return [_aborted(aborted, state)]
        if any(item.terminator not in (";;", "") for item in node.items):
            raise UnreadableError
        result: list[Outcome] = []
        for item in node.items:
            matches = [_matches(subject, p.text, literal=not p.expansions) for p in item.patterns]
            if True in matches or None in matches:
                done = self.script(item.body, expander.state, guarded=guarded)
                result += _appended(expander.errors, done)
            if True in matches:
                return merged(result)
        result.append(Outcome(stream=expander.errors, status=0, state=expander.state))
        return merged(result)

    def _loop(self, node: For | While, state: State, *, guarded: bool) -> list[Outcome]:
        if isinstance(node, While):
            both = Script((*node.condition.items, *node.body.items))
            return self._blurred(self.script(both, _unknown_after(both, state), guarded=True), state)
        if node.words is None:
            raise UnreadableError
        if len(node.words) == 1 and (names := self._names(node, node.words[0], state)) is not None:
            return names
        expander = Expander(state, self._substituted)
        words: list[Parts] = []
        try:
            for word in node.words:
                words += expander.fields(word)
        except AbortedError as aborted:
            return [_aborted(aborted, state)]
        if len(words) > _MAX_ROUNDS or any(concrete(word) is None for word in words):
            unknown = _unknown_after(node.body, expander.state).with_variable(node.name, (ANY,))
            outcomes = self.script(node.body, unknown, guarded=True)
            return self._blurred(outcomes, unknown, errors=expander.errors)
        return self._rounds(node, words, expander, guarded=guarded)

    def _rounds(self, node: For, words: list[Parts], expander: Expander, *, guarded: bool) -> list[Outcome]:
        current = [Outcome(stream=expander.errors, status=0, state=expander.state)]
        done: list[Outcome] = []
        for word in words:
            following: list[Outcome] = []
            for before in current:
                state = before.state.with_variable(node.name, word)
                for outcome in _appended(before.stream, self.script(node.body, state, guarded=guarded)):
                    match outcome.leaves:
                        case "" | "continue":
                            following.append(msgspec.structs.replace(outcome, leaves=""))
                        case "break":
                            done.append(msgspec.structs.replace(outcome, leaves="", status=0))
                        case _:
                            done.append(outcome)
            current = merged(following)
            if len(current) > _MAX_OUTCOMES:
                raise UnreadableError
        return merged([*done, *current])

    def _names(self, node: For, word: Word, state: State) -> list[Outcome] | None:
        """Run a loop over the names of variables; None for other loops."""
        if len(word.pieces) != 1 or not isinstance(piece := word.pieces[0], Substitution):
            return None
        result: list[Outcome] = []
        is_names = False
        for listed in self.script(piece.script, state, guarded=True):
            for listing in variants(listed.stream) or [listed.stream]:
                errors = only(listing, STDERR)
                match parts_of(listing, STDOUT):
                    case (Names() as names,):
                        is_names = True
                        bash = msgspec.structs.replace(state, dialect="bash")
                        printed = passed_on(self, node.body, node.name, names, bash)
                        after = _unknown_after(node.body, state).with_variable(node.name, (ANY,))
                        stream = (*errors, *((Emit(STDOUT, printed),) if printed else ()))
                        result.append(Outcome(stream=stream, status=None, state=after))
                    case ():
                        result.append(Outcome(stream=errors, status=0, state=state))
                    case _:
                        return None
        return result if is_names else None

    def _blurred(
        self, outcomes: list[Outcome], state: State, *, certain: bool = True, errors: Stream = ()
    ) -> list[Outcome]:
        """Return the outcome of something that runs an unknown number of times, or with unknown input."""
        for outcome in outcomes:
            for name in FLAGS:
                if outcome.state.value(name) != state.value(name) or (name in outcome.state.exported) != (
                    name in state.exported
                ):
                    raise UnreadableError
            state = msgspec.structs.replace(
                state, files=() if outcome.state.files != state.files else state.files
            )
            for name, _ in outcome.state.variables:
                state = state.with_variable(name, (ANY,)) if name not in FLAGS else state
        parts = [part for outcome in outcomes for part in all_parts(outcome.stream)]
        stream: list[Emit | Fork] = list(errors)
        if parts:
            quiet = certain and is_quiet(tuple(parts))
            stream.append(Emit(STDOUT, (QUIET if quiet else ANY,)))
        result = [Outcome(stream=tuple(stream), status=None, state=state)]
        if any(outcome.leaves in ("exit", "return") for outcome in outcomes):
            result.append(msgspec.structs.replace(result[0], leaves="exit"))
        return result

    # ------------------------------------------------------------ simple commands

    def _substituted(self, script: Script, state: State) -> tuple[Parts, Stream]:
        """Return what `$(…)` gives, and what it writes to standard error."""
        outcomes = self.script(script, state, guarded=True)
        stream: Stream = (
            outcomes[0].stream if len(outcomes) == 1 else (Fork(tuple(o.stream for o in outcomes)),)
        )
        parts = parts_of(stream, STDOUT)
        text = concrete(parts)
        trimmed: Parts = (Trimmed(parts),) if text is None else (text.rstrip("\n"),)
        if text is None and len(parts) > 1 and isinstance(parts[-1], str) and parts[-1].rstrip("\n"):
            trimmed = (*parts[:-1], parts[-1].rstrip("\n"))
        elif (
            text is None
            and len(parts) == 2
            and parts[1] == "\n"
            and isinstance(parts[0], Hole)
            and parts[0].kind is Kind.OTHER
        ):
            trimmed = parts[:1]
        return joined(p for p in trimmed if p != ""), only(stream, STDERR)

    def _simple(self, node: Simple, state: State, *, guarded: bool, stdin: Parts | None) -> list[Outcome]:
        expander = Expander(state, self._substituted)
        try:
            words = [field for word in node.words for field in expander.fields(word)]
            assigned = [(a.name, _assigned(a, expander)) for a in node.assignments]
            if not node.words:  # each assignment sees the ones before it
                for assignment in node.assignments:
                    expander.state = expander.state.with_variable(
                        assignment.name, _assigned(assignment, expander)
                    )
        except AbortedError as aborted:
            return [_aborted(aborted, state)]
        try:
            route = routing(node.redirects, expander)
        except (
            AbortedError
        ) as aborted:  # where the command is a program, it is the program's process that ends
            return [_aborted(aborted, state), msgspec.structs.replace(_aborted(aborted, state), leaves="")]
        after = expander.state
        if words:
            temporary: Environment = dict(assigned)
            outcomes = self._with_assignments(
                words,
                temporary,
                after,
                guarded=guarded,
                stdin=route.stdin if route.stdin is not None else stdin,
            )
        else:
            has_substitution = any(
                not isinstance(e, str) for a in node.assignments if a.value for e in a.value.expansions
            )
            outcomes = [Outcome(stream=(), status=None if has_substitution or node.words else 0, state=after)]
        outcomes = _routed(outcomes, route, expander.errors)
        if expander.bashism and state.dialect != "bash":
            message: Parts = (Hole(Kind.LINE), "ad substitution", Hole(Kind.LINE), "\n")
            outcomes.append(Outcome(stream=(Emit(STDERR, message),), status=None, state=state, leaves="exit"))
        return outcomes

    def _with_assignments(
        self, words: list[Parts], temporary: Environment, state: State, *, guarded: bool, stdin: Parts | None
    ) -> list[Outcome]:
        environment = {**state.environment(), **{n: v for n, v in temporary.items() if n in FLAGS}}
        name = concrete(words[0])
        if any(flag in temporary for flag in FLAGS) and (
            name in dict(state.functions)
            or name in ("set", "export", "declare", "typeset", "compgen", "eval", ":", "unset")
        ):
            raise UnreadableError
        return self.command(words, state, environment, guarded=guarded, stdin=stdin)

    def command(
        self,
        words: list[Parts],
        state: State,
        environment: Environment,
        *,
        guarded: bool,
        stdin: Parts | None,
    ) -> list[Outcome]:
        """Return the outcomes of a command whose words are expanded."""
        path = concrete(words[0])
        if path is None:
            raise UnreadableError
        self._steps += 1
        name = program_name(path)
        functions = dict(state.functions)
        if path in functions:
            return self._call(functions[path], words[1:], state, guarded=guarded)
        call = Call(
            name=name,
            arguments=tuple(words[1:]),
            state=state,
            environment=environment,
            stdin=stdin,
            guarded=guarded,
        )
        if name in LAUNCHERS:
            return LAUNCHERS[name](self, call)
        if name in SHELLS:
            return run_shell(self, call)
        self.is_slow = self.is_slow or (name not in BUILTINS and not is_instant(name))
        results = BUILTINS[name](call) if name in BUILTINS else run_program(call)
        return [outcome_of(result, state) for result in results]

    def _call(self, body: Node, arguments: list[Parts], state: State, *, guarded: bool) -> list[Outcome]:
        """Run a function."""
        inner = state
        for number in range(1, 10):
            value = arguments[number - 1] if number <= len(arguments) else None
            inner = inner.with_variable(str(number), value)
        result: list[Outcome] = []
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise UnreadableError
        for outcome in self.node(body, inner, guarded=guarded):
            variables = tuple((n, v) for n, v in outcome.state.variables if not n.isdecimal())
            outer = tuple((n, v) for n, v in state.variables if n.isdecimal())
            after = msgspec.structs.replace(outcome.state, variables=tuple(sorted((*variables, *outer))))
            leaves = "" if outcome.leaves == "return" else outcome.leaves
            result.append(msgspec.structs.replace(outcome, state=after, leaves=leaves))
        self._depth -= 1
        return result


def _with_status(outcome: Outcome) -> State:
    return msgspec.structs.replace(outcome.state, status=outcome.status)


def _appended(stream: Stream, outcomes: list[Outcome]) -> list[Outcome]:
    if not stream:
        return outcomes
    return [msgspec.structs.replace(o, stream=(*stream, *o.stream)) for o in outcomes]


def _inverted(outcome: Outcome) -> Outcome:
    status = None if outcome.status is None else int(outcome.status == 0)
    return msgspec.structs.replace(outcome, status=status)


def _back(outcome: Outcome, state: State) -> Outcome:
    """Return the outcome of a subshell: its variables are gone, its files stay."""
    return msgspec.structs.replace(
        outcome, state=msgspec.structs.replace(state, files=outcome.state.files), leaves=""
    )


def _aborted(aborted: AbortedError, state: State) -> Outcome:
    message: Parts = (Hole(Kind.LINE), ": ", Choice(aborted.messages), "\n")
    return Outcome(stream=(Emit(STDERR, message),), status=None, state=state, leaves="exit")


def _routed(outcomes: list[Outcome], route: Routing, errors: Stream) -> list[Outcome]:
    result: list[Outcome] = []
    for outcome in outcomes:
        stream, state = route.route(outcome.stream, outcome.state)
        result.append(msgspec.structs.replace(outcome, stream=(*errors, *stream), state=state))
    if route.files and result:  # the file cannot be written: what the script does then is not followed
        failed: Stream = (*errors, Emit(STDERR, (*_cannot_write(route.files[0].path), ANY)))
        result.append(Outcome(stream=failed, status=None, state=result[0].state, leaves="exit"))
    return result


def _cannot_write(path: Parts) -> Parts:
    """Return what shells write where a file cannot be opened."""
    start, rest = Hole(Kind.QUIET_LINE), Hole(Kind.QUIET_LINE)
    forms: tuple[Parts, ...] = (
        (start, ": ", *path, ": ", rest, "\n"),
        (start, ": ", *path, "\n"),
        (start, "cannot create ", *path, ": ", rest, "\n"),
    )
    return (Choice(tuple(joined(form) for form in forms)),)


def _assigned(assignment: Assignment, expander: Expander) -> Parts:
    if assignment.value is None:
        return (ANY,)
    value = expander.word(assignment.value)
    if assignment.append:
        value = joined((*(expander.state.value(assignment.name) or ()), *value))
    return value


def _last_part(before: State, after: State) -> State:
    """Return the state behind a pipeline: shells differ in whether its last part keeps its variables."""
    state = msgspec.structs.replace(before, files=after.files)
    known = dict(before.variables)
    for name, value in after.variables:
        if name not in known or known[name] != value:
            state = state.with_variable(name, (ANY,))
    return state


def _pipe_status(statuses: tuple[int | None, ...], pipefail: bool) -> int | None:
    if not pipefail or statuses[-1] not in (0, None):
        return statuses[-1]
    if all(status == 0 for status in statuses):
        return 0
    failed = [status for status in statuses if status]
    return failed[-1] if failed and None not in statuses else None


def _matches(subject: Parts, pattern: str, *, literal: bool) -> bool | None:
    """Return whether a word matches a pattern of `case`."""
    text = concrete(subject)
    if not literal or "[" in pattern or "\\" in pattern:
        return True if pattern == "*" else None
    if text is not None:
        return fnmatch.fnmatchcase(text, pattern)
    if pattern == "*":
        return True
    if len(subject) == 1 and isinstance(subject[0], Hole) and subject[0].kind is Kind.OTHER:
        return False if pattern == "" or pattern in subject[0].exclude else None
    return None


def _unknown_after(body: Script, state: State) -> State:
    """Return a state in which variables that a loop sets are not known; the loop may run again."""
    names: set[str] = set()
    _collect(body, names)
    for name in names:
        state = state.with_variable(name, (ANY,)) if name not in FLAGS else state
    return state


def _collect(body: Script, names: set[str]) -> None:
    for item in body.items:
        if isinstance(item.node, Simple):
            names.update(a.name for a in item.node.assignments if not item.node.words)
        elif isinstance(item.node, Group | For | While):
            _collect(item.node.body, names)
