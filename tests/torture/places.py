"""Directories in which faults are put and commands run."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.torture.faults import Place, make_place


@contextmanager
def fresh_place(uid: int, arrange: Callable[[Place], object] = lambda place: None) -> Iterator[Place]:
    """Create a place, and remove it after the block. Outside of /tmp, which sandboxes may write to."""
    root = Path(tempfile.mkdtemp(prefix="torture-", dir="/var/tmp"))
    try:
        place = make_place(root)
        arrange(place)
        if os.geteuid() == 0 and uid:
            _chown(root, uid)
        yield place
    finally:
        for folder in [root, *(path for path in root.rglob("*") if path.is_dir() and not path.is_symlink())]:
            folder.chmod(0o700)
        shutil.rmtree(root, ignore_errors=True)


def _chown(root: Path, uid: int) -> None:
    for folder, folders, names in os.walk(root):
        for name in (".", *folders, *names):
            os.chown(Path(folder, name), uid, uid, follow_symlinks=False)
