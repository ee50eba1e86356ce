"""Programs that Python starts, and what it writes to streams and logs."""

from __future__ import annotations

import re
import shlex
from typing import Any, Final

from agentdash.engine.detect.env_output.scripting.python.methods import Methods
from agentdash.engine.detect.env_output.scripting.python.values import (
    File,
    Process,
    Quiet,
)
from agentdash.engine.detect.env_output.scripting.values import (
    Builtin,
    ExitError,
    FailedError,
    Written,
)
from agentdash.engine.detect.env_output.selections import Bytes
from agentdash.engine.detect.env_output.unknown import UnknownError

_LEVELS: Final = {"debug": 10, "info": 20, "warning": 30, "warn": 30, "error": 40, "critical": 50}
_LOG_FIELD: Final = re.compile(r"%\((?P<name>\w+)\)(?P<left>-?)(?P<width>\d{0,2})[sd]")


class Processes(Methods):
    """Programs that Python starts, and what it writes to streams and logs."""

    log_stream: Any = Builtin("sys.stderr")
    log_level = 30
    log_format = "%(levelname)s:%(name)s:%(message)s"

    def run(self, arguments: list[Any], keywords: dict[str, Any]) -> Process:
        """Run `subprocess.run`."""
        script = self._script(arguments, keywords)
        pipe = Builtin("subprocess.PIPE") if keywords.get("capture_output") else None
        stdout = keywords.get("stdout", pipe)
        if keywords.get("check"):
            written, status = self.checked(script), 0
        else:
            written, status = self._ended(script, keywords)
        if stdout is not None:
            return Process(self._decoded(written, keywords), status)
        self.write_past(written.parts)
        return Process(None, status)

    def output_of(self, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        """Run `subprocess.check_output`."""
        return self._decoded(self.checked(self._script(arguments, keywords)), keywords)

    def run_checked(self, arguments: list[Any], keywords: dict[str, Any]) -> Quiet:
        """Run `subprocess.call` and `subprocess.check_call`."""
        self.write_past(self.checked(self._script(arguments, keywords)).parts)
        return Quiet()

    def run_unchecked(self, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        """Run `subprocess.call`."""
        written, status = self._ended(self._script(arguments, keywords), keywords)
        self.write_past(written.parts)
        return status

    def _ended(self, script: str, keywords: dict[str, Any]) -> tuple[Written, Any]:
        errors = list(self.err)
        found = self.ended(script)
        if keywords.get("capture_output") or keywords.get("stderr") is not None:
            self.err = errors
        return found

    def _decoded(self, written: Written, keywords: dict[str, Any]) -> Any:
        is_text = keywords.keys() & {"text", "universal_newlines", "encoding"}
        return written if is_text else Bytes(written)

    def _script(self, arguments: list[Any], keywords: dict[str, Any]) -> str:
        """Return the command that a program is started with, for a shell."""
        if len(arguments) != 1 or keywords.keys() & {
            "env",
            "input",
            "stdin",
            "executable",
            "cwd",
            "preexec_fn",
        }:
            raise UnknownError
        if keywords.get("stderr") not in (None, Builtin("subprocess.DEVNULL"), Builtin("subprocess.PIPE")):
            raise UnknownError
        command = arguments[0]
        if isinstance(command, list | tuple) and not keywords.get("shell"):
            return shlex.join(self.plain(word) for word in command)
        if not keywords.get("shell") and not re.fullmatch(r"[\w./-]+", self.plain(command)):
            raise UnknownError
        return self.plain(command)

    def open_process(self, script: Any) -> File:
        """Run `os.popen`."""
        return File(self.captured(script))

    def get_output(self, script: Any) -> Any:
        """Run `subprocess.getoutput`."""
        return self.method(self.captured(script), "rstrip", [], {})

    def system(self, script: Any) -> Quiet:
        """Run `os.system`."""
        self.started(script)
        return Quiet()

    def write_to(self, stream: Any, value: Any) -> None:
        """Run `sys.stdout.write`."""
        if value is None or isinstance(value, bool | int):
            raise FailedError("TypeError")
        (self.out if stream == Builtin("sys.stdout") else self.err).extend(self.written(value))

    def exit(self, arguments: list[Any]) -> None:
        """Run `sys.exit`."""
        if arguments and isinstance(arguments[0], str):
            self.err += [arguments[0], "\n"]
            raise ExitError(1)
        if not all(isinstance(each, int) for each in arguments):
            raise UnknownError
        raise ExitError(arguments[0] & 0xFF if arguments else 0)

    def _log(self, name: str, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        if name == "basicConfig":
            self.log_stream = keywords.get("stream", self.log_stream)
            self.log_format = self.plain(keywords.get("format", self.log_format))
            level = keywords.get("level", Builtin("logging.WARNING"))
            self.log_level = _LEVELS[level.name.rpartition(".")[2].lower()]
            if keywords.keys() - {"stream", "format", "level", "datefmt", "force"}:
                raise UnknownError
            return None
        if name == "getLogger":
            return Builtin("logging.logger")
        if name not in _LEVELS or keywords:
            raise UnknownError
        if _LEVELS[name] >= self.log_level:
            template, *values = arguments
            message = self.percent(template, tuple(values)) if values else self.text(template)
            self.write_to(self.log_stream, self._logged(name.upper(), message) + "\n")
        return None

    def _logged(self, level: str, message: str) -> str:
        def spelled(match: re.Match[str]) -> str:
            known = {"levelname": "WARNING" if level == "WARN" else level, "message": message}
            text = known.get(match["name"])
            width = int(match["width"] or 0)
            return self.quiet() if text is None else self.padded(text, width, left=match["left"] == "-")

        return _LOG_FIELD.sub(spelled, self.log_format)
