"""Promises of JavaScript: what stands behind an `await` runs after the rest of the program."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

from agentdash.engine.detect.env_output.scripting.texts import Texts
from agentdash.engine.detect.env_output.scripting.values import UNMODELLED, ExitError, FailedError
from agentdash.engine.detect.env_output.unknown import UnknownError

_Written = tuple[int, int]
"""Numbers of parts that were written to standard output and standard error."""


class Promise:
    """What an `async` function gives, which was run at once."""

    def __init__(self, begin: _Written) -> None:
        self.begin = begin
        self.end = begin
        self.is_late = False
        """A part of it runs behind what comes next in the program."""
        self.value: Any = None
        self.failure: FailedError | ExitError | None = None


class Promises(Texts):
    """Calls of `async` functions, one after another; others in between are not followed."""

    _awaited = 0
    """Number of times that the program has waited."""

    @property
    def promises(self) -> list[Promise]:
        """Return the promises for which nothing has waited so far."""
        return self._names.setdefault("%promises", [])  # type: ignore[no-any-return]

    @abstractmethod
    def call(self, function: Any, arguments: list[Any]) -> Any:
        """Run a function."""

    def _length(self) -> _Written:
        return len(self.out), len(self.err)

    def promised(self, run: Callable[[], Any]) -> Promise:
        """Run an `async` function."""
        if self._looped:
            raise UnknownError
        found, awaited = Promise(self._length()), self._awaited
        self._settle(found, run, is_late=False)
        found.is_late = self._awaited > awaited
        if isinstance(found.failure, ExitError) and not found.is_late:
            raise found.failure
        return found

    def _settle(self, promise: Promise, run: Callable[[], Any], *, is_late: bool) -> None:
        self.promises.append(promise)
        self.tries += 1
        try:
            value = run()
            promise.value = self.awaited(value) if isinstance(value, Promise) else value
        except (FailedError, ExitError) as failure:
            promise.failure = failure
        except UNMODELLED:
            self.promises.remove(promise)
            raise
        finally:
            self.tries -= 1
        promise.end = self._length()
        promise.is_late = is_late

    def awaited(self, value: Any) -> Any:
        """Run `await`."""
        self._awaited += 1
        if not isinstance(value, Promise):
            return value
        self._take(value)
        if value.failure is not None:
            raise value.failure
        return value.value

    def _take(self, promise: Promise) -> None:
        """Wait for a promise: nothing was written while it was open."""
        if promise.is_late and promise.end != self._length():
            del self.out[promise.begin[0] :]
            del self.err[promise.begin[1] :]
            raise UnknownError
        if promise in self.promises:
            self.promises.remove(promise)

    def chained(self, promise: Promise, name: str, functions: list[Any]) -> Promise:
        """Run `then`, `catch` or `finally`."""
        self._take(promise)
        failure = promise.failure
        found = Promise(promise.begin)

        def run() -> Any:
            match name, functions:
                case ("then", [function]) | ("then", [function, _]) if failure is None:
                    return self.call(function, [promise.value])
                case ("then", [_, function]) | ("catch", [function]) if isinstance(
                    promise.failure, FailedError
                ):
                    return self.call(function, [self.caught(promise.failure)])
                case "finally", [function]:
                    self.call(function, [])
                case _:
                    pass
            if failure is not None:
                raise failure
            return promise.value

        self._settle(found, run, is_late=True)
        return found

    @abstractmethod
    def caught(self, failed: FailedError) -> Any:
        """Return an exception as a value."""

    def finish(self) -> None:
        """Wait for all that is open at the end of the program."""
        for promise in list(self.promises):
            self.awaited(promise)
