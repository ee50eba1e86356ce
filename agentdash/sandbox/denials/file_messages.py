"""Read messages about files (which operation on which path failed for which reason), and decide which of
them are denials: what the policy forbids, and what failed for it.
"""

from __future__ import annotations

import posixpath
import re
from enum import StrEnum
from functools import cached_property, lru_cache
from typing import Final

import msgspec

from agentdash.model.denials import Certainty, Operation
from agentdash.model.patterns import Pattern
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
from agentdash.sandbox.denials.findings import Finding, finding
from agentdash.sandbox.denials.lines import Lines
from agentdash.sandbox.denials.paths import (
    databases_in,
    denies_read,
    may_write,
    paths_in,
    place,
    without_paths,
)
from agentdash.sandbox.denials.programs import WRITING_CODE, WRITING_TOOLS, Role
from agentdash.sandbox.word_sets import word_set


class Message(msgspec.Struct, frozen=True):
    """A message about a file."""

    reason: Reason
    operation: Operation
    writes: bool | None
    """Whether the message is about writing; None where it could be reading too."""
    paths: tuple[str, ...]
    """As named, likeliest target first."""
    phrase: str
    """The words that report the failure; empty where there are only codes."""
    first: int
    last: int
    """Numbers of its lines."""


_READING: Final = Pattern(
    r"for reading|can(?:no|')t (?:read|stat|statx|access|list|open directory)"
    r"|can't open file(?! for writing)|cannot open directory|could not open directory"
    r"|opendir|readdir|scandir|readlink|realpath|unable to access '|failed to read|(?:could not|couldn't"
    r"|unable to|error) read"
    r"|cannot be loaded|unable to index|(?:^|[\s,])(?:l?stat|access|lstatx?|read|watch) [`'\"/]"
    r"|reading (?:file|from)|FileSystem\.(?:stat|read\w*|access)",
    re.IGNORECASE,
)
_OPERATIONS: Final[dict[Operation, Pattern]] = {
    "sqlite": Pattern(r"database(?! \.git| directory)|SQLITE_|sqlite3?\.", re.IGNORECASE),
    "mkdir": Pattern(
        r"mkdir|creat(?:e|ing) (?:\w+ ){0,2}(?:director|folder)|make director|create_dir|makeDirectory"
        r"|create work tree dir|can't make|mkdtemp|makedirs",
        re.IGNORECASE,
    ),
    "rename": Pattern(r"\brename|cannot move|can't move|\bmv: |cannot overwrite|moving ", re.IGNORECASE),
    "delete": Pattern(r"cannot unlink|\bunlink|\brmdir|\brm: |delet|remov", re.IGNORECASE),
    "chmod": Pattern(
        r"\bchmod|\bchown|\bchgrp|changing (?:permissions|ownership|group)|chang\w+ (?:mode|owner)"
        r"|setfacl|setxattr",
        re.IGNORECASE,
    ),
    "create": Pattern(
        r"creat|mktemp|mkstemp|cannot touch|\btouch: |symlink|symbolic link|hard link|\blink |\bln: "
        r"|mkfifo|mknod|copyfile|FileOutputStream|temporary file",
        re.IGNORECASE,
    ),
    "write": Pattern(
        r"writ|\bappend|truncat|overwrit|\bsav(?:e|ing)\b|\block(?:ed|ing)?\b|setting times|utime"
        r"|cannot make|output file|log file|\btee: |\bdd: |\binstall: |for (?:output|appending)"
        r"|failed to open (?:the file|stream)|file_put_contents|into ",
        re.IGNORECASE,
    ),
}
_GIT: Final = Pattern(r"(?:^|/)\.git/")
"""In the repository; `.git` alone is also the name of an empty file with which uv marks its caches."""
_OF_GIT: Final = ("fatal: ", "error: ", "git: ")
_CHAIN: Final = Pattern(
    r"^\s*(?:caused? by\b|cause\b|because\b|reason\b|\d+: |[╰├└│|>*✗×·-])|^\s{2,}\S|^\t|^ \S",
    re.IGNORECASE,
)
_TROUBLE: Final = Pattern(
    r"fail|error|cannot|can't|could ?n[o']t|couldn't|unable|denied|refus|not (?:create|open|write)"
    r"|initiali[sz]",
    re.IGNORECASE,
)
_CHAIN_LINES: Final = 10
"""Lines between the path and the error number in the longest chains of causes (cargo's)."""
_MAX_PATH: Final = 1_000
_FIELD: Final = Pattern(
    r"^\s*['\"]?(?:code|errno|syscall|path|dest|address|port)['\"]?: |^npm (?:ERR!|error) (?:code|errno"
    r"|syscall|path|dest) "
)
"""Fields of an error that its message, a line above or below, has in words."""
_FUNCTIONS: Final = word_set(
    "open openat fopen creat tmpfile mkstemp mkostemp mkdtemp mktemp write"
) | frozenset(("rename", "renameat", "unlink", "mkdir", "rmdir", "link", "symlink", "truncate", "utimensat"))
"""Functions of the C library, which `perror` puts in the place of a file."""
_PLACE: Final = Pattern(r"^\S+:\d+:in [`'][^`']*': |^\s{0,4}\S*/\S+?:(?: line)? \d+: ")
"""Where Ruby raised an error: `/usr/lib/ruby/3.1.0/fileutils.rb:243:in `mkdir': `; which script a shell runs,
and where in it: `/bin/bash: line 1: `, `./build.sh: 3: `."""
_RUBY_PATH: Final = Pattern(r" @ \w+ - (?:\([^,()]*, )?(?P<path>[^()]+?)\)?(?: \(Errno::\w+\))?$")
_BARE: Final = Pattern(r"(?:^|: |cannot create )([\w.@+~-]+)$")
_TAR: Final = Pattern(r"^(?:bsd)?tar: (?P<path>.+?): (?:Cannot|Can't) \w+(?: \w+)*: $")
"""What tar says of a member, whose name is relative to where it extracts."""
_HERE: Final = Pattern(r" \./: $")
"""The working directory: gcc's `Cannot create temporary file in ./: `."""


def read_message(lines: Lines, number: int, script: str) -> Message | None:
    """Return what the line reports about a file, with what the lines around it add; None for nothing.

    Args:
        number: of the line.
        script: what ran: it shows where a path with blanks begins and ends.
    """
    line = lines[number]
    found = reason_in(line)
    if found is None:
        return None
    reason, match = found
    if _FIELD.match(line):
        return None
    first = last = number
    if place := _PLACE.match(line):
        line = line[place.end() :]
        reason, match = reason_in(line) or (reason, match)
    paths = _paths(line[: match.start()], _behind(line, match), match[0], script)
    text = line
    complete = any("/" in path for path in paths) or (paths and (is_shells(lines[number]) or prefix_of(line)))
    if complete and _CHAIN.match(line) and (above := _directory_above(lines, number, paths)):
        paths = (above, *paths)
    if not complete:
        more, first, last, text = _around(lines, number)
        paths = (*more, *paths)
    writes = _writes(reason, text)
    return Message(
        reason=reason,
        operation=_operation(reason, text, paths),
        writes=writes,
        paths=paths,
        phrase=phrase_of(line),
        first=first,
        last=last,
    )


def _behind(line: str, match: re.Match[str]) -> str:
    """Return what follows the reason; of its repetition in words (`EROFS: read-only file system`) what
    follows that."""
    rest = line[match.end() :]
    repeated = re.match(
        r":? ?(?:read-only file ?system|operation not permitted|permission denied)", rest, re.IGNORECASE
    )
    return rest[repeated.end() :] if repeated else rest


def _paths(before: str, behind: str, reason: str, script: str) -> tuple[str, ...]:
    if ruby := _RUBY_PATH.match(behind):
        return (ruby["path"],)
    inner = paths_in(reason)  # `Access to the path '/x' is denied`
    after = paths_in(behind)
    arrow = re.search(r"['\"`] -> ['\"`]", behind)
    first = paths_in(before)
    ordered = [*inner, *(reversed(after) if arrow else after)]
    if "->" in before:
        ordered += first  # `'link' -> 'its text'`
    else:
        ordered += reversed(first)
    if not ordered and (bare := _bare_path(before)):
        ordered.append(bare)
    if bare_after := re.match(r":\s+([\w.@+~-]+)$", behind):
        ordered.append(bare_after[1])
    ordered.sort(key=lambda path: "/" not in path)
    line = f"{before}{reason}{behind}"
    return tuple(dict.fromkeys(_extended(path, line, script) for path in ordered))


def _bare_path(before: str) -> str | None:
    """Return the file without a slash that stands before the reason."""
    if member := _TAR.match(before):
        return member["path"]
    if _HERE.search(before):
        return "./"
    if not before.rstrip().endswith((":", "(", "[", "]", ")")):
        return None
    text = re.sub(r"[:\s(\[]+(?:\[?errno -?\d+\]?|\d+:)?\s*$", "", before, flags=re.IGNORECASE)
    bare = _BARE.search(text)
    return bare[1] if bare and bare[1] not in _FUNCTIONS else None


def _extended(path: str, line: str, script: str) -> str:
    """Return a path with the rest of it behind its blanks, as far as the script has that rest as well."""
    at = line.find(f"{path} ")
    if at < 0 or f"{path} " not in script:
        return path
    longest = path
    for end in range(at + len(path) + 1, min(len(line), at + _MAX_PATH)):
        if line[at : end + 1] not in script:
            break
        if line[end] not in " '\"`,:;()":
            longest = line[at : end + 1]
    return (
        longest
        if "/" in longest[len(path) :].lstrip(" /") and not longest[len(path) :].startswith(" /")
        else path
    )


def _around(lines: Lines, number: int) -> tuple[tuple[str, ...], int, int, str]:
    """Return paths of the lines that belong to this one, the numbers of the first and last of them, and
    their text."""
    line = lines[number]
    if line.rstrip().endswith(":"):  # brew's list of directories; CMake's file
        for later in (number + 1, number + 2):
            if re.fullmatch(r"\s*[~/]\S*\s*", "".join(lines.range(later, later))):
                return (lines[later].strip(),), number, later, line
    if line.startswith(("E: ", "W: ", "N: ")):  # each of apt's lines is a message of its own
        return (), number, number, line
    chained = _CHAIN.match(line) is not None
    for earlier in range(number - 1, max(-1, number - 1 - _CHAIN_LINES), -1):
        above = lines[earlier]
        if not above.strip():
            continue
        if found := [path for path in paths_in(above) if "/" in path]:
            if _TROUBLE.search(above) and 'File "' not in above:
                return tuple(reversed(found)), earlier, number, f"{above}\n{line}"
            break
        if not chained:
            break
    return (), number, number, line


def _directory_above(lines: Lines, number: int, paths: tuple[str, ...]) -> str | None:
    """Return the directory that the beginning of a chain of causes is about, if a file in it is the cause
    (uv: `Failed to initialize cache at`)."""
    more, *_ = _around(lines, number)
    return next((path for path in more if any(each.startswith(f"{path}/") for each in paths)), None)


@lru_cache(2_048)
def _writes(reason: Reason, text: str) -> bool | None:
    if reason is Reason.READ_ONLY:
        return True
    text = without_paths(text)
    if _READING.search(text):
        return False
    if reason in (Reason.DATABASE, Reason.UNWRITABLE, Reason.MISSING):
        return True
    return True if any(pattern.search(text) for pattern in _OPERATIONS.values()) else None


def _operation(reason: Reason, text: str, paths: tuple[str, ...]) -> Operation:
    if reason is Reason.DATABASE:
        return "sqlite"
    if reason is Reason.MISSING:
        return "write" if ": open " in text else "mkdir"
    if any(map(_GIT.search, paths)) or (text.startswith(_OF_GIT) and any(p.endswith(".git") for p in paths)):
        return "git"
    return operation_of(text)


@lru_cache(2_048)
def operation_of(text: str) -> Operation:
    """Return the operation that the words of a message are about; `write` where they do not show which."""
    text = without_paths(text)
    return next((operation for operation, pattern in _OPERATIONS.items() if pattern.search(text)), "write")


# ------------------------------------------------------------
# The reasons that messages about files give for a failure


class Reason(StrEnum):
    """Why an operation on a file failed, as the message gives it."""

    READ_ONLY = "EROFS"
    """Only writing fails with it: with a restricted policy this is the read-only root of bubblewrap (Codex
    0.125+)."""
    NOT_PERMITTED = "EPERM"
    """Of macOS' Seatbelt. Also of `chown`, and of what is no file."""
    PERMISSION = "EACCES"
    """Of Landlock (Codex through 0.114). Also of plain file modes, and of reading."""
    DATABASE = "database"
    """SQLite gives no error number: not there, read-only, not permitted read alike."""
    UNWRITABLE = "unwritable"
    """A program found by itself that it may not write, and went on or gave up without an error number."""
    MISSING = "ENOENT"
    """A directory that a program makes first is not there: its own failure to make it is not in the message
    (Node's recursive mkdir of Node 20, `install -d`, `go env -w`)."""


_REASONS: Final = (
    (Reason.READ_ONLY, Pattern(r"read-only file ?system|\bEROFS\b", re.IGNORECASE)),
    (Reason.NOT_PERMITTED, Pattern(r"operation not permitted|\bEPERM\b", re.IGNORECASE)),
    (
        Reason.PERMISSION,
        Pattern(
            r"permission denied(?! \(publickey|, please try again)|\bEACCES\b|PermissionDenied\b"
            r"|AccessDeniedException"
            r"|insufficient permission|Access to the path .{1,300} is denied",
            re.IGNORECASE,
        ),
    ),
    (
        Reason.DATABASE,
        Pattern(
            r"unable to open (?:the )?database(?: file)?|attempt to write a readonly database"
            r"|readonly database"
            r"|SQLITE_(?:READONLY|CANTOPEN)",
            re.IGNORECASE,
        ),
    ),
    (
        Reason.UNWRITABLE,
        Pattern(
            r"(?:is|are) not writ(?:e-?)?able|Could not create local repository at"
            r"|due to an error writing to the directory"
            r"|does not exist and could not be created|Please check your permissions"
            r"|cannot lock ref '.{1,200}': unable to create directory for|Unable to \(re\)create the"
            r"|No usable temporary directory"
            r"|don't have write permissions? for|trying to write to [`'\"]"
            r"|Failed to add the host to the list of known hosts|E212: Can't open file for writing"
            r"|\bUnknown: FileSystem\.\w+"
            r"|^curl: \(23\) |unable to create temporary object directory|\(unpacker error\)$"
            r"|could not create parent directories$"
        ),
    ),
    (
        Reason.MISSING,
        Pattern(
            r"ENOENT: no such file or directory(?=, mkdir ['\"])"
            r"|^install: cannot change permissions of .{1,300}: No such file or directory$"
            r"|^go: writing go env config: open .{1,300}: no such file or directory$"
        ),
    ),
)

_WORDS: Final = Pattern(
    r"read-only file ?system|operation not permitted|permission denied"
    r"|unable to open|readonly database|\bnot writ(?:e-?)?able",
    re.IGNORECASE,
)


@lru_cache(2_048)  # logs repeat their lines
def reason_in(line: str) -> tuple[Reason, re.Match[str]] | None:
    """Return the reason that a line gives, and the words or the code for it; None where it gives none."""
    for reason, pattern in _REASONS:
        if match := pattern.search(line):
            return reason, match
    return None


def phrase_of(line: str) -> str:
    """Return the words of a line that report a failure; empty where it has codes only."""
    found = _WORDS.search(line)
    return found[0] if found else ""


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
