"""Let system calls fail at random under the commands, and compare what they print with what is true.

`python -m tests.torture inject [--seeds FIRST-LAST]`: a row per seed; exit code 1 if one was not survived.
strace makes calls of one kind fail (`EIO`, `ENOSPC`, `EMFILE` ...), once, often or from one on. A command
must then exit with 2 and one line on stderr, or print what it prints without the errors, or state in its
document that something was not read. It never hangs, never prints a traceback, and never exits with 0 or 1
with fewer threads, other verdicts or fewer findings.
"""

# ruff: noqa: T201 - it prints its rows

from __future__ import annotations

import argparse
import ctypes
import json
import os
import random
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.torture.faults import GOOD, Place
from tests.torture.forked import Result, run
from tests.torture.places import fresh_place

_DATA: Final = Path(__file__).parents[1] / "data/recordings/0.169.0"
_RECORDED: Final = ("full-access-leaked-flags", "workspace-write", "kanban-board")
"""With a mismatch, with denials, and with a hand-off that was denied."""
_ERRORS: Final = {
    "openat": ("EIO", "EACCES", "EMFILE", "ENFILE", "ENOMEM", "ESTALE", "EINTR", "ELOOP"),
    "read,pread64": ("EIO", "EINTR", "ESTALE", "ENOMEM", "EISDIR"),
    "getdents64": ("EIO", "ENOMEM", "ESTALE"),
    "newfstatat,?statx,fstat,?stat,?lstat": ("EIO", "EACCES", "ESTALE", "ENOMEM", "ELOOP"),
    "readlink,readlinkat": ("EIO", "EACCES", "ENOMEM"),
    "write,pwrite64": ("EIO", "ENOSPC", "EDQUOT", "EINTR", "EFBIG"),
    "?rename,?renameat,renameat2,?unlink,unlinkat": ("EIO", "ENOSPC", "EDQUOT", "EROFS"),
    "?mkdir,mkdirat,?chmod,fchmod": ("EIO", "ENOSPC", "EDQUOT", "EROFS", "EPERM"),
    "fcntl,flock": ("EIO", "ENOLCK", "EAGAIN", "EINTR"),
    "fsync,fdatasync,ftruncate": ("EIO", "ENOSPC", "EDQUOT"),
    "socket,connect": ("EIO", "ECONNREFUSED", "EMFILE", "EACCES"),
    "?fork,?vfork,clone,?clone3": ("EAGAIN", "ENOMEM"),
}
"""Errors by the system calls that fail with them; `?`: of which not all architectures have.

`mmap` is none of them: CPython 3.11 waits for ever for a thread whose state could not be allocated.
"""
_MAX_FIRST: Final = 300
"""The commands make a few hundred calls of a kind."""
_PR_SET_DUMPABLE: Final = 4
_PR_SET_PTRACER: Final = 0x59616D61
_ANY: Final = ctypes.c_ulong(-1)
_LINE_BYTES: Final = 4_096
_tracers: Final[list[subprocess.Popen[bytes]]] = []
"""Kept: they end with what they trace."""
COMMANDS: Final = (
    "check --json",
    "sessions --json --limit 0",
    "status --json --all --no-tmux",
    f"explain {GOOD} --json",
    f"replay {GOOD} --export {{root}}/out.md --force",
)


class Injection(NamedTuple):
    """Which calls fail, how, and when."""

    calls: str
    error: str
    when: str
    """As strace's `when`: the first call, and every further one, each n-th, or none."""

    @property
    def option(self) -> str:
        """Return the option of strace."""
        return f"inject={self.calls}:error={self.error}:when={self.when}"


def random_injection(seed: int) -> Injection:
    """Return what fails under a seed."""
    chance = random.Random(seed)
    calls = chance.choice(sorted(_ERRORS))
    error = chance.choice(_ERRORS[calls])
    first = int(_MAX_FIRST ** chance.random())
    then = ["", f"+{chance.randint(2, 30)}"]
    if error not in ("EINTR", "EAGAIN"):  # what is tried again for ever where it always fails
        then.append("+")
    return Injection(calls, error, f"{first}{chance.choice(then)}")


def attach(option: str) -> None:
    """Let strace attach to this process with its children, and return when it has.

    What has been imported before is not part of the experiment.
    """
    control = ctypes.CDLL(None).prctl
    control(_PR_SET_DUMPABLE, 1, 0, 0, 0)  # a process that has changed its user is not
    control(_PR_SET_PTRACER, _ANY, 0, 0, 0)
    pid = str(Path("/proc/self").resolve().name)
    tracer = subprocess.Popen(
        ["strace", "-f", "-e", option, "-o", os.devnull, "-p", pid],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    assert tracer.stderr is not None
    with suppress(OSError):  # the first call that fails
        if b"attached" not in os.read(tracer.stderr.fileno(), _LINE_BYTES):
            raise RuntimeError("strace cannot attach")
    _tracers.append(tracer)


def furnish(place: Place) -> None:
    """Add rollouts of several days, names, and a transcript."""
    for day, name in enumerate(_RECORDED, 21):
        folder = place.day.with_name(str(day))
        folder.mkdir()
        for recorded in (_DATA / name).glob("*.jsonl"):
            shutil.copy(recorded, folder)
    name_line = json.dumps({"id": GOOD, "thread_name": "the name", "updated_at": "2026-11-20T22:03:52Z"})
    (place.home / "session_index.jsonl").write_text(f"{name_line}\n")
    (place.home / "config.toml").write_text('sandbox_mode = "workspace-write"\n')
    place.env["XDG_DATA_HOME"] = str(place.root / "data")


class Answer(NamedTuple):
    """What a document says."""

    facts: dict[str, Any]
    """What must not be lost: threads and their properties."""
    unread: frozenset[str]
    """What was not read, as it is stated."""


def answer(command: str, out: str, root: Path) -> Answer:
    """Return what a command has answered.

    Raises:
        ValueError: it has no document, or a torn one.
    """
    if command.startswith("replay"):
        exported = root / "out.md"
        return Answer({"export": exported.read_text()} if exported.exists() else {}, frozenset())
    document = json.loads(out)
    if command.startswith("check"):
        threads = {each["id"]: _checked(each) for each in document["threads"] if not each["problem"]}
        return Answer(threads, frozenset())
    if command.startswith("sessions"):
        listed = (each for each in document["sessions"] if not each["problem"])
        sessions = {each["id"]: (each["version"], each["prompt"], each["tokens"]["total"]) for each in listed}
        return Answer(sessions, frozenset())
    workers = [each for each in document["workers"] if each["agent"]["name"] == "codex"]
    failed = {source["detail"] for source in document.get("sources", ()) if not source["ok"]}
    failed.update(*(each.get("unread", ()) for each in workers))
    return Answer({each["id"]: _shown(each) for each in workers}, frozenset(failed))


def _checked(thread: dict[str, Any]) -> tuple[Any, ...]:
    kinds = [finding["kind"] for finding in thread["findings"]]
    return thread["verdict"], thread["state"], kinds, len(thread["denials"])


def _shown(worker: dict[str, Any]) -> tuple[Any, ...]:
    sandbox = worker.get("sandbox", worker)  # `explain` has its fields in the worker itself
    kinds = [finding["kind"] for finding in sandbox["findings"]]
    return worker["name"], worker["state"], sandbox["verdict"], kinds


def wrong(command: str, result: Result, truth: Answer, root: Path) -> Iterator[str]:
    """Yield what is wrong with what a command has done under errors."""
    if result.code not in (0, 1, 2):
        yield "hangs" if result.code is None else f"exits with {result.code}: {result.err.strip()[-300:]}"
        return
    if "Traceback" in result.err:
        yield result.err.strip()[-300:]
    out = result.out.decode("utf-8", "replace")
    try:
        found = answer(command, out, root)
    except ValueError:
        if result.code != 2:
            yield f"exits with {result.code} without a document: {out[-100:]!r}"
        elif result.err.count("\n") > 1:
            yield f"prints {result.err.count(chr(10))} lines: {result.err.strip()[-300:]}"
        return
    if result.code != 2 and found.facts != truth.facts and not found.unread - truth.unread:
        yield f"exits with {result.code} and another answer: {_difference(found.facts, truth.facts)}"


def _difference(found: dict[str, Any], truth: dict[str, Any]) -> str:
    names = [name for name in found.keys() | truth.keys() if found.get(name) != truth.get(name)]
    return "; ".join(f"{name}: {found.get(name)!s:.200}, not {truth.get(name)!s:.200}" for name in names)


def problems(seed: int, place: Place, uid: int) -> Iterator[str]:
    """Run the commands in a place under what fails by a seed; yield what was wrong."""
    injection = random_injection(seed)
    furnish(place)
    for command in COMMANDS:
        arguments = [part.format(root=place.root) for part in command.split()]
        place.injection = None
        truth = answer(command, run(place, arguments, uid).out.decode(), place.root)
        (place.root / "out.md").unlink(missing_ok=True)
        place.injection = injection.option
        for problem in wrong(command, run(place, arguments, uid), truth, place.root):
            yield f"{injection.option}: `{command}` {problem}"


def main(arguments: Sequence[str]) -> int:
    """Print the rows of a range of seeds; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture inject", description=__doc__)
    parser.add_argument("--seeds", default="0-99", metavar="FIRST-LAST")
    first, _, last = parser.parse_args(arguments).seeds.partition("-")
    failed = 0
    for seed in range(int(first), int(last or first) + 1):
        with fresh_place(os.geteuid()) as place:
            found = list(problems(seed, place, os.geteuid()))
        failed += found != []
        print(f"  seed {seed}, {random_injection(seed).option}: {'; '.join(found) or 'survived'}", flush=True)
    return int(failed > 0)
