"""Programs that a Python program starts."""

from __future__ import annotations

import re
import shlex
from typing import Any

from agentdash.engine.detect.env_output.patterns import Choice, Parts, Trimmed, joined
from agentdash.engine.detect.env_output.placeholders import has_placeholder
from agentdash.engine.detect.env_output.python_methods import Methods
from agentdash.engine.detect.env_output.python_values import (
    Captured,
    Module,
    Process,
    Quiet,
)
from agentdash.engine.detect.env_output.streams import STDERR, STDOUT, all_parts, only, parts_of
from agentdash.engine.detect.env_output.unknown import UnknownError


class Processes(Methods):
    """Programs that a Python program starts."""

    def run(self, arguments: list[Any], keywords: dict[str, Any]) -> Process:
        """Run `subprocess.run`."""
        is_captured = keywords.pop("capture_output", False) is True
        stdout = keywords.pop("stdout", None)
        is_checked = keywords.pop("check", False) is True
        captured = self._captured(arguments, keywords)
        if is_checked:
            self._failures.append(self._failure())
        if is_captured or stdout == Module("subprocess.PIPE"):
            return Process(captured)
        if stdout is not None:
            raise UnknownError
        self._write_past(captured.parts)
        return Process(Captured(()))

    def run_captured(self, arguments: list[Any], keywords: dict[str, Any]) -> Captured:
        """Run `subprocess.check_output`."""
        captured = self._captured(arguments, keywords)
        self._failures.append(self._failure())  # a program that fails ends this one
        return captured

    def run_checked(self, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        """Run `subprocess.call` and `subprocess.check_call`."""
        self._write_past(self._captured(arguments, keywords).parts)
        self._failures.append(self._failure())
        return Quiet()

    def _captured(self, arguments: list[Any], keywords: dict[str, Any]) -> Captured:
        """Return what a program writes to its standard output."""
        is_shell = keywords.pop("shell", False) is True
        stderr = keywords.pop("stderr", None)
        for name in ("text", "universal_newlines", "encoding", "errors", "timeout", "check"):
            keywords.pop(name, None)
        if keywords or len(arguments) != 1:
            raise UnknownError
        command = arguments[0]
        if isinstance(command, list | tuple) and not is_shell and all(isinstance(c, str) for c in command):
            command = shlex.join(command)
        elif not isinstance(command, str) or (not is_shell and not re.fullmatch(r"[\w./-]+", command)):
            raise UnknownError
        return self._shell(command, quiet_errors=stderr == Module("subprocess.DEVNULL"))

    def _shell(self, command: str, *, quiet_errors: bool = False) -> Captured:
        """Run a shell, and return what it writes to its standard output."""
        if self._run_shell is None or has_placeholder(command):
            raise UnknownError
        outcomes = self._run_shell(command)
        if not quiet_errors:
            errors = {only(outcome.stream, STDERR) for outcome in outcomes}
            if errors != {()}:
                self._err.append(Choice(tuple(all_parts(error) for error in errors)))
        options = tuple(dict.fromkeys(parts_of(outcome.stream, STDOUT) for outcome in outcomes))
        return Captured(options[0] if len(options) == 1 else (Choice(options),))

    def _write_past(self, parts: Parts) -> None:
        """Add what another process writes: before what this one has buffered, or behind it."""
        buffered = tuple(self.out)
        behind, before = joined((*buffered, *parts)), joined((*parts, *buffered))
        self.out = list(behind) if behind == before else [Choice((behind, before))]

    def open_process(self, arguments: list[Any], keywords: dict[str, Any]) -> Captured:
        """Run `os.popen` and `subprocess.getoutput`."""
        if keywords or len(arguments) != 1 or not isinstance(arguments[0], str):
            raise UnknownError
        return self._shell(arguments[0])

    def get_output(self, arguments: list[Any], keywords: dict[str, Any]) -> Captured:
        """Run `subprocess.getoutput`."""
        return Captured((Trimmed(self.open_process(arguments, keywords).parts),))

    def system(self, arguments: list[Any], keywords: dict[str, Any]) -> Quiet:
        """Run `os.system`."""
        self._write_past(self.open_process(arguments, keywords).parts)
        return Quiet()
