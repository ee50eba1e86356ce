"""Interpret a script under a hypothesis: all outcomes that it can have, and what each of them writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from agentdash.engine.detect.env_output.arithmetic import evaluated
from agentdash.engine.detect.env_output.conditions import matches_pattern
from agentdash.engine.detect.env_output.dumps import FLAG_STEM
from agentdash.engine.detect.env_output.expansion import AbortedError, Expander
from agentdash.engine.detect.env_output.feeding import fed, restored
from agentdash.engine.detect.env_output.loops import entries_loop, lines_loop, run_loop
from agentdash.engine.detect.env_output.outcomes import checked, inverted, of_subshell, trimmed
from agentdash.engine.detect.env_output.patterns import ANY, ERROR_LINE, Parts, alternatives
from agentdash.engine.detect.env_output.pipelines import run_pipeline
from agentdash.engine.detect.env_output.redirects import forgetting, of_shell, routed, routing
from agentdash.engine.detect.env_output.repetition import counted_loop
from agentdash.engine.detect.env_output.shell_statements import is_wait, redirects_of_shell, with_source
from agentdash.engine.detect.env_output.simple import aborted_outcome, run_command, run_simple, traced
from agentdash.engine.detect.env_output.streams import (
    FAILED,
    STDERR,
    STDOUT,
    TIMES,
    Emit,
    Fork,
    Outcome,
    Stream,
    behind,
    merged,
    only,
    parts_of,
    variants,
    with_status,
)
from agentdash.engine.detect.env_output.unfollowed import (
    ANYTHING,
    LOST,
    OutlivingError,
    bounded,
    lost,
    unfollowed,
    unknown_after,
)
from agentdash.engine.detect.env_output.world import Environment, State, UnreadableError
from agentdash.sandbox.shell import (
    AndOr,
    Case,
    Compound,
    For,
    Function,
    Group,
    If,
    Node,
    Not,
    Pipeline,
    Redirect,
    Script,
    Simple,
    Timed,
    Unsupported,
    While,
    parse,
)

_MAX_STEPS: Final = 1_000
"""Commands that are run for one hypothesis; scripts with more are not read."""
_MAX_DEPTH: Final = 40
"""Functions, shells and substitutions within each other."""

Run = Callable[..., list[Outcome]]
"""Runs a node in a state."""


class Interpreter:
    """Interprets scripts; raises `UnreadableError` where a script does what is not modelled."""

    def __init__(self) -> None:
        self.steps = 0
        self._depth = 0
        self.captures = 0
        """Substitutions and pipes around the command, that read what it writes."""
        self.is_slow = False
        """A program was run that may take seconds."""

    def count_step(self) -> None:
        """Count a command; end an interpretation that takes too long."""
        self.steps += 1
        if self.steps > _MAX_STEPS:
            raise UnreadableError

    def forget_steps(self, steps: int) -> None:
        """Take back the count of commands since there were `steps`: they were run in vain."""
        self.steps = steps

    # ------------------------------------------------------------ lists

    def script(
        self, script: Script, state: State, *, guarded: bool = False, is_shell: bool = False
    ) -> list[Outcome]:
        """Return the outcomes of statements in order.

        `guarded`: `set -e` does not end them. `is_shell`: they are all that a shell runs.
        """
        self._depth += 1
        current = [Outcome(stream=(), status=state.status if script.items else 0, state=state)]
        ended: list[Outcome] = []
        for number, item in enumerate(script.items):
            following: list[Outcome] = []
            is_waited_for = is_wait(script.items[number + 1 :])
            for before in current:
                if before.leaves:
                    following.append(before)
                    continue
                if before.state.is_verbose:
                    before = with_source(before)  # noqa: PLW2901
                if is_shell and (redirects := redirects_of_shell(item)):
                    rest = Script(script.items[number + 1 :])
                    ran = self._rest(rest, redirects, with_status(before), guarded=guarded)
                    ended += behind(before.stream, ran)
                    continue
                run = self._background if item.background and not is_waited_for else self.node
                ran = self._followed(run, item.node, with_status(before), guarded=guarded)
                following += behind(before.stream, ran)
            current = bounded(following)
        self._depth -= 1
        return bounded([*ended, *current]) if ended else current

    def _rest(
        self, rest: Script, redirects: tuple[Redirect, ...], state: State, *, guarded: bool
    ) -> list[Outcome]:
        """Run what stands behind `exec` with redirections alone: they hold for the rest of the shell."""
        expander = Expander(state, self.substituted)
        try:
            route = routing(redirects, expander)
            after = forgetting(route, expander.state)
            outcomes = self.whole(rest, after, guarded=guarded)
        except (AbortedError, UnreadableError):
            return [lost(state)]
        opened = msgspec.structs.replace(route, may_fail=False)
        found = routed(outcomes, opened, expander.errors)
        if route.files:  # a program that reads the file fails while its output goes there
            found = [msgspec.structs.replace(outcome, status=None) for outcome in found]
        if route.may_fail:
            found.append(Outcome(stream=expander.errors, status=FAILED, state=state, leaves="exit"))
        return found

    def _followed(self, run: Run, node: Node, state: State, *, guarded: bool) -> list[Outcome]:
        """Run a statement; where that cannot be followed, what is known without following it."""
        depth, captures = self._depth, self.captures
        try:
            if depth > _MAX_DEPTH:
                raise UnreadableError
            return run(node, state, guarded=guarded)
        except OutlivingError:
            if depth > 1:
                raise
            self._depth, self.captures = depth, captures
            return [lost(state)]
        except (UnreadableError, RecursionError):
            self._depth, self.captures = depth, captures
            return checked(unfollowed(node, state), guarded)

    def whole(self, script: Script, state: State, *, guarded: bool = False) -> list[Outcome]:
        """Return the outcomes of a script that a shell runs, with the trap for its end."""
        result: list[Outcome] = []
        for outcome in self.script(script, state, guarded=guarded, is_shell=True):
            if outcome.state.is_verbose:
                outcome = with_source(outcome)  # noqa: PLW2901
            if outcome.state.xtrace:
                trace = traced([], outcome.state)
                outcome = msgspec.structs.replace(outcome, stream=(*outcome.stream, *trace))  # noqa: PLW2901
            if not (action := outcome.state.on_exit) or outcome.leaves == LOST:
                result.append(outcome)
                continue
            if (tree := parse(action)) is None:
                raise UnreadableError
            ended = msgspec.structs.replace(with_status(outcome), on_exit="")
            after = behind(outcome.stream, self.script(tree, ended, guarded=True))
            result += [msgspec.structs.replace(last, status=outcome.status) for last in after]
            if outcome.leaves:
                result.append(outcome)  # shells differ at errors
        return result

    def _background(self, node: Node, state: State, *, guarded: bool) -> list[Outcome]:
        """Run a job behind `&`: the time at which it writes something is not known."""
        del guarded
        after = msgspec.structs.replace(state, files=())
        result = [Outcome(stream=(), status=0, state=after)]
        for outcome in self.node(node, state, guarded=True):
            for stream in variants(outcome.stream) or [outcome.stream]:
                if parts_of(stream) and self._depth > 1:
                    raise OutlivingError
                if parts_of(stream):
                    result.append(Outcome((*ANYTHING, *stream, *ANYTHING), None, after, leaves=LOST))
        return result

    def node(self, node: Node, state: State, *, guarded: bool, stdin: Parts | None = None) -> list[Outcome]:
        """Return the outcomes of a statement; `stdin` is what a pipe or a redirection feeds it with."""
        self.count_step()
        if stdin is None and isinstance(node, While):
            stdin = state.stdin
        if stdin is not None and (options := alternatives(stdin)):
            runs = [self.node(node, state, guarded=guarded, stdin=option) for option in options]
            return merged([outcome for run in runs for outcome in run])
        if stdin is not None and not isinstance(node, Simple):
            return self._fed(node, state, guarded=guarded, stdin=stdin)
        match node:
            case Simple():
                return checked(run_simple(self, node, state, guarded=guarded, stdin=stdin), guarded)
            case Pipeline():
                return checked(run_pipeline(self, node, state), guarded)
            case Not(body=body):
                return [inverted(outcome) for outcome in self.node(body, state, guarded=True)]
            case Timed(body=body):
                return [
                    msgspec.structs.replace(outcome, stream=(*outcome.stream, Emit(STDERR, TIMES)))
                    for outcome in self.node(body, state, guarded=guarded)
                ]
            case AndOr():
                return self._and_or(node, state, guarded=guarded)
            case Group(body=body, subshell=False):
                return self.script(body, state, guarded=guarded)
            case Group(body=body):
                inner = self.script(body, state, guarded=guarded, is_shell=True)
                return checked([of_subshell(outcome, state) for outcome in inner], guarded)
            case Compound(body=body, redirects=redirects):
                return self._redirected(body, redirects, state, guarded=guarded)
            case Function(name=name, body=body):
                functions = {**dict(state.functions), name: body}
                listed = tuple(sorted(functions.items(), key=lambda entry: entry[0]))
                return [Outcome(stream=(), status=0, state=msgspec.structs.replace(state, functions=listed))]
            case If():
                return self._if(node, state, guarded=guarded)
            case Case():
                return self._case(node, state, guarded=guarded)
            case For() | While():
                return run_loop(self, node, state, guarded=guarded)
            case Unsupported(raw=raw, body=body) if raw.startswith("for"):
                if (rounds := counted_loop(self, raw, body, state)) is None:
                    raise UnreadableError
                return rounds
            case Unsupported(raw=raw) if raw.startswith("((") and raw.endswith("))"):
                number, after = evaluated(raw[2:-2], state)
                status = None if number is None else int(number == 0)
                return checked([Outcome(stream=(), status=status, state=after)], guarded)
            case Unsupported(raw=raw):
                if not raw.startswith("((") or FLAG_STEM in raw:
                    raise UnreadableError
                return checked([Outcome(stream=(), status=None, state=state)], guarded)

    def _and_or(self, node: AndOr, state: State, *, guarded: bool) -> list[Outcome]:
        result: list[Outcome] = []
        wants_success = node.operator == "&&"
        for left in merged(self.node(node.left, state, guarded=True)):
            runs_right = left.status is None or (left.status == 0) is wants_success
            if left.leaves:
                result.append(left)
                continue
            if runs_right:
                result += behind(left.stream, self.node(node.right, with_status(left), guarded=guarded))
            if left.status is None:
                result.append(msgspec.structs.replace(left, status=FAILED if wants_success else 0))
            elif not runs_right:
                result.append(left)
        return merged(result)

    def _redirected(
        self, body: Node, redirects: tuple[Redirect, ...], state: State, *, guarded: bool
    ) -> list[Outcome]:
        expander = Expander(state, self.substituted)
        try:
            route = routing(redirects, expander)
        except AbortedError as aborted:
            return [aborted_outcome(aborted, state)]
        inner = forgetting(route, expander.state)
        failed: list[Outcome] = []
        if isinstance(body, While) and route.may_fail:
            route = of_shell(route)
            failed = [Outcome(stream=(Emit(STDERR, ERROR_LINE),), status=FAILED, state=state)]
        ran = self.node(body, inner, guarded=guarded, stdin=route.stdin)
        return [*routed(ran, route, expander.errors), *failed]

    def _fed(self, node: Node, state: State, *, guarded: bool, stdin: Parts) -> list[Outcome]:
        """Run a compound command that reads something."""
        match node:
            case Group(body=Script(items=(item,)), subshell=subshell) if not item.background:
                outcomes = self.node(item.node, state, guarded=guarded, stdin=stdin)
                return [of_subshell(outcome, state) for outcome in outcomes] if subshell else outcomes
            case Compound(body=body, redirects=redirects):
                expander = Expander(state, self.substituted)
                route = routing(redirects, expander)
                given = stdin if route.stdin is None else route.stdin
                return routed(
                    self.node(body, expander.state, guarded=guarded, stdin=given), route, expander.errors
                )
            case While() if (rounds := lines_loop(self, node, stdin, state, guarded=guarded)) is not None:
                return rounds
            case While() if (parts := entries_loop(self, node, stdin, state)) is not None:
                after = unknown_after(node, state)
                return [Outcome(stream=(Emit(STDOUT, parts),) if parts else (), status=None, state=after)]
            case While():
                inner = msgspec.structs.replace(state, stdin=(ANY,))
                ran = run_loop(self, node, inner, guarded=guarded)
                return [restored(outcome, state) for outcome in ran]
            case _:
                ran = self.node(node, fed(state, node, stdin), guarded=guarded)
                return [restored(outcome, state) for outcome in ran]

    # ------------------------------------------------------------ branches

    def _if(self, node: If, state: State, *, guarded: bool) -> list[Outcome]:
        result: list[Outcome] = []
        current = [Outcome(stream=(), status=0, state=state)]
        for condition, body in node.branches:
            following: list[Outcome] = []
            for before in current:
                for tested in behind(
                    before.stream, self.script(condition, with_status(before), guarded=True)
                ):
                    if tested.leaves:
                        result.append(tested)
                        continue
                    if tested.status != 0:
                        status = FAILED if tested.status is None else tested.status
                        following.append(msgspec.structs.replace(tested, status=status))
                    if tested.status in (0, None):
                        done = self.script(body, with_status(tested), guarded=guarded)
                        result += behind(tested.stream, done)
            current = merged(following)
        for before in current:
            if node.otherwise is None:
                result.append(msgspec.structs.replace(before, status=0))
            else:
                otherwise = self.script(node.otherwise, with_status(before), guarded=guarded)
                result += behind(before.stream, otherwise)
        return merged(result)

    def _case(self, node: Case, state: State, *, guarded: bool) -> list[Outcome]:
        expander = Expander(state, self.substituted)
        try:
            subject = expander.word(node.word)
        except AbortedError as aborted:
            return [aborted_outcome(aborted, state)]
        if any(item.terminator not in (";;", "") for item in node.items):
            raise UnreadableError
        result: list[Outcome] = []
        for item in node.items:
            matches = [None if p.expansions else matches_pattern(subject, p.text) for p in item.patterns]
            if True in matches or None in matches:
                result += behind(expander.errors, self.script(item.body, expander.state, guarded=guarded))
            if True in matches:
                return merged(result)
        result.append(Outcome(stream=expander.errors, status=0, state=expander.state))
        return merged(result)

    # ------------------------------------------------------------ commands and substitutions

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
        return run_command(self, words, state, environment, guarded=guarded, stdin=stdin)

    def substituted(
        self, script: Script, state: State, *, trims: bool = True
    ) -> tuple[Parts, Stream, int | None]:
        """Return what `$(…)` gives, what it writes to standard error, and its exit code, None for unknown.

        `trims`: line breaks at the end are taken off.
        """
        self.captures += 1
        outcomes = self.script(script, state, guarded=True, is_shell=True)
        self.captures -= 1
        if any(outcome.state.on_exit != state.on_exit for outcome in outcomes):
            raise UnreadableError
        statuses = {outcome.status for outcome in outcomes}
        streams = tuple(outcome.stream for outcome in outcomes)
        stream: Stream = streams[0] if len(streams) == 1 else (Fork(streams),)
        parts = parts_of(stream, STDOUT)
        status = statuses.pop() if len(statuses) == 1 else None
        return trimmed(parts) if trims else parts, only(stream, STDERR), status
