"""Programs by name: what is known of their output under a hypothesis."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import msgspec

from agentdash.engine.detect.env_output.declarations import dump_of
from agentdash.engine.detect.env_output.dumps import FLAGS, Dump
from agentdash.engine.detect.env_output.encoders import ENCODERS
from agentdash.engine.detect.env_output.filters import FILTERS
from agentdash.engine.detect.env_output.inert import INSTANT, inert, version_request
from agentdash.engine.detect.env_output.languages import LANGUAGES
from agentdash.engine.detect.env_output.patterns import Choice, Hole, Kind, Part, Parts, concrete, joined
from agentdash.engine.detect.env_output.streams import UNKNOWN, Call, Result
from agentdash.engine.detect.env_output.xargs import xargs
from agentdash.engine.detect.word_sets import word_set

_SYSTEM_FOLDERS: Final = word_set("/bin /usr/bin /usr/local/bin /sbin /usr/sbin /opt/homebrew/bin")


def program_name(path: str) -> str:
    """Return a program's name where its path is one of the system's, else the path."""
    folder, slash, name = path.rpartition("/")
    return name if slash and folder in _SYSTEM_FOLDERS else path


_OWN_FOLDER: Final = re.compile(r"(?:/tmp|/var/tmp|/dev/shm|/private)\b|[^/]")
"""Begins a folder in which a script may have put programs just before; below a home it is the user's."""
_OF_PACKAGES: Final = re.compile(r"/(?:node_modules/\.bin|\.?venv/bin|\.?env/bin|target/\w+)/?$")

_INHERITED: Final = {"PATH": "/usr/bin", "HOME": "/home"}
"""Folders in place of variables that the script has not set."""


def has_usual_path(value: Parts | None) -> bool:
    """Return whether a `PATH` names folders, and none in which a script may have put a program of its own.

    An empty name stands for the working folder; with an empty or unset `PATH` no program is found.
    """
    texts: list[str] = []
    for part in value or ():
        key = part.key if isinstance(part, Hole) else ""
        texts.append(part if isinstance(part, str) else _INHERITED.get(key, "."))
    folders = "".join(texts).split(":")
    return not any(not f or (_OWN_FOLDER.match(f) and not _OF_PACKAGES.search(f)) for f in folders)


def is_instant(name: str) -> bool:
    """Return whether a program ends before any time-out of whole seconds."""
    return name in _PROGRAMS or name in INSTANT


def run_program(call: Call) -> list[Result]:
    """Return the outcomes of a program that is started."""
    if (handler := _PROGRAMS.get(call.name)) is not None:
        found = handler(call)
        return _without_files(call, found) if call.name in LANGUAGES or found == UNKNOWN else found
    for look in (version_request, inert, _xargs):
        if (results := look(call)) is not None:
            return (
                _without_files(call, results)
                if call.name in ("cp", "mv", "rm", "ln", "truncate", "install")
                else results
            )
    return _without_files(call, UNKNOWN)


def _without_files(call: Call, results: list[Result]) -> list[Result]:
    """Forget what files hold, where a result has no state of its own: the program may have changed them."""
    if not call.state.files:
        return results
    state = msgspec.structs.replace(call.state, files=())
    return [r if r.state is not None else msgspec.structs.replace(r, state=state) for r in results]


def _xargs(call: Call) -> list[Result] | None:
    return xargs(call) if call.name == "xargs" else None


def printenv(call: Call) -> list[Result]:
    """Return what `printenv` writes: the whole environment, or the values of the variables that are named."""
    if not call.arguments:
        return [Result(out=dump_of(call.environment, call.state))]
    if call.words in (["-0"], ["--null"]):
        dumped = dump_of(call.environment, call.state)
        return [
            Result(
                out=tuple(msgspec.structs.replace(p, nul=True) if isinstance(p, Dump) else p for p in dumped)
            )
        ]
    out: list[Part] = []
    status: int | None = 0
    for argument in call.arguments:
        name = concrete(argument)
        if name is None or name.startswith("-"):
            return UNKNOWN
        if name not in FLAGS:
            out.append(Choice(((), (Hole(Kind.ANY, key=name), "\n"))))
            status = None if status == 0 else status
        elif (value := call.environment[name]) is None:
            status = 1
        else:
            out += (*value, "\n")
    return [Result(out=joined(out), status=status)]


_PROGRAMS: Final[dict[str, Callable[[Call], list[Result]]]] = {
    "printenv": printenv,
    **FILTERS,
    **ENCODERS,
    **LANGUAGES,
}
