"""Read messages about programs that a sandbox does not let run, or that cannot do their work under it.

Seatbelt (macOS) refuses to execute set-uid programs such as `/bin/ps`. Under no_new_privs, which each sandbox
of Codex on Linux sets, a program gets no rights beyond those of the command: `sudo` and snaps cannot run.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from agentdash.sandbox.denials.attribution import Attribution, Strength, attribute, is_shells
from agentdash.sandbox.denials.call import Call
from agentdash.sandbox.denials.findings import Finding, finding
from agentdash.sandbox.denials.paths import is_same


class Message(msgspec.Struct, frozen=True):
    """A message about a program."""

    program: str | None
    """Its path or name; None: it is the one whose message it is."""
    is_starters: bool = False
    """Whether what was to start it reports that: a shell, `env`, `xargs`."""


_REFUSED: Final = re.compile(
    r"(?P<shells>(?:\S+: ?(?:line )?\d+: |\(eval\):\d+: |-?(?:ba|z|da|k)?sh: ))"
    r"(?:(?P<named>[^\s:]+): Operation not permitted|operation not permitted: (?P<zsh>\S+))\s*$"
    r"|(?:env|xargs|find|nohup|timeout|nice): (?:failed to run command )?['‘]?(?P<started>[\w./+-]+)['’]?:"
    r" Operation not permitted\s*$"
    r"|\bspawn(?:Sync)? (?P<node>[\w./+-]+) EPERM\b"
    r"|\bfork/exec (?P<go>/[\w./+-]+): operation not permitted"
    r"|PermissionError: \[Errno 1\] Operation not permitted: ['\"](?P<python>[\w.+-]+|/\S*bin/[\w.+-]+)['\"]"
)
_NO_RIGHTS: Final = re.compile(
    r"^sudo: The \"no new privileges\" flag is set"
    r"|\bcannot set \(?(?:privileged\)? )?capabilities: Operation not permitted"
    r"|^snap-confine is packaged without necessary permissions"
    r"|^required permitted capability \w+ not found in current capabilities"
    r"|^\w+: could not sysctl\(KERN_PROC\): Operation not permitted"
    r"|^sysmon request failed with error: sysmond service not found"
)
"""Words of sudo, of snaps (Ubuntu), and of what lists processes on macOS."""
_PROGRAM: Final = re.compile(r"(?:/[\w.+@-]+)*/s?bin/[\w.+-]+")


def read_message(call: Call, number: int) -> Message | None:
    """Return what a line reports about a program, or None if it is about something else."""
    line = call.lines[number]
    if _NO_RIGHTS.search(line):
        return Message(None)
    match = _REFUSED.search(line)
    if match is None:
        return None
    program = next(text for name, text in match.groupdict().items() if name != "shells" and text)
    commands = call.script.commands or ()
    is_written = any(is_same(path, program, c.cwd, call.home) for c in commands for path in c.written if path)
    is_run = any(program in (c.name, c.raw.partition(" ")[0]) or program in c.words for c in commands)
    if is_written or not (is_run or _PROGRAM.fullmatch(program)):
        return None
    return Message(program, is_starters=bool(match["shells"] or match["started"]))


def judge_execution(call: Call, message: Message, number: int) -> Finding | None:
    """Return the denial that a message about a program reports, or None if the text is only shown."""
    if call.unsandboxed:
        return None
    named = (message.program,) if message.program else ()
    if not message.is_starters:
        source = attribute(call, number, named, "")
    elif runs := [c for c in call.script.visible if c.name == (message.program or "").rpartition("/")[2]]:
        source = Attribution(Strength.OWN, runs[0])
    else:
        source = Attribution(Strength.AMBIGUOUS if _begins_output(call, number) else Strength.NONE)
    if source.strength is Strength.NONE:
        return None
    is_certain = source.strength >= Strength.OPEN and (call.denied or not call.script.shows_text)
    target = message.program or (source.command.name if source.command is not None else None)
    return finding(
        call, "other", "exec", "certain" if is_certain else "likely", target, source, number, number
    )


def _begins_output(call: Call, number: int) -> bool:
    """Return whether a start-up file of the shell can have printed a line: nothing else stands above it."""
    above = (line for line in call.lines.range(0, number - 1) if line.strip())
    return all(is_shells(line) for line in above) and is_shells(call.lines[number])
