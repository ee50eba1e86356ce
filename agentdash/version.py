"""The version as people report it: between releases with the commit of the checkout."""

import os

from agentdash import __version__

_SHORT = 7
"""Digits of a commit, as git shows it."""


def described_version() -> str:
    """Return the version; of a checkout between releases with its commit: `0.2.0.dev0+g1a2b3c4`."""
    if ".dev" not in __version__:
        return __version__
    try:
        commit = _commit(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    except OSError:
        commit = ""
    return f"{__version__}+g{commit[:_SHORT]}" if commit.isalnum() else __version__


def _commit(checkout: str) -> str:
    """Return the commit of a checkout, or of a worktree of one; empty if its branch has none.

    Raises:
        OSError: it is not a checkout.
    """
    git = f"{checkout}/.git"
    if not os.path.isdir(git):
        git = os.path.join(checkout, _line(git).removeprefix("gitdir: "))
    head = _line(f"{git}/HEAD")
    name = head.removeprefix("ref: ")
    if name == head:
        return head
    shared = os.path.join(git, _line(f"{git}/commondir")) if os.path.isfile(f"{git}/commondir") else git
    if os.path.isfile(f"{shared}/{name}"):
        return _line(f"{shared}/{name}")
    with open(f"{shared}/packed-refs", encoding="utf-8") as file:
        return next((line.split()[0] for line in file if line.rstrip().endswith(f" {name}")), "")


def _line(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.readline().strip()
