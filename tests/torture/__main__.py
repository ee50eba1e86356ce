"""Put faults into a Codex home, the configuration and the environment, run commands, and print a table.

`python -m tests.torture [WORD...]`: rows `fault: survived` or `fault: FAILED, reason`, of the faults whose
names contain one of the words; exit code 1 if any failed, 2 if no name contains a word. As root the table is
run twice: as root and as an unprivileged user without a passwd entry. A fault is survived if no command
hangs or prints a traceback, every document is whole, the thread beside the fault is still there, and what
was not read is stated.
"""

# ruff: noqa: T201 - it prints its rows; a part imports what it needs

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.torture.faults import FAULTS
from tests.torture.scenes import SCENES
from tests.torture.stage import Row, fresh_stage

_UNPRIVILEGED_UID: Final = 54_321
"""A user that no passwd file has."""
AS_ANOTHER_USER: Final = ("unshare", "--mount", sys.executable, "-m", "tests.torture", "--as-another-user")
"""The command by which root runs the table as that user."""
_ROWS: Final = (*FAULTS, *SCENES)


def play(row: Row, uid: int) -> str:
    """Play a row in a fresh place as a user; return its outcome."""
    if row.needs_root and os.geteuid() != 0:
        return "not run, only root can arrange it"
    with fresh_stage(uid, row.arrange) as stage:
        try:
            wrong = list(row.play(stage))
        except Exception as error:  # one row must not end the table
            wrong = [f"{type(error).__name__}: {error}"]
    return f"FAILED, {'; '.join(wrong)}" if wrong else "survived"


def table(words: Sequence[str], uid: int) -> int:
    """Run the table as a user; return the number of faults that were not survived."""
    failed = 0
    print(f"as user {uid}", flush=True)
    for row in _ROWS:
        if (not words or any(word in row.name for word in words)) and not (row.unprivileged and uid == 0):
            outcome = play(row, uid)
            failed += outcome.startswith("FAILED")
            print(f"  {row.name}: {outcome}", flush=True)
    return failed


def _closed_to_others() -> set[Path]:
    """Return the directories that keep another user from importing: commands import what they need."""
    places = [Path(sys.prefix).resolve(), Path(sys.base_prefix).resolve(), Path(__file__).resolve()]
    folders = {folder for place in places for folder in (place, *place.parents) if folder.is_dir()}
    return {folder for folder in folders if folder.stat().st_mode & 0o001 == 0}


def _open_to_others(folder: Path) -> None:
    """Let others enter a directory, in the mount namespace of this process alone: by an overlay of it."""
    upper = Path("/mnt")  # leaves no directory behind; one mount covers the other
    subprocess.run(["mount", "-t", "tmpfs", "none", upper], check=True)
    (upper / "upper").mkdir()
    (upper / "work").mkdir()
    layers = f"lowerdir={folder},upperdir={upper}/upper,workdir={upper}/work"
    subprocess.run(["mount", "-t", "overlay", "overlay", "-o", layers, folder], check=True)
    folder.chmod(folder.stat().st_mode | 0o001)


def main(words: list[str]) -> int:
    """Run the table; as root, then as an unprivileged user too."""
    uid = os.geteuid()
    if words[:1] == ["--as-another-user"]:
        namespaces = [Path(f"/proc/{pid}/ns/mnt").readlink() for pid in (os.getpid(), os.getppid())]
        assert len(set(namespaces)) == 2, f"else directories of the machine change: {AS_ANOTHER_USER}"
        uid, words = _UNPRIVILEGED_UID, words[1:]
        for folder in sorted(_closed_to_others()):
            _open_to_others(folder)
        os.chdir(Path.cwd())  # into the overlay
    if any(not any(word in row.name for row in _ROWS) for word in words):
        print("no fault and no scene has this in its name: see tests/torture", file=sys.stderr)
        return 2
    failed = table(words, uid)
    if os.geteuid() == uid == 0:
        failed += subprocess.run([*AS_ANOTHER_USER, *words], check=False).returncode
    return int(failed > 0)


if __name__ == "__main__":
    if sys.argv[1:2] == ["readonly"]:
        from tests.torture import readonly

        sys.exit(readonly.main())
    sys.exit(main(sys.argv[1:]))
