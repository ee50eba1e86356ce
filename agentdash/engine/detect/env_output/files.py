"""What is known of the content of files that a script reads."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from agentdash.engine.detect.env_output.declarations import dump_of
from agentdash.engine.detect.env_output.dumps import Dump
from agentdash.engine.detect.env_output.patterns import ANY, QUIET, Hole, Kind, Parts, concrete
from agentdash.engine.detect.env_output.world import Environment, State

_SYSTEM_FILE: Final = re.compile(
    r"/proc/(?:self|thread-self|\d+|sys/[\w./-]+)/(?:status|stat|cgroup|mounts|mountinfo|limits|comm"
    r"|attr/current|uid_map|gid_map)"
    r"|/proc/(?:version|cpuinfo|meminfo|uptime|loadavg|mounts|sys/[\w./-]+|net/\w+)"
    r"|/etc/(?:os-release|lsb-release|debian_version|hostname|hosts|resolv\.conf|passwd|group"
    r"|nsswitch\.conf|issue)"
    r"|/sys/[\w./-]+|/dev/null"
)
"""Files of the system in which no flag of Codex stands."""

OWN_STATUS: Final = Hole(Kind.QUIET, key="own status")
"""`/proc/self/status` of a command of the script."""
OTHER_STATUS: Final = Hole(Kind.QUIET, key="other status")
"""`/proc/…/status` of any other process."""
_STATUS_KEYS: Final = (OWN_STATUS.key, OTHER_STATUS.key)


def shows_status(parts: Parts) -> bool:
    """Return whether a text holds lines of a process's status."""
    return any(isinstance(part, Hole) and part.key in _STATUS_KEYS for part in parts)


def _status(path: Parts, state: State) -> Hole | None:
    match path:
        case ("/proc/self/status" | "/proc/thread-self/status",):
            return OWN_STATUS
        case ("/proc/", Hole(key=key), "/status") if key in (f"shell {state.level}", "BASHPID"):
            return OWN_STATUS
        case (*_, str() as end) if end.endswith("/status"):
            return OTHER_STATUS
        case _:
            return None


def environ_of(path: Parts, state: State, environment: Environment) -> Environment | None:
    """Return the environment that `/proc/…/environ` shows; None for other files, and for other processes."""
    if path in (("/proc/self/environ",), ("/proc/thread-self/environ",)):
        return environment
    match path:
        case ("/proc/", Hole(kind=Kind.DIGITS, key=key), "/environ") if key == f"shell {state.level}":
            # the last command of a script can run in the shell's own process
            return environment if environment == dict(state.started) else None
        case _:
            return None


def file_content(path: Parts, state: State, environment: Environment | None = None) -> Parts:
    """Return what is known of a file's content."""
    written = dict(state.files)
    if path in written:
        return written[path]
    if (
        environ := environ_of(path, state, state.environment() if environment is None else environment)
    ) is not None:
        dumped = dump_of(environ, state)
        return tuple(
            msgspec.structs.replace(p, nul=True, whole=True) if isinstance(p, Dump) else p for p in dumped
        )
    if (status := _status(path, state)) is not None:
        return (status,)
    text = concrete(path) or ""
    if text == "/dev/null":
        return ()
    return (QUIET,) if is_system_file(path) else (ANY,)


def is_system_file(path: Parts) -> bool:
    """Return whether a file of the system is one in which no flag stands."""
    text = "".join(part if isinstance(part, str) else "1" for part in path if isinstance(part, str | Hole))
    return ".." not in text and _SYSTEM_FILE.fullmatch(text) is not None


def opened_content(path: Parts, state: State) -> Parts:
    """Return what is known of a file that the shell opens for a program, before it starts the program."""
    content = file_content(path, state, dict(state.started))
    if path not in dict(state.files) and content and isinstance(content[0], Dump):
        # it shows the process that opened it, which may be gone when it is read
        return (msgspec.structs.replace(content[0], partial=True),)
    return content
