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
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Any:
        """Return the path; fail where its home directory or what is expected there does not exist."""
        try:
            path = expand_user(value)
        except OSError as error:
            self.fail(f"{clean_line(error.strerror or '')}.", param, ctx)
        return super().convert(path, param, ctx)


PATH: Final = UserPath()
FOLDER: Final = UserPath(exists=True, file_okay=False)
"""A directory that is named on the command line exists; the default one may be missing, as before the first
start of Codex."""
