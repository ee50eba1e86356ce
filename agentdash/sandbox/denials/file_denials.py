"""Decide which messages about files are denials: what the policy forbids, and what failed for it."""

from __future__ import annotations

import posixpath
import re
from functools import cached_property
from typing import Final

from agentdash.model.denials import Certainty, Operation
from agentdash.model.policy import Filesystem
from agentdash.sandbox.denials.attribution import (
    Attribution,
    Strength,
    attribute,
    is_own_account,
    is_shells,
    prefix_of,
)
from agentdash.sandbox.denials.call import Call
from agentdash.sandbox.denials.file_messages import Message, Reason
from agentdash.sandbox.denials.findings import Finding, finding
from agentdash.sandbox.denials.paths import databases_in, denies_read, may_write, place
from agentdash.sandbox.denials.programs import WRITING_CODE, WRITING_TOOLS, Role
from agentdash.sandbox.word_sets import word_set

_PROTECTED: Final = re.compile(r"/\.(?:git|agents|codex|aws)(?:/|$)")
"""Codex keeps these read-only in every writable root, also where the policy does not list them (legacy
`sandbox_policy`)."""
_NOT_FILES: Final = word_set(
    "mount umount unshare nsenter chroot swapon losetup strace ptrace dmesg sudo su kill renice nice sysctl "
    "iptables ip setcap prlimit perf gdb pkexec runuser newgrp hostname date ps"
)
"""Programs that lack a privilege, whatever path they name."""
_INSTALLING: Final = frozenset(("install", "add", "i", "ci", "sync", "upgrade", "update", "link"))
"""Subcommands with which package managers write."""
_STATE_FOLDER: Final = re.compile(r"/\.(?:cache|config|local/(?:share|state))/[^/]+$")
"""What programs make with its parents, by the XDG base directory specification."""


def judge_file(call: Call, message: Message) -> Finding | None:
    """Return the denial that a message about a file reports, or None if the policy does not explain it."""
    filesystem = call.policy.filesystem
    if filesystem is Filesystem.UNKNOWN:
        return None
    if call.unsandboxed and message.reason is not Reason.READ_ONLY:
        return None
    if filesystem is Filesystem.UNRESTRICTED and not call.unsandboxed:
        return None
    number = message.last if prefix_of(call.lines[message.last]) else message.first
    source = attribute(call, number, message.paths, message.phrase)
    if source.strength is Strength.NONE:
        return None
    if message.reason is Reason.MISSING and not _makes_parents(call, message, source):
        return None
    return _Judge(call, message, source).finding()


def _makes_parents(call: Call, message: Message, source: Attribution) -> bool:
    """Return whether a program makes the directories above the one that it misses: Node does if the code
    says so, npm and the CLIs of agents do always, and any program in its place for state."""
    is_agent = source.command is not None and source.command.role is Role.AGENT
    is_state = any(map(_STATE_FOLDER.search, message.paths))
    line = call.lines[message.last]
    known = "ENOENT" not in line or line.startswith("npm ")
    return known or is_agent or is_state or "recursive" in call.source


def _is_refused(call: Call, path: str, reason: Reason) -> bool:
    """Return whether the policy does not let a path be written."""
    allowed = may_write(call.policy, path)
    if call.unsandboxed:
        return not path.startswith(("/proc/", "/sys/", "/dev/"))
    sure = reason in (Reason.READ_ONLY, Reason.NOT_PERMITTED)
    return allowed is False or (allowed is True and sure and _PROTECTED.search(path) is not None)


class _Judge:
    """The judgement of one message that a command can have printed."""

    def __init__(self, call: Call, message: Message, source: Attribution) -> None:
        self._call = call
        self._message = message
        self._source = source
        self._command = source.command

    @cached_property
    def _folders(self) -> list[str | None]:
        """Where the command may have worked: each of its name may have printed the message
        (`tar c . | tar x -C /opt`)."""
        if self._command is None:
            return [self._call.cwd]
        others = (c.cwd for c in self._call.script.visible if c.name == self._command.name)
        return list(dict.fromkeys((self._command.cwd, *others)))

    def finding(self) -> Finding | None:
        """Return the denial, or None."""
        named = self._paths()
        target = next((path for path in named if _is_refused(self._call, path, self._message.reason)), None)
        if named and target is None:
            return None  # what may be written: an ordinary failure
        if self._message.writes is False or self._is_reading(target):
            if target is None or not denies_read(self._call.policy, target):
                return None
            return self._found(
                "read", "certain" if self._source.strength >= Strength.OPEN else "likely", target
            )
        certainty = self._certainty(target)
        return None if certainty is None else self._found(self._message.operation, certainty, target)

    def _found(self, operation: Operation, certainty: Certainty, target: str | None) -> Finding:
        first, last = self._message.first, self._message.last
        return finding(self._call, "filesystem", operation, certainty, target, self._source, first, last)

    # ------------------------------------------------------------ what it is about

    def _paths(self) -> list[str]:
        """Return the absolute paths that the message can be about, likeliest first."""
        about = [path for path in self._message.paths if not self._is_its_name(path)]
        named = [self._place(path) for path in about if "/" in path or self._is_file(path)]
        if self._message.reason is Reason.DATABASE and not any(named):
            named = [self._place(path) for path in self._databases()]
        return list(dict.fromkeys(path for path in named if path is not None))

    def _is_its_name(self, path: str) -> bool:
        """Return whether a path is that of the program whose message it is: `/usr/sbin/ntpd: `."""
        line = self._call.lines[self._message.last].lstrip()
        name = self._command.name if self._command is not None else None
        return posixpath.basename(path) == name and line.startswith(f"{path}: ")

    def _place(self, path: str) -> str | None:
        """Return a path as absolute: in the first directory that makes it a refused one."""
        placed = [place(path, folder, self._call.home) for folder in self._folders]
        refused = (p for p in placed if p is not None and _is_refused(self._call, p, self._message.reason))
        return next(refused, None if None in placed else placed[0])

    def _is_file(self, word: str) -> bool:
        """Return whether a word without a slash is a file's name: the script has to show it, unless the file
        system is read-only, and not as a label that it prints (`print "cannot: $!"`)."""
        source = self._call.source
        return f"{word}:" not in source and (self._message.reason is Reason.READ_ONLY or word in source)

    def _databases(self) -> list[str]:
        command = self._command
        text = "\n".join(self._call.lines.range(self._message.first, self._message.last))
        words = " ".join(command.words) if command is not None else ""
        found = databases_in(text) or databases_in(words) or databases_in(self._call.source)
        if not found and command is not None and command.name.startswith("sqlite"):
            found = [word for word in command.words if word and not word.startswith("-")][:1]
        return found

    # ------------------------------------------------------------ whether it is a refused write

    def _is_reading(self, target: str | None) -> bool:
        """Return whether a program that only reads could not read: it does not say so."""
        if self._message.writes or self._command is None or self._source.strength is not Strength.OWN:
            return False
        reader = self._command.role in (Role.READER, Role.QUIET)
        return reader and not (target is not None and self._writes(target))

    def _certainty(self, target: str | None) -> Certainty | None:
        """Return how sure a failure is a denied write, or None if it may as well be something else."""
        call, message = self._call, self._message
        certainty = self._certainty_by_reason(target)
        if certainty is None or (self._source.strength is Strength.AMBIGUOUS and not call.failed):
            return None
        if call.denied and not call.unsandboxed:
            return "certain"
        hidden = target is not None and denies_read(call.policy, target)
        if message.reason is Reason.PERMISSION and not call.landlock and not hidden:
            return None  # modes of the file: the sandbox refuses with other errors, but for what it hides
        if message.reason is Reason.NOT_PERMITTED and not call.seatbelt:
            return None  # a privilege that is missing anywhere: bubblewrap refuses files with EROFS
        is_proven = is_own_account(call, self._source, message.first, message.last, target)
        return certainty if is_proven and not call.unsandboxed else "likely"

    def _certainty_by_reason(self, target: str | None) -> Certainty | None:
        reason, command = self._message.reason, self._command
        if reason is Reason.READ_ONLY:
            return "certain"
        if reason is Reason.DATABASE:
            return "certain" if target else "likely"
        if target is None:
            return "likely" if self._lacks_state() and self._message.writes is not False else None
        if reason in (Reason.UNWRITABLE, Reason.MISSING):
            return "certain" if "FileSystem." in self._call.lines[self._message.last] else "likely"
        if command is not None and command.name in _NOT_FILES:
            return None
        shown = self._call.account(self._message.last)  # a traceback has the call that writes
        if self._message.writes or self._writes(target) or WRITING_CODE.search(shown):
            return "certain"
        if command is not None and command.role in (Role.QUIET, Role.READER):
            return None
        if reason is Reason.NOT_PERMITTED:
            return "certain"
        if command is not None and not _INSTALLING.isdisjoint(command.words):
            return "likely"
        at_home = self._call.home is not None and target.startswith(f"{self._call.home}/")
        return "likely" if at_home and not (command is not None and command.is_code) else None

    def _lacks_state(self) -> bool:
        """Return whether a coding agent's CLI failed: it does nothing without its state."""
        is_agent = self._command is not None and self._command.role is Role.AGENT
        return is_agent and not any("/" in path for path in self._message.paths)

    def _writes(self, target: str) -> bool:
        """Return whether what ran writes this file by itself, though the message does not say so."""
        command = self._command
        if command is None:
            return False
        shell = is_shells(self._call.lines[self._message.first])
        if command.name in WRITING_TOOLS or (shell and not all(command.written)):
            return True
        if any(self._place(path) == target for path in command.written if path):
            return True
        operands = [path for word in command.words if word and (path := self._place(word))]
        if command.role is Role.PROGRAM and any(target.startswith(f"{path}.") for path in operands):
            return True  # what it makes of a file: `x.gz`, `x.bak`
        code = "\n".join((*command.words, command.raw, self._call.source))
        return posixpath.basename(target) in code and WRITING_CODE.search(code) is not None
