"""Paths on the command line."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

import click

from agentdash.files import expand_user
from agentdash.model.sanitize import clean_line


class UserPath(click.Path):
    """A path whose `~` the shell did not replace, as in `--record=~/journal`."""

    def __init__(self, **checks: bool) -> None:
        super().__init__(path_type=Path, **checks)

    def convert(
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """Return the path; fail where it is empty, or its home directory or what it names does not exist."""
        if not os.fspath(value).strip():  # `--codex-home "$UNSET"`
            self.fail("the path is empty.", param, ctx)
        try:
            path = expand_user(value)
        except OSError as error:
            self.fail(f"{clean_line(error.strerror or '')}.", param, ctx)
        if not self.file_okay and path.exists() and not path.is_dir():  # click accepts devices
            self.fail(f"{clean_line(str(path))!r} is not a directory.", param, ctx)
        return super().convert(path, param, ctx)


FILE: Final = UserPath(exists=True, dir_okay=False)
PATH: Final = UserPath()
FOLDER: Final = UserPath(exists=True, file_okay=False)
"""A directory that is named on the command line exists; the default one may be missing, as before the first
start of Codex."""
