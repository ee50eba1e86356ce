"""One call of a command or a tool: what is known of it while its output is read."""

from __future__ import annotations

import re
from functools import cached_property, lru_cache
from typing import Final

import msgspec

from agentdash.model.policy import Policy
from agentdash.sandbox.denials.commands import RunCommand, commands_of
from agentdash.sandbox.denials.lines import Lines
from agentdash.sandbox.denials.programs import Role, agent_of

_TEST_REPORT: Final = re.compile(
    r"Ran \d+ tests? in |=+ short test summary info =|TAP version 1|test result: |--- FAIL: "
    r"|\s+\d+ passing \("
)
_TRACEBACK_LINES: Final = 60
_STACK_LINES: Final = 10
"""Lines of a stack that follow a message (node's)."""
_MESSAGE_LINES: Final = 3
_ELSEWHERE: Final = (Role.READER, Role.TEST, Role.REMOTE)
"""Roles of programs that print text from elsewhere."""


class Script(msgspec.Struct, frozen=True):
    """What a script runs."""

    commands: tuple[RunCommand, ...] | None
    """None if it could not be parsed."""
    text: str
    """Without filters of pipelines, whose patterns quote what they look for."""

    @property
    def visible(self) -> list[RunCommand]:
        """The commands whose messages are not thrown away."""
        return [command for command in self.commands or () if not command.unseen]

    @property
    def shows_text(self) -> bool:
        """Whether a command prints text from elsewhere."""
        return self.commands is None or any(c.role in _ELSEWHERE for c in self.commands)

    def agent(self) -> tuple[str, RunCommand] | None:
        """Return the first coding agent's CLI that the script starts."""
        for command in self.commands or ():
            if command.role is Role.AGENT and (name := agent_of(command.name, command.words)):
                return name, command
        return None


@lru_cache(128)
def read_script(text: str, cwd: str | None, home: str | None) -> Script:
    """Return what a script runs."""
    commands = commands_of(text, cwd, home)
    for command in commands or ():
        if command.role is Role.QUIET and command.name not in ("echo", "printf"):
            text = text.replace(command.raw, "", 1)
    return Script(commands, text)


class Call(msgspec.Struct, dict=True):
    """What ran under which policy, how it ended, and the lines that it printed."""

    source: str
    """The script as written; of a tool that is no command its arguments."""
    lines: Lines
    numbers: tuple[int, ...]
    """Of the lines that may report a denial."""
    exit_code: int | None
    outcome: str
    """`denied` where the agent's CLI itself took it for a denial."""
    policy: Policy
    is_command: bool
    landlock: bool
    seatbelt: bool
    cwd: str | None
    home: str | None

    @cached_property
    def script(self) -> Script:
        """What the script runs; most lines that look like a denial are none before that is asked."""
        return read_script(self.source, self.cwd, self.home)

    @cached_property
    def denied(self) -> bool:
        """Whether the agent's CLI took it for a denial."""
        return self.outcome == "denied"

    @cached_property
    def failed(self) -> bool:
        """Whether it failed, as far as is known."""
        return self.exit_code not in (0, None) or self.denied

    @cached_property
    def unsandboxed(self) -> bool:
        """Whether no sandbox was to be started."""
        return self.policy.enforced_by == "nobody"

    def code_of(self, command: RunCommand) -> int | None:
        """Return the exit code of a command, or None if it is not known."""
        code = self.exit_code if command.decides else self._printed_code(command)
        return 1 if self.denied and not code else code

    def _printed_code(self, command: RunCommand) -> int | None:
        if not command.code_shown:
            return None
        lines = reversed(self.lines.range(0, len(self.lines)))
        shown = next(filter(None, (re.fullmatch(command.code_shown, line.strip()) for line in lines)), None)
        return int(shown[1]) if shown else None

    def has_failed(self, command: RunCommand | None) -> bool:
        """Return whether a command failed, as far as is known."""
        if command is None:
            return self.failed
        if self.denied and not command.decides:
            return self._printed_code(command) not in (0, None)
        return self.code_of(command) not in (0, None)

    @cached_property
    def reports_tests(self) -> bool:
        """Whether it prints what test runners print: a program of any name may be one."""
        return any(_TEST_REPORT.match(line) for line in self.lines.range(0, len(self.lines)))

    def account(self, number: int) -> str:
        """Return the traceback that ends with a line, and what follows it."""
        above: list[str] = []
        for earlier in range(number - 1, max(-1, number - _TRACEBACK_LINES), -1):
            line = self.lines[earlier]
            if line.startswith("Traceback ") or line[:1] not in (" ", "\t"):
                break
            above.append(line)
        return "\n".join([*reversed(above), *self.lines.range(number, number + _STACK_LINES)])

    def is_alone(self, line: str) -> bool:
        """Return whether an output is a message of this line, with at most some advice behind it."""
        printed = [text for text in self.lines.range(0, _MESSAGE_LINES + 1) if text.strip()]
        return len(printed) <= _MESSAGE_LINES and printed[0] == line
