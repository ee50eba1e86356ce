"""Texts that every message of some scripts has: outputs of readers and test runs mostly have none of them,
so that all they hold is text from elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from agentdash.sandbox.denials.programs import (
    INTERPRETERS,
    WRITING_TOOLS,
    Role,
    files_of_options,
    reads_remotely,
)
from agentdash.sandbox.denials.ran import Ran
from agentdash.sandbox.denials.ties import opens_connection

_TEST_FOLDERS: Final = (
    *("target", ".cargo", "pkg/mod", ".npm", "_cacache", ".pytest_cache", "__pycache__", ".gradle", ".m2"),
    *(".tox", ".nox", ".hypothesis", ".mypy_cache", ".cache/uv", ".cache/pip", ".cache/go-build"),
    *(".cache/node", ".cache/yarn", ".cache/pnpm", ".cache/bazel", ".cache/zig", ".cache/ms-playwright"),
    ".cache/Cypress",
)
_GO_BUILD: Final = "go-build"
"""How Go's temporary folders begin."""
TEST_FILE: Final = re.compile(rf"/(?:{'|'.join(map(re.escape, _TEST_FOLDERS))}|{_GO_BUILD}\w*)(?:/|$)")
"""Files of the tools that run tests: a test does not provoke errors there."""
NO_TEMPORARY: Final = "FileNotFoundError: [Errno 2] No usable temporary directory found in ["
"""Of pytest, when it starts to capture."""
_OF_TESTS: Final = (*(f"/{folder}" for folder in (*_TEST_FOLDERS, _GO_BUILD)), NO_TEMPORARY)
_BEHIND_NAME: Final = (":", "[", " line ", "line ")
"""What follows the name with which a program begins its messages."""
_OTHER_FORMS: Final = ("npm", "pnpm", "zip")
"""Programs whose messages begin in forms of their own."""


def marks_of(commands: Sequence[Ran]) -> tuple[str, ...] | None:
    """Return texts one of which is in every message that can be attributed to these commands; None where
    there are no such texts."""
    if not all(map(_has_marks, commands)):
        return None
    return tuple(dict.fromkeys(mark for command in commands for mark in _marks(command)))


def _has_marks(command: Ran) -> bool:
    """Return whether a command writes no files, and gives its own messages its name."""
    if command.role not in (Role.QUIET, Role.READER, Role.TEST):
        return False
    if command.written or opens_connection(command):
        return False
    by_code = command.role is Role.READER and command.name.startswith(INTERPRETERS)
    others = by_code or command.name in WRITING_TOOLS or command.name in _OTHER_FORMS
    return not others and not reads_remotely(command.name)


def _marks(command: Ran) -> Iterator[str]:
    if command.role is Role.TEST:
        yield from _OF_TESTS
        yield from files_of_options(command.words)
    if command.role is not Role.TEST or command.name == "go":
        yield from (command.name + behind for behind in _BEHIND_NAME)
