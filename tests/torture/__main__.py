"""Put faults into a Codex home, the configuration and the environment, run commands, and print a table.

`python -m tests.torture [WORD...]`: rows `fault: survived` or `fault: FAILED, reason`, of the faults whose
names contain one of the words; exit code 1 if any failed, 2 if no name contains a word. As root the table is
run twice: as root and as an unprivileged user without a passwd entry. A fault is survived if no command
hangs or prints a traceback, every document is whole, the thread beside the fault is still there, and what
was not read is stated.
"""

# ruff: noqa: T201 - the child imports what it runs; its files outlive every block

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from tests.torture.faults import FAULTS, GOOD, Fault, Place
from tests.torture.forked import run
from tests.torture.odd_files import ODD_FILES
from tests.torture.places import fresh_place
from tests.torture.scenes import SCENES, Scene
from tests.torture.stage import Stage

_UNPRIVILEGED_UID: Final = 54_321
"""A user that no passwd file has."""
_AS_ANOTHER_USER: Final = "--as-another-user"
"""First argument of the process that runs the table as that user."""
_MAX_STDERR_LINES: Final = 8


def problems(fault: Fault, place: Place, uid: int) -> Iterator[str]:
    """Yield what was wrong with the commands."""
    for command in fault.commands:
        arguments = [part.format(good=GOOD, root=place.root) for part in command.split()]
        result = run(place, arguments, uid)
        if result.code is None:
            yield f"`{command}` hangs"
        elif result.code not in fault.codes.get(command.split()[0], (0, 1, 2)):
            yield f"`{command}` exits with {result.code}: {result.err.strip()[-200:]}"
        elif "Traceback" in result.err:
            yield f"`{command}`: {result.err.strip().splitlines()[-1]}"
        elif result.err.count("\n") > _MAX_STDERR_LINES:
            yield f"`{command}` prints {result.err.count(chr(10))} lines on stderr"
        elif fault.says is not None and result.code == 2 and fault.says not in result.err:
            yield f"`{command}` does not say {fault.says!r}: {result.err.strip()[-200:]}"
        elif "--json" in command and result.out:
            yield from _document_problems(command, result.out, fault)
        elif "--json" in command and fault.goes_on:
            yield f"`{command}` has no document: {result.err.strip()[-200:]}"


def _document_problems(command: str, out: bytes, fault: Fault) -> Iterator[str]:
    try:
        json.loads(out)
    except ValueError as error:
        yield f"`{command}`: no JSON: {error}"
        return
    if fault.goes_on and GOOD.encode() not in out:
        yield f"`{command}`: the thread beside the fault is missing"


def survive(fault: Fault, uid: int) -> list[str]:
    """Run one fault in a fresh place as a user; return what was wrong."""
    with fresh_place(uid, fault.arrange) as place:
        return list(problems(fault, place, uid))


def survive_scene(scene: Scene, uid: int) -> list[str]:
    """Play one scene in a fresh place as a user; return what was wrong."""
    with fresh_place(uid) as place, ExitStack() as cleanup:
        try:
            return list(scene.play(Stage(place, uid, cleanup)))
        except Exception as error:  # one scene must not end the table
            return [f"{type(error).__name__}: {error}"]


def table(words: Sequence[str], uid: int, print_row: Callable[[str], None]) -> int:
    """Run the table as a user; return the number of faults that were not survived."""
    failed = 0
    for fault in (*FAULTS, *ODD_FILES):
        if words and not any(word in fault.name for word in words):
            continue
        if fault.unprivileged and uid == 0:
            continue
        if (wrong := survive(fault, uid)) == []:
            print_row(f"{fault.name}: survived")
        else:
            failed += 1
            print_row(f"{fault.name}: FAILED, {'; '.join(wrong)}")
    for scene in SCENES:
        if words and not any(word in scene.name for word in words):
            continue
        if scene.needs_root and os.geteuid() != 0:
            print_row(f"{scene.name}: not run, only root can arrange it")
            continue
        wrong = survive_scene(scene, uid)
        failed += wrong != []
        print_row(f"{scene.name}: FAILED, {'; '.join(wrong)}" if wrong else f"{scene.name}: survived")
    return failed


def _closed_to_others() -> set[Path]:
    """Return the directories that keep another user from importing: commands import what they need."""
    places = [Path(sys.prefix).resolve(), Path(sys.base_prefix).resolve(), Path(__file__).resolve()]
    folders = {folder for place in places for folder in (place, *place.parents) if folder.is_dir()}
    return {folder for folder in folders if folder.stat().st_mode & 0o001 == 0}


def _open_to_others(folder: Path) -> None:
    """Let others enter a directory, in the mount namespace of this process alone: by an overlay of it."""
    upper = Path(tempfile.mkdtemp(prefix="torture-overlay-"))
    _run("mount", "-t", "tmpfs", "none", str(upper))
    (upper / "upper").mkdir()
    (upper / "work").mkdir()
    layers = f"lowerdir={folder},upperdir={upper}/upper,workdir={upper}/work"
    _run("mount", "-t", "overlay", "overlay", "-o", layers, str(folder))
    folder.chmod(folder.stat().st_mode | 0o001)


def _run(*command: str) -> None:
    subprocess.run(command, check=True)


def _table_of_another_user(words: Sequence[str]) -> int:
    """Run the table as an unprivileged user; return the exit code."""
    command = [sys.executable, "-m", "tests.torture", _AS_ANOTHER_USER, *words]
    return subprocess.run(["unshare", "--mount", *command], check=False).returncode


def _is_named_by(word: str) -> bool:
    return any(word in row.name for row in (*FAULTS, *ODD_FILES, *SCENES))


def main() -> int:
    """Run the table; as root, then as an unprivileged user too."""
    words = sys.argv[1:]
    uid = os.geteuid()
    if any(not _is_named_by(word) for word in words if word != _AS_ANOTHER_USER):
        print("no fault and no scene has this in its name: see tests/torture", file=sys.stderr)
        return 2
    if words[:1] == [_AS_ANOTHER_USER]:
        uid, words = _UNPRIVILEGED_UID, words[1:]
        for folder in sorted(_closed_to_others()):
            _open_to_others(folder)
        os.chdir(Path.cwd())  # into the overlay
    print(f"as user {uid}", flush=True)
    failed = table(words, uid, lambda row: print(f"  {row}", flush=True))
    if os.geteuid() == uid == 0:
        failed += _table_of_another_user(words)
    return int(failed > 0)


if __name__ == "__main__":
    if sys.argv[1:2] == ["soak"]:
        from tests.torture import soak

        sys.exit(soak.main(sys.argv[2:]))
    if sys.argv[1:2] == ["readonly"]:
        from tests.torture import readonly

        sys.exit(readonly.main())
    from tests.torture.faults import preload

    preload()
    sys.exit(main())
