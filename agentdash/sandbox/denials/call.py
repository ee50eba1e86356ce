"""One call of a command or a tool: what is known of it while its output is read."""

from __future__ import annotations

import posixpath
import re
from functools import cached_property
from typing import Final

import msgspec

from agentdash.model.denials import Certainty, Denial, Operation, What
from agentdash.model.policy import Policy
from agentdash.sandbox.denials.attribution import (
    NO_TEMPORARY,
    TEST_FILE,
    Attribution,
    Origin,
    Strength,
    prefix_of,
)
from agentdash.sandbox.denials.lines import Lines, quote
from agentdash.sandbox.denials.programs import (
    WRITING_TOOLS,
    Role,
    files_of_options,
    is_build_tool,
    runs_code,
)
from agentdash.sandbox.denials.ran import Ran
from agentdash.sandbox.denials.ties import (
    is_code,
    is_elsewhere,
    is_foreign,
    is_inline,
    prints_data,
    repeats,
)

_ERROR_SHAPE: Final = re.compile(
    r"^\W{0,12}(?:(?:API |CMake )?[\w.$:]*(?:error|exception|panic\w*|fail\w*|fatal)\b|unknown: |caused by"
    r"|errno|E[A-Z]{4,}:|traceback|called `|thread '|cannot |could not |can't |unable to |\[Errno"
    r"|[EW]: |(?:open|mkdir|write|rename|remove|unlink|chmod|create) ['\"`]?/"
    r"|\{\s*['\"](?:error|message|isError|status)['\"])",
    re.IGNORECASE,
)
"""How programs begin an account of their own failure; prose does not."""
_RUNTIME_SHAPE: Final = re.compile(
    r"^\W{0,12}(?:[\w.$:]*(?:Error|Exception)(?:\W|$)|[\w.$:]*panic|unknown: |Errno\b|E[A-Z]{4,}\b|called `"
    r"|thread '|\[Errno|(?:open|mkdir|write|rename|remove|unlink|chmod|create) ['\"`]?/"
    r"|PHP \w|\{\s*['\"](?:error|message|isError|status)['\"])"
    r"|^\S+:\d+:in | at \S+ line \d+\.?$| in \S+ on line \d+$|\(os error \d+\)$"
)
"""How runtimes word an error, and where in a program they say that it was: no code of a project does."""
_UNCAUGHT: Final = re.compile(
    r"(?:CMake Error at|thread '.*' .*panicked at|panic: |Exception in thread|Unhandled exception|Uncaught) ?"
)
"""How runtimes begin the account of an error that ends a program."""
_TOOL_SHAPE: Final = re.compile(r"^\W{0,12}(?:CMake )?(?:error|failed|fatal|caused by)\b", re.IGNORECASE)
"""How build tools and package managers begin the account of their own failure."""
_NAMELESS: Final = re.compile(r"[~/][^\s:]*: [^/'\"]*$")
"""A message that begins with the path: nothing shows which program it is of."""
_VERDICT: Final = re.compile(
    r"^\s*(?:ok \d+ |\[ *(?i:ok|pass(?:ed)?) *\] |(?:OK|PASS(?:ED)?)(?::| [-–—:])? |[✓✔√✅☑] "
    r"|(?:ok|changed|skipping): \[)"
    r"|(?:\.{2,}|…|[-–—:>|\[(]) *(?i:ok|pass(?:ed)?)\b[\])]?(?: *\([\d.,]+ ?m?s\))?\.?\s*$"
    r"|[✓✔√✅☑](?: *\([\d.,]+ ?m?s\))?\s*$"
    r"|^\W*(?i:check(?:ing)?) (?:whether|if|for) .*(?:\.{2,}|…|[-–—:]) *(?i:yes|no|found|not found)\s*$"
)
"""A line that says of a test that it passed, or what was found out: what it names was expected, or tried."""
_COMMAND_SHOWN: Final = re.compile(r"\s*(?:\+|(?:> ?)?(?:echo|printf) )")
"""A line of `set -x`, or a recipe that make or npm shows."""
_TEST_REPORT: Final = re.compile(
    r"Ran \d+ tests? in |=+ short test summary info =|TAP version 1|test result: |--- FAIL: "
    r"|\s+\d+ passing \("
)
"""What test runners print: a program of any name may be one."""
_PUSHED_AWAY: Final = re.compile(r"To (?:\w+://|[^\s/:]+:)")
"""Where git pushed to another machine."""
_TRACEBACK_LINES: Final = 60
_STACK_LINES: Final = 10
"""Lines of a stack that follow a message (node's)."""
_STACK: Final = re.compile(r"^\s+at \S.*:\d+:\d+\)?$", re.MULTILINE)
"""A line of a JavaScript stack, which an agent's CLI prints of its own failure."""
_MESSAGE_LINES: Final = 3
_TOOL_FAILURE_LINES: Final = 40
"""An account of a tool's own failure is not longer; what it read is."""


class Finding(msgspec.Struct, frozen=True):
    """A denial and where it was read."""

    denial: Denial
    first: int
    last: int
    generic: bool = False
    """Whether another line of the same account names the cause."""


class Call:
    """What ran under which policy, how it ended, and the lines that it printed."""

    def __init__(
        self,
        *,
        script: str,
        lines: Lines,
        exit_code: int | None,
        outcome: str,
        policy: Policy,
        origin: Origin,
        is_command: bool,
        landlock: bool,
        seatbelt: bool,
        numbers: tuple[int, ...],
    ) -> None:
        self.script = script
        self.lines = lines
        self.exit_code = exit_code
        self.denied = outcome == "denied"
        self.policy = policy
        self.origin = origin
        self.is_command = is_command
        self.landlock = landlock
        self.seatbelt = seatbelt
        self.failed = exit_code not in (0, None) or self.denied
        self.unsandboxed = policy.enforced_by == "nobody"
        self._outcome = outcome
        self._numbers = numbers

    def finding(
        self,
        *,
        what: What,
        operation: Operation,
        certainty: Certainty,
        target: str | None,
        source: Attribution,
        first: int,
        last: int,
        generic: bool = False,
    ) -> Finding:
        """Return the finding of a denial that is reported in the lines from `first` to `last`."""
        command = source.command
        denial = Denial(
            what=what,
            operation=operation,
            certainty=certainty,
            quote=quote(*self.lines.range(first, last)),
            target=target,
            program=command.name if command is not None and command.name else prefix_of(self.lines[first]),
            nested=self._nested(source),
        )
        return Finding(denial, first, last, generic)

    def account(self, number: int) -> str:
        """Return the traceback that ends with a line, and what follows it."""
        above: list[str] = []
        for earlier in range(number - 1, max(-1, number - _TRACEBACK_LINES), -1):
            line = self.lines[earlier]
            if line.startswith("Traceback "):
                break
            if line[:1] not in (" ", "\t"):
                break
            above.append(line)
        return "\n".join([*reversed(above), *self.lines.range(number, number + _STACK_LINES)])

    def attribute(
        self, line: str, paths: tuple[str, ...], phrase: str, account: str, *, network: bool = False
    ) -> Attribution:
        """Return which command printed a line; of a tool that is no command, whether it failed."""
        if not self.is_command:
            return Attribution(self._strength_of_tool())
        if _VERDICT.search(line):
            return Attribution(Strength.NONE)
        alone = (network or self.failed) and self._is_alone(line)  # logs are short as well
        if self._is_elsewhere(line):
            return Attribution(Strength.NONE)
        source = self.origin.attribute(
            line, paths, phrase, account, network=network, alone=alone, code_of=self._known_code
        )
        if source.strength is Strength.NONE:
            source = self._of_agent(line, paths, account) or self._of_tests(line, paths) or source
        if source.command is not None and any(is_elsewhere(source.command, path) for path in paths):
            return Attribution(Strength.NONE)
        # last, since it looks through all lines
        if source.strength is not Strength.NONE and line.strip() in self._announced:
            return Attribution(Strength.NONE)
        command = source.command
        if command is not None and source.strength is not Strength.NONE and self._is_shown(source, command):
            return Attribution(Strength.AMBIGUOUS, command)
        return source

    def _is_elsewhere(self, line: str) -> bool:
        """Return whether git repeats what another machine printed."""
        if not (line.startswith("remote: ") or "unpack" in line):
            return False
        return any(_PUSHED_AWAY.match(text) for text in self.lines.range(0, len(self.lines)))

    def _is_shown(self, source: Attribution, command: Ran) -> bool:
        """Return whether a message may be one that its program provoked, or shows among others."""
        if source.strength < Strength.OWN and prints_data(command) and self._reports_tests:
            return True
        return source.strength is Strength.OPEN and self._shows_foreign

    @cached_property
    def _reports_tests(self) -> bool:
        return any(_TEST_REPORT.match(line) for line in self.lines.range(0, len(self.lines)))

    @cached_property
    def _shows_foreign(self) -> bool:
        """Whether a line begins with the name of a simple tool that nothing of the script can have started:
        then the output shows text from elsewhere."""
        programs = [c for c in self.origin.commands or () if not c.unseen]
        names = (prefix_of(self.lines[number], WRITING_TOOLS) for number in self._numbers)
        return any(all(is_foreign(c, name) for c in programs) for name in names)

    def _is_alone(self, line: str) -> bool:
        """Return whether an output is a message of this line, with at most some advice behind it."""
        printed = [text for text in self.lines.range(0, _MESSAGE_LINES + 1) if text.strip()]
        return len(printed) <= _MESSAGE_LINES and printed[0] == line

    def has_failed(self, command: Ran | None) -> bool:
        """Return whether a command failed, as far as is known."""
        if command is None or (self.denied and command.decides):
            return self.failed
        return self._code_of(command) not in (0, None)

    def _known_code(self, command: Ran) -> int | None:
        """Return the exit code of a command; that of a failure where the agent's CLI took it for a denial."""
        code = self._code_of(command)
        return 1 if self.denied and not code else code

    def _code_of(self, command: Ran) -> int | None:
        """Return the exit code of a command: that of the script, or the one that the script prints."""
        if command.decides or not command.code_shown:
            return self.exit_code if command.decides else None
        lines = reversed(self.lines.range(0, len(self.lines)))
        shown = next(filter(None, (re.fullmatch(command.code_shown, line.strip()) for line in lines)), None)
        return int(shown[1]) if shown else None

    def is_own_account(self, source: Attribution, first: int, last: int, target: str | None) -> bool:
        """Return whether lines report the failure of the command that they are attributed to: an error that
        a program shows of something else reads the same."""
        command = source.command
        if source.strength is Strength.OWN or (source.strength is Strength.TIED and command is None):
            return True
        if source.strength < Strength.OPEN or command is None:
            return False
        around = self.lines.range(first - 1, last)  # a panic: one above
        named = (target,) if target else ()
        if source.strength is Strength.OPEN and (
            repeats(command) or self.origin.is_of_service(command, named)
        ):
            return self._is_traced(first, last) or (self.failed and any(map(_UNCAUGHT.match, around)))
        if prints_data(command):
            is_own = prefix_of(self.lines[last], WRITING_TOOLS) is not None or any(
                _RUNTIME_SHAPE.search(line) or (is_build_tool(command.name) and _TOOL_SHAPE.match(line))
                for line in around
            )
            return is_own and (self.failed or source.strength is Strength.TIED)
        if source.strength is Strength.TIED:
            return not _NAMELESS.match(self.lines[first])
        shown = is_code(command)
        name = rf"(?<!\w){re.escape(posixpath.basename(target or '/'))}(?!\w)"
        if shown and not (target and re.search(name, command.raw)):
            return False  # code that does not name the file shows messages of others
        runs = runs_code(command.name) and (shown or not is_inline(command))
        known = is_build_tool(command.name) or runs
        return self.has_failed(command) or (known and any(map(is_account, around)))

    def _is_traced(self, first: int, last: int) -> bool:
        """Return whether the line above shows that the program of a message was started (`set -x`, make)."""
        name = prefix_of(self.lines[last])
        above = "".join(self.lines.range(first - 1, first - 1))
        return name is not None and re.match(rf"(?:\++ )?(?:\S*/)?{re.escape(name)} ", above) is not None

    def _strength_of_tool(self) -> Strength:
        """Return whether the output of a tool that is no command is an account of its failure, not what it
        was to read."""
        if self._outcome in ("denied", "failed"):
            return Strength.TIED
        first = next((line for line in self.lines.range(0, 5) if line.strip()), "")
        is_short = len(self.lines) <= _TOOL_FAILURE_LINES
        return Strength.OPEN if is_short and is_account(first) else Strength.NONE

    @cached_property
    def _announced(self) -> str:
        """The commands that a trace, make or npm shows before they run: what they print is in them."""
        return "\n".join(line for line in self.lines.range(0, len(self.lines)) if _COMMAND_SHOWN.match(line))

    def _of_agent(self, line: str, named: tuple[str, ...], account: str) -> Attribution | None:
        """Attribute the account of a failure to the coding agent's CLI that the script starts."""
        found = self.origin.agent()
        if found is None or self.origin.shows_text or not is_account(line):
            return None
        is_long = len(self.lines) > _TOOL_FAILURE_LINES and not _STACK.search(account)
        if is_long or not all(_is_state(path) for path in named):
            return None  # an answer, which may quote
        return Attribution(Strength.TIED, found[1])

    def _of_tests(self, line: str, paths: tuple[str, ...]) -> Attribution | None:
        """Attribute a message about its own files to a test runner: of its cache, or for what it captures."""
        tests = [c for c in self.origin.commands or () if c.role is Role.TEST and not c.unseen]
        others = [c for c in self.origin.commands or () if c.role in (Role.READER, Role.REMOTE)]
        if not tests or others:
            return None
        own = any(map(TEST_FILE.search, paths)) or line.startswith(NO_TEMPORARY)
        reports = (path for test in tests for path in files_of_options(test.words))
        own = own or any(path.startswith(report) for report in reports for path in paths)
        return Attribution(Strength.TIED, tests[-1]) if own else None

    def _nested(self, source: Attribution) -> str | None:
        found = self.origin.agent() if self.is_command else None
        return found[0] if found is not None and source.command == found[1] else None


def is_account(line: str) -> bool:
    """Return whether a line begins as programs begin an account of their own failure."""
    return _ERROR_SHAPE.match(line) is not None


def _is_state(named: str) -> bool:
    """Return whether an agent keeps its state there: in a hidden folder, or a temporary one; or a host."""
    return not named.startswith("/") or "/." in named or named.startswith(("/tmp/", "/var/", "/private/"))  # noqa: S108
